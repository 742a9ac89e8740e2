package xds

import "github.com/tunnel-gateway/tunnel-gateway/internal/metrics"

// kind is a resource type.
type kind int

// The resource types that the server serves.
const (
	clusters kind = iota
	endpoints
	listeners
	scopes
	routes
	secrets
	limits
	kinds // their number
)

// typeURLs are the type names in requests and responses.
var typeURLs = [kinds]string{
	clusters:  "type.googleapis.com/envoy.config.cluster.v3.Cluster",
	endpoints: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	listeners: "type.googleapis.com/envoy.config.listener.v3.Listener",
	scopes:    "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration",
	routes:    "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
	secrets:   "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
	limits:    "type.googleapis.com/envoy.type.v3.TokenBucket",
}

// labels are the names of the types in metrics.
var labels = [kinds]metrics.XDSResources{
	clusters:  metrics.XDSClusters,
	endpoints: metrics.XDSEndpoints,
	listeners: metrics.XDSListeners,
	scopes:    metrics.XDSScopes,
	routes:    metrics.XDSRoutes,
	secrets:   metrics.XDSSecrets,
	limits:    metrics.XDSLimits,
}

func kindOf(typeURL string) (kind, bool) {
	for k, url := range typeURLs {
		if url == typeURL {
			return kind(k), true
		}
	}
	return 0, false
}

func (k kind) label() metrics.XDSResources { return labels[k] }

// isWildcard reports whether a client that names no resources wants all of them.
func (k kind) isWildcard() bool { return k == clusters || k == listeners || k == scopes }
