package envoy

import (
	"time"

	mutationrulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// The listener names. The names of a listener's RouteConfigurations begin with its name.
const (
	// ListenerOpen serves the hostnames that require no Access.
	ListenerOpen = "open"
	// ListenerProtected serves the hostnames that require Access. Only ingress rules with
	// access lead to it.
	ListenerProtected = "protected"
	// ListenerReady answers the kubelet and Prometheus.
	ListenerReady = "ready"
)

// ReadyOptions describes the listener that is reachable from outside the pod.
type ReadyOptions struct {
	// Metrics reports whether other pods can read the metrics.
	Metrics bool
	// IPv6 reports whether the listener accepts connections to IPv6 addresses too. It cannot where
	// the kernel has no IPv6.
	IPv6 bool
}

// Listeners returns the listeners of an Envoy beside a connector.
func Listeners(ready ReadyOptions, telemetry routing.Telemetry) []*listenerv3.Listener {
	return append(trafficListeners(telemetry, dynamicRoutes(ListenerOpen), dynamicRoutes(ListenerProtected)), readyListener(ready))
}

// trafficListeners returns the listeners for requests.
func trafficListeners(telemetry routing.Telemetry, open, protected setRoutes) []*listenerv3.Listener {
	return []*listenerv3.Listener{openListener(telemetry, open), protectedListener(telemetry, protected)}
}

// setRoutes sets where a listener gets its routes from.
type setRoutes func(*hcmv3.HttpConnectionManager)

// dynamicRoutes are the routes for the bucket of a request.
func dynamicRoutes(listener string) setRoutes {
	return func(m *hcmv3.HttpConnectionManager) {
		m.EarlyHeaderMutationExtensions = append(m.EarlyHeaderMutationExtensions, startScope(listener))
		m.HttpFilters = append([]*hcmv3.HttpFilter{bucketFilter(listener)}, m.HttpFilters...)
		m.RouteSpecifier = &hcmv3.HttpConnectionManager_ScopedRoutes{ScopedRoutes: scopedRoutes()}
	}
}

func staticRoutes(c *routev3.RouteConfiguration) setRoutes {
	return func(m *hcmv3.HttpConnectionManager) {
		m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: c}
	}
}

func openListener(telemetry routing.Telemetry, set setRoutes) *listenerv3.Listener {
	m := connectionManager(ListenerOpen, corsFilter(), routerFilter())
	m.StripTrailingHostDot = true
	set(m)
	return trafficListener(ListenerOpen, PortOpen, telemetry, m)
}

// protectedListener serves the hostnames that require Access. A connector compares hosts
// with regard to case and to a dot at the end, so that a host in another form can have
// matched the rule for a wider hostname with another audience. The listener refuses such
// hosts, and the open one has no routes for them.
func protectedListener(telemetry routing.Telemetry, set setRoutes) *listenerv3.Listener {
	m := connectionManager(ListenerProtected, canonicalHostFilter(), corsFilter(), routerFilter())
	set(m)
	return trafficListener(ListenerProtected, PortProtected, telemetry, m)
}

// readyListener answers the kubelet and, if permitted, Prometheus. An Envoy gets it after
// it has acknowledged the other listeners and their routes, so that every answer means
// ready. The listener does not use the admin interface's /ready, whose thread is busy
// while Envoy builds a large table.
func readyListener(o ReadyOptions) *listenerv3.Listener {
	get := func(path string) *routev3.RouteMatch {
		return &routev3.RouteMatch{
			PathSpecifier: &routev3.RouteMatch_Path{Path: path},
			Headers:       []*routev3.HeaderMatcher{headerMatcher(routing.ValueMatch{Name: ":method", Value: "GET"})},
		}
	}
	ready := &routev3.DirectResponseAction{Status: 200, Body: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "ready\n"}}}
	host := &routev3.VirtualHost{Name: ListenerReady, Domains: []string{"*"}, Routes: []*routev3.Route{
		{Match: get("/ready"), Action: &routev3.Route_DirectResponse{DirectResponse: ready}},
	}}
	if o.Metrics {
		admin := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: clusterAdmin}}
		host.Routes = append(host.Routes, &routev3.Route{Match: get("/stats/prometheus"), Action: &routev3.Route_Route{Route: admin}})
	}
	m := &hcmv3.HttpConnectionManager{
		StatPrefix: ListenerReady, NormalizePath: boolValue(true), HttpFilters: []*hcmv3.HttpFilter{httpFilter(filterRouter, &routerv3.Router{})},
	}
	staticRoutes(&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{host}})(m)
	if !o.IPv6 {
		return newListener(ListenerReady, "0.0.0.0", PortReady, m)
	}
	listener := newListener(ListenerReady, "::", PortReady, m)
	listener.GetAddress().GetSocketAddress().Ipv4Compat = true
	return listener
}

// trafficListener returns a listener for requests, which only the connector reaches.
func trafficListener(name string, port uint32, telemetry routing.Telemetry, m *hcmv3.HttpConnectionManager) *listenerv3.Listener {
	addRouteMetrics(m, telemetry)
	addAccessLog(m, telemetry.AccessLog)
	setTracing(m, telemetry.Tracing)
	addProxyStatus(m, telemetry)
	listener := newListener(name, "127.0.0.1", port, m)
	listener.Metadata = listenerMetadata(telemetry)
	return listener
}

func newListener(name, host string, port uint32, m *hcmv3.HttpConnectionManager) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: name, Address: socketAddress(host, port),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(m)},
		}}}},
	}
}

// connectionManager returns the settings for both listeners. Only routes, the connectors
// and Cloudflare limit how long requests take.
func connectionManager(name string, filters ...*hcmv3.HttpFilter) *hcmv3.HttpConnectionManager {
	none := durationpb.New(0)
	return &hcmv3.HttpConnectionManager{
		StatPrefix: name,
		CodecType:  hcmv3.HttpConnectionManager_AUTO,
		// The client is the last entry in X-Forwarded-For, which Cloudflare's edge wrote.
		UseRemoteAddress:              boolValue(true),
		XffNumTrustedHops:             1,
		SkipXffAppend:                 true,
		InternalAddressConfig:         &hcmv3.HttpConnectionManager_InternalAddressConfig{},
		EarlyHeaderMutationExtensions: []*corev3.TypedExtensionConfig{prepareHeaders()},
		NormalizePath:                 boolValue(true),
		MergeSlashes:                  true,
		ServerHeaderTransformation:    hcmv3.HttpConnectionManager_PASS_THROUGH,
		GenerateRequestId:             boolValue(false),
		PreserveExternalRequestId:     true,
		SchemeHeaderTransformation:    matchUpstreamScheme(),
		MaxRequestHeadersKb:           wrapperspb.UInt32(maxHeadersKiB),
		StreamIdleTimeout:             none,
		RequestTimeout:                none,
		RequestHeadersTimeout:         none,
		DelayedCloseTimeout:           durationpb.New(time.Second),
		CommonHttpProtocolOptions:     downstreamOptions(),
		HttpProtocolOptions:           downstreamHTTP1Options(),
		UpgradeConfigs:                []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		HttpFilters:                   filters,
	}
}

// matchUpstreamScheme keeps the visitor's https in redirects.
func matchUpstreamScheme() *corev3.SchemeHeaderTransformation {
	return &corev3.SchemeHeaderTransformation{MatchUpstream: true}
}

// downstreamOptions keep idle connections longer than the connectors do, which reuse them.
func downstreamOptions() *corev3.HttpProtocolOptions {
	return &corev3.HttpProtocolOptions{
		IdleTimeout: durationpb.New(time.Hour), MaxHeadersCount: wrapperspb.UInt32(maxHeaders),
		HeadersWithUnderscoresAction: corev3.HttpProtocolOptions_ALLOW,
	}
}

// downstreamHTTP1Options also accept methods that Envoy does not know. They ignore a host
// in the request target: The connector compares the header Host with its rules, but
// forwards some targets as the visitor wrote them. Envoy answers a target without a
// leading slash with 404.
func downstreamHTTP1Options() *corev3.Http1ProtocolOptions {
	options := http1Options()
	options.AllowCustomMethods = true
	options.AllowAbsoluteUrl = boolValue(false)
	return options
}

// prepareHeaders removes the headers by which a visitor could control Envoy, which Envoy
// removes itself only in part. Cloudflare's edge writes the visitor's scheme into
// X-Forwarded-Proto; a request without it counts as https, where Envoy would write http.
func prepareHeaders() *corev3.TypedExtensionConfig {
	strip := &mutationrulesv3.HeaderMutation{Action: &mutationrulesv3.HeaderMutation_RemoveOnMatch_{
		RemoveOnMatch: &mutationrulesv3.HeaderMutation_RemoveOnMatch{KeyMatcher: &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "x-envoy-"}, IgnoreCase: true,
		}},
	}}
	scheme := &mutationrulesv3.HeaderMutation{Action: &mutationrulesv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: "x-forwarded-proto", Value: "https"},
		AppendAction: corev3.HeaderValueOption_ADD_IF_ABSENT,
	}}}
	return mutateHeaders("prepare", strip, scheme)
}

// mutateHeaders changes the headers of a request before anything else reads them.
func mutateHeaders(name string, mutations ...*mutationrulesv3.HeaderMutation) *corev3.TypedExtensionConfig {
	return &corev3.TypedExtensionConfig{Name: name, TypedConfig: pack(&mutationv3.HeaderMutation{Mutations: mutations})}
}

// canonicalHost is an expression for the hosts that the connector and Envoy compare in the same
// way. For the connector, *.example.com also covers .example.com, and a host in brackets with a
// port is the host between the brackets.
const canonicalHost = `[^A-Z:.\[\]]([^A-Z:\[\]]*[^A-Z:.\[\]])?(:[0-9]*)?`

// canonicalHostFilter denies hosts with upper-case letters, brackets, or a dot at the beginning
// or the end.
func canonicalHostFilter() *hcmv3.HttpFilter {
	canonical := &routev3.HeaderMatcher{Name: ":authority", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
		StringMatch: stringMatcher(routing.ValueMatch{Value: canonicalHost, Expression: true}),
	}}
	return httpFilter("envoy.filters.http.rbac", &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_DENY,
		Policies: map[string]*rbacconfigv3.Policy{"not-canonical": {
			Principals: []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Any{Any: true}}},
			Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_NotRule{NotRule: &rbacconfigv3.Permission{
				Rule: &rbacconfigv3.Permission_Header{Header: canonical},
			}}}},
		}},
	}})
}

const filterRouter = "envoy.filters.http.router"

func corsFilter() *hcmv3.HttpFilter { return httpFilter(filterCORS, &corsv3.Cors{}) }

func routerFilter() *hcmv3.HttpFilter {
	return httpFilter(filterRouter, &routerv3.Router{SuppressEnvoyHeaders: true})
}

func httpFilter(name string, config proto.Message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(config)}}
}
