package gateway

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func gatewayOwner(g *gatewayv1.Gateway) Owner {
	return Owner{KindGateway, types.NamespacedName{Namespace: g.Namespace, Name: g.Name}}
}

func listenerSetOwner(set *gatewayv1.ListenerSet) Owner {
	return Owner{KindListenerSet, types.NamespacedName{Namespace: set.Namespace, Name: set.Name}}
}

// gatewayProblem returns why the Gateway is not accepted, or nil. Of the
// listeners only its own count: a tenant cannot break the platform team's
// Gateway. invalid is why the settings are not valid, or nil.
func (r *Result) gatewayProblem(s *Snapshot, invalid *Problem) *Problem {
	if invalid != nil {
		return invalid
	}
	if problem := cmp.Or(addressProblem(s), r.limitProblem(s)); problem != nil {
		return problem
	}
	if len(r.listeners) > 0 && !slices.ContainsFunc(r.listeners, func(l *Listener) bool { return l.Rejected == nil }) {
		return &Problem{Reason: reasonNotValid, Message: "No listener of the Gateway is accepted: " + describeInvalid(r.listeners) + "."}
	}
	return nil
}

// ReasonLimitExceeded is the reason of Accepted for a Gateway whose namespace
// has as many tunnels as its class permits.
const ReasonLimitExceeded = "LimitExceeded"

// limitProblem returns why the Gateway cannot have a tunnel beside those that
// its namespace has, or nil. The oldest Gateways have precedence, after the
// Tunnels that no Gateway uses any more.
func (r *Result) limitProblem(s *Snapshot) *Problem {
	limit, used := r.Settings.TunnelsPerNamespace(), s.OlderGateways+s.OrphanedTunnels
	if used < limit {
		return nil
	}
	return &Problem{Reason: ReasonLimitExceeded, Message: fmt.Sprintf(
		"Namespace %s uses %d tunnels (older Gateways: %d, Tunnels without a Gateway: %d), and limits.tunnelsPerNamespace is %d. "+
			"Delete a Gateway in the namespace, or ask the platform team to delete Tunnels or to raise the limit.",
		s.Gateway.Namespace, used, s.OlderGateways, s.OrphanedTunnels, limit)}
}

// Older reports whether Gateway a takes precedence over Gateway b because of its
// age. Of two that were created in the same second it is the one whose name sorts
// first.
func Older(a, b *gatewayv1.Gateway) bool {
	return cmp.Or(cmp.Compare(ageOf(a.CreationTimestamp), ageOf(b.CreationTimestamp)),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// addressProblem returns which address of spec.addresses cannot be given, or
// nil. The only address of a Gateway is the hostname of its tunnel. An entry
// without a value accepts any address.
func addressProblem(s *Snapshot) *Problem {
	for i, address := range s.Gateway.Spec.Addresses {
		own := s.Tunnel != "" && address.Value == s.Tunnel.Hostname() &&
			ptr.Deref(address.Type, gatewayv1.IPAddressType) == gatewayv1.HostnameAddressType
		if address.Value != "" && !own {
			return &Problem{Reason: string(gatewayv1.GatewayReasonUnsupportedAddress), Message: fmt.Sprintf(
				"spec.addresses[%d] asks for %q; the address of a tunnel is given by Cloudflare, so remove the value.", i, address.Value)}
		}
	}
	return nil
}
