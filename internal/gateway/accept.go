package gateway

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func gatewayOwner(g *gatewayv1.Gateway) Owner {
	return Owner{KindGateway, types.NamespacedName{Namespace: g.Namespace, Name: g.Name}}
}

func setOwner(set *gatewayv1.ListenerSet) Owner {
	return Owner{KindListenerSet, types.NamespacedName{Namespace: set.Namespace, Name: set.Name}}
}

// gatewayProblem says why the Gateway is not accepted, or nil. Only its own
// listeners count: a tenant cannot break the platform team's Gateway. invalid is
// why its settings are not valid, or nil.
func gatewayProblem(s *Snapshot, invalid *Problem, own []*Listener) *Problem {
	if invalid != nil {
		return invalid
	}
	if problem := addressProblem(s); problem != nil {
		return problem
	}
	if len(own) > 0 && !slices.ContainsFunc(own, func(l *Listener) bool { return l.Rejected == nil }) {
		return &Problem{reasonNotValid, "No listener of the Gateway is accepted: " + describeInvalid(own) + "."}
	}
	return nil
}

// addressProblem: the only address that can be had is the tunnel's own
// hostname. An entry without a value asks for whatever there is.
func addressProblem(s *Snapshot) *Problem {
	for i, address := range s.Gateway.Spec.Addresses {
		own := s.Tunnel != "" && address.Value == s.Tunnel.Hostname() &&
			ptr.Deref(address.Type, gatewayv1.IPAddressType) == gatewayv1.HostnameAddressType
		if address.Value != "" && !own {
			return &Problem{string(gatewayv1.GatewayReasonUnsupportedAddress), fmt.Sprintf(
				"spec.addresses[%d] asks for %q; the address of a tunnel is given by Cloudflare, so remove the value.", i, address.Value)}
		}
	}
	return nil
}
