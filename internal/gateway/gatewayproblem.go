package gateway

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

func gatewayOwner(g *gatewayv1.Gateway) Owner {
	return Owner{KindGateway, types.NamespacedName{Namespace: g.Namespace, Name: g.Name}}
}

func listenerSetOwner(set *gatewayv1.ListenerSet) Owner {
	return Owner{KindListenerSet, types.NamespacedName{Namespace: set.Namespace, Name: set.Name}}
}

// gatewayProblem returns why the Gateway is not accepted, or nil. It checks the
// Gateway's own listeners only, so that a tenant cannot break the platform
// team's Gateway. invalid is why the settings are not valid, or nil.
func (r *Result) gatewayProblem(s *Snapshot, invalid *Problem) *Problem {
	if invalid != nil {
		return invalid
	}
	if problem := cmp.Or(addressProblem(s), r.limitProblem(s)); problem != nil {
		return problem
	}
	if len(r.listeners) > 0 && !slices.ContainsFunc(r.listeners, func(l *Listener) bool { return l.Rejected == nil }) {
		return &Problem{Reason: conditions.ReasonListenersNotValid, Message: "None of the Gateway's listeners is accepted: " + describeInvalid(r.listeners) + ". See their conditions."}
	}
	return nil
}

// limitProblem returns a problem when the Gateway's namespace already has as many tunnels
// as the GatewayClass permits, or nil. Tunnels that no Gateway uses count first, then the
// Gateways from the oldest to the youngest.
func (r *Result) limitProblem(s *Snapshot) *Problem {
	limit, used := r.Settings.Limits().TunnelsPerNamespace, s.OlderGateways+s.OrphanedTunnels
	if used < limit {
		return nil
	}
	return &Problem{Reason: conditions.ReasonLimitExceeded, Message: fmt.Sprintf(
		"Namespace %s has reached limits.tunnelsPerNamespace of the GatewayClass, which is %d (older Gateways: %d, Tunnels without a Gateway: %d). "+
			"Delete a Gateway in the namespace, or ask the platform team to delete Tunnels or to raise the limit.",
		s.Gateway.Namespace, limit, s.OlderGateways, s.OrphanedTunnels)}
}

// Older reports whether Gateway a takes precedence over Gateway b because of its age.
// Gateways that were created in the same second are ordered by namespace and name.
func Older(a, b *gatewayv1.Gateway) bool {
	return cmp.Or(cmp.Compare(ageOf(a.CreationTimestamp), ageOf(b.CreationTimestamp)),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// addressProblem returns the first entry in spec.addresses that the Gateway cannot have,
// or nil. A Gateway's only address is its tunnel's hostname. An entry without a value
// accepts any address.
func addressProblem(s *Snapshot) *Problem {
	for i, address := range s.Gateway.Spec.Addresses {
		isTunnel := s.Tunnel != "" && address.Value == s.Tunnel.Hostname() &&
			ptr.Deref(address.Type, gatewayv1.IPAddressType) == gatewayv1.HostnameAddressType
		if address.Value != "" && !isTunnel {
			return &Problem{Reason: conditions.ReasonUnsupportedAddress, Message: fmt.Sprintf(
				"spec.addresses[%d] requests %q, but Cloudflare assigns the address of a tunnel. Remove the value.", i, address.Value)}
		}
	}
	return nil
}
