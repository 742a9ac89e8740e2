package envoy

import (
	"fmt"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// static returns a configuration with the listeners that a controller sends, and the scopes and
// routes inside of them.
func static(r *envoy.Resources, endpoints envoy.Assignments) (*bootstrapv3.Bootstrap, error) {
	b := envoy.Static(r, endpoints)
	const traffic = 2 // the listener for probes comes after those for requests
	b.StaticResources.Listeners = envoy.Listeners(envoy.ReadyOptions{}, r.Telemetry)[:traffic]
	for _, l := range b.StaticResources.Listeners {
		if err := inlineScopes(l, r); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// inlineScopes replaces a listener's discovery of scopes and routes by the scopes for its
// requests.
func inlineScopes(l *listenerv3.Listener, r *envoy.Resources) error {
	filter, m := l.FilterChains[0].Filters[0], &hcmv3.HttpConnectionManager{}
	if err := filter.GetTypedConfig().UnmarshalTo(m); err != nil {
		return err
	}
	routes := map[string]*routev3.RouteConfiguration{}
	for _, c := range r.Routes {
		routes[c.Name] = c
	}
	scopes := &hcmv3.ScopedRouteConfigurationsList{}
	for _, s := range r.Scopes {
		if strings.HasPrefix(s.Name, l.Name+"/") {
			scopes.ScopedRouteConfigurations = append(scopes.ScopedRouteConfigurations, &routev3.ScopedRouteConfiguration{
				Name: s.Name, Key: s.Key, RouteConfiguration: routes[s.RouteConfigurationName],
			})
		}
	}
	m.GetScopedRoutes().ConfigSpecifier = &hcmv3.ScopedRoutes_ScopedRouteConfigurationsList{ScopedRouteConfigurationsList: scopes}
	m.GetScopedRoutes().RdsConfigSource = nil
	packed, err := anypb.New(m)
	if err != nil {
		return fmt.Errorf("pack the listener %s: %w", l.Name, err)
	}
	filter.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: packed}
	return nil
}
