package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// routeAction returns the action for an entry that forwards requests.
func (r *renderer) routeAction(e *routing.Entry, m routeMatch) *routev3.RouteAction {
	key := actionKey{action: e.Action, origin: e.OriginRequest}
	if rewrite := pathOf(e.Action.Forward); rewrite != nil && rewrite.Prefix {
		key.prefix = m.prefix
	}
	if action, ok := r.actions[key]; ok {
		return action
	}
	action := r.newRouteAction(e, key.prefix)
	r.actions[key] = action
	return action
}

func (r *renderer) newRouteAction(e *routing.Entry, prefix string) *routev3.RouteAction {
	forward, kind := e.Action.Forward, e.Source.Route.Kind
	action := &routev3.RouteAction{
		Timeout:                     noTimeout,
		RetryPolicy:                 r.retryPolicy(e),
		Priority:                    priority(forward.Retry),
		ClusterNotFoundResponseCode: clusterNotFoundCode(kind),
	}
	if t := forward.Timeouts; t != nil {
		action.Timeout, action.RetryPolicy = requestTimeout(t), withTimeout(action.RetryPolicy, t)
	}
	r.addBackends(action, e)
	if r.hashesClients(e) {
		action.HashPolicy = hashClient
	}
	addPathRewrite(action, pathOf(forward), prefix)
	for _, filters := range []*routing.Filters{forward.Filters, filtersOfOnly(forward)} {
		if filters == nil {
			continue
		}
		for _, mirror := range filters.Mirrors {
			action.RequestMirrorPolicies = append(action.RequestMirrorPolicies, r.mirrorPolicy(e, mirror))
		}
	}
	return action
}

func (r *renderer) addBackends(action *routev3.RouteAction, e *routing.Entry) {
	backends := e.Action.Forward.Backends
	if only := &backends[0]; len(backends) == 1 && r.isPlain(e, only) {
		action.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: r.clusters.name(e, only.Backend)}
		return
	}
	weights := make([]*routev3.WeightedCluster_ClusterWeight, len(backends))
	for i := range backends {
		weights[i] = r.clusterWeight(e, &backends[i])
	}
	action.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: &routev3.WeightedCluster{Clusters: weights}}
}

// isPlain reports whether requests to a backend and its responses stay as they are.
func (r *renderer) isPlain(e *routing.Entry, b *routing.WeightedBackend) bool {
	return requestChanges(e.Action.Forward.Filters) == nil && requestChanges(b.Filters) == nil && e.Action.Response == nil && b.Response == nil &&
		r.clusters.hostRewrite(e, b) == ""
}

// clusterWeight returns the cluster for a backend with all header changes: Envoy would
// apply the route changes after the cluster changes.
func (r *renderer) clusterWeight(e *routing.Entry, b *routing.WeightedBackend) *routev3.WeightedCluster_ClusterWeight {
	w := &routev3.WeightedCluster_ClusterWeight{Name: unresolvedCluster, Weight: wrapperspb.UInt32(uint32(b.Weight))} //nolint:gosec // above 0
	if b.Status == 0 {
		w.Name = r.clusters.name(e, b.Backend)
	}
	forward := e.Action.Forward
	var changes composition
	if host := r.clusters.hostRewrite(e, b); host != "" {
		w.HostRewriteSpecifier = &routev3.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: host}
		// Envoy ignores append_x_forwarded_host when a weighted cluster rewrites the host.
		v := visitorHost()
		changes.of(v.Key).append(v)
	}
	changes.apply(requestChanges(forward.Filters), requestChanges(b.Filters))
	request := changes.headers()
	w.RequestHeadersToAdd, w.RequestHeadersToRemove = request.add, request.remove
	response := compose(b.Response, e.Action.Response)
	w.ResponseHeadersToAdd, w.ResponseHeadersToRemove = response.add, response.remove
	return w
}

// unresolvedCluster is the name of a cluster that never exists. Requests to it get the
// status for backends that do not resolve.
const unresolvedCluster = "unresolved"

func requestChanges(f *routing.Filters) *routing.HeaderChanges {
	if f == nil {
		return nil
	}
	return f.Request
}

// pathOf returns the path change, which only a rule or its only backend has.
func pathOf(f *routing.Forward) *routing.PathChange {
	for _, filters := range []*routing.Filters{f.Filters, filtersOfOnly(f)} {
		if filters != nil && filters.Rewrite.Path != nil {
			return filters.Rewrite.Path
		}
	}
	return nil
}

// filtersOfOnly returns the filters if there is only one backend, or nil.
func filtersOfOnly(f *routing.Forward) *routing.Filters {
	if len(f.Backends) != 1 {
		return nil
	}
	return f.Backends[0].Filters
}

func addPathRewrite(action *routev3.RouteAction, change *routing.PathChange, prefix string) {
	if change == nil {
		return
	}
	path := rewritePath(change, prefix)
	switch {
	case !change.Prefix:
		action.RegexRewrite = substitution(expression("^/.*$"), path.literal)
	case path.expression != nil:
		action.RegexRewrite = path.expression
	default:
		action.PrefixRewrite = path.literal
	}
}

func (r *renderer) mirrorPolicy(e *routing.Entry, m routing.Mirror) *routev3.RouteAction_RequestMirrorPolicy {
	return &routev3.RouteAction_RequestMirrorPolicy{
		Cluster: r.clusters.name(e, m.Backend),
		RuntimeFraction: &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{
			Numerator: millionths(m.Numerator, m.Denominator), Denominator: typev3.FractionalPercent_MILLION,
		}},
		DisableShadowHostSuffixAppend: true,
	}
}

// noTimeout replaces Envoy's default of 15 seconds. Most routes share it.
var noTimeout = durationpb.New(0)

func requestTimeout(t *routing.Timeouts) *durationpb.Duration {
	if t.Request == nil {
		return noTimeout
	}
	return durationpb.New(*t.Request)
}
