package gateway

import (
	"cmp"
	"fmt"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// overrides has, by hostname, the listeners that override the tunnel settings: HTTPS
// before HTTP, then by port.
type overrides map[string][]configuredListener

type configuredListener struct {
	*Listener
	originRequest *v1alpha1.OriginRequest
}

// newOverrides returns the overrides for the listeners that claim their hostname.
func newOverrides(o settings.OriginRequests, listeners []*Listener) overrides {
	if o.IsEmpty() {
		return nil
	}
	byHostname := overrides{}
	for _, l := range listeners {
		if !l.claims {
			continue
		}
		if origin := o.For(fmt.Sprintf("%s:%d", l.Spec.Protocol, l.Spec.Port), l.Hostname()); origin != nil {
			byHostname[l.Hostname()] = append(byHostname[l.Hostname()], configuredListener{l, origin})
		}
	}
	for _, configured := range byHostname {
		slices.SortStableFunc(configured, compareListenerPrecedence)
	}
	return byHostname
}

func compareListenerPrecedence(a, b configuredListener) int {
	insecure := func(l configuredListener) int {
		if l.Spec.Protocol == gatewayv1.HTTPSProtocolType {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(insecure(a), insecure(b)), cmp.Compare(a.Spec.Port, b.Spec.Port))
}

// byRoute merges, for each route, the settings from the hostname's listeners that admit
// it. A tunnel serves the ports of all these listeners.
func (o overrides) byRoute(hostname string) map[*Route]*v1alpha1.OriginRequest {
	if len(o[hostname]) == 0 {
		return nil // most hostnames
	}
	merged := map[*Route]*v1alpha1.OriginRequest{}
	for _, l := range o[hostname] {
		for _, route := range l.routes {
			merged[route] = settings.MergeOriginRequests(merged[route], l.originRequest)
		}
	}
	return merged
}
