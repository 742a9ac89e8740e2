package xds

import "github.com/tunnel-gateway/tunnel-gateway/internal/metrics"

// kind is a resource type.
type kind int

// The resource types that the server serves.
const (
	clusters kind = iota
	endpoints
	listeners
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
	routes:    "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
	secrets:   "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
	limits:    "type.googleapis.com/envoy.type.v3.TokenBucket",
}

func kindOf(typeURL string) (kind, bool) {
	for k, url := range typeURLs {
		if url == typeURL {
			return kind(k), true
		}
	}
	return 0, false
}

func (k kind) label() metrics.XDSResources {
	return [kinds]metrics.XDSResources{metrics.XDSClusters, metrics.XDSEndpoints, metrics.XDSListeners, metrics.XDSRoutes, metrics.XDSSecrets, metrics.XDSLimits}[k]
}
