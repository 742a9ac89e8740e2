package gateway

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// routeKinds returns a problem when allowedRoutes.kinds lists a kind that the listener
// does not support: "If kinds are specified in Spec that are not supported [...] an
// implementation MUST set the "ResolvedRefs" condition to "False" with the
// "InvalidRouteKinds" reason." (ListenerStatus.SupportedKinds) Such a listener serves no
// routes, not even of the supported kinds.
func (references) routeKinds(l *Listener) *Problem {
	supported := protocolKinds(l.Spec.Protocol)
	seen := map[string]bool{}
	unsupported := message.List{Separator: " and ", More: "%d more", MaxSize: l.messageSize / 3}
	for _, allowed := range allowedKinds(l) {
		name := describeRouteKind(allowed)
		if !slices.ContainsFunc(supported, func(kind gatewayv1.RouteGroupKind) bool { return sameKind(allowed, kind) }) && !seen[name] {
			seen[name] = true
			unsupported.Add("%s", name)
		}
	}
	if unsupported.Len() == 0 {
		return nil
	}
	names := unsupported.String()
	return &Problem{Reason: conditions.ReasonInvalidRouteKinds, Message: fmt.Sprintf(
		"allowedRoutes.kinds lists %s, which protocol %s does not support, so the listener serves no routes. %s",
		names, l.Spec.Protocol, l.routeKindsAdvice(names))}
}

// routeKindsAdvice returns what to do about the unsupported kinds with the names.
func (l *Listener) routeKindsAdvice(names string) string {
	switch {
	case !supportedProtocol(l.Spec.Protocol):
		return "Use protocol HTTP or HTTPS with HTTPRoute or GRPCRoute."
	case len(l.SupportedKinds) == 0: // an empty list would allow both kinds
		return "List HTTPRoute or GRPCRoute instead."
	default:
		return fmt.Sprintf("Remove %s from the list.", names)
	}
}

func describeRouteKind(kind gatewayv1.RouteGroupKind) string {
	if group := ptr.Deref(kind.Group, gatewayv1.GroupName); group != gatewayv1.GroupName {
		return fmt.Sprintf("%s of group %q", kind.Kind, group)
	}
	return string(kind.Kind)
}
