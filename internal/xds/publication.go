package xds

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// Publication is the configuration of all Envoys of a Gateway.
type Publication struct {
	Gateway types.NamespacedName
	// Tunnel is the UID of the Gateway's Tunnel. Only certificates for this Tunnel get the
	// configuration.
	Tunnel types.UID
	// Generation is the metadata.generation of the Gateway from which the resources were built.
	Generation int64
	Resources  *envoy.Resources
	// Assignments has the endpoints of the clusters in Resources.Endpoints. A missing cluster
	// has no endpoints.
	Assignments envoy.Assignments
}

// Publish validates the publication, replaces the previous one of the Gateway, and returns
// without waiting for an Envoy. The server keeps the previous publication when the new one
// is not valid. A new Tunnel UID ends the streams of the old one.
func (s *Server) Publish(p Publication) error { return nil }

// PublishEndpoints replaces the endpoints of the given clusters, which the last publication
// contains. Other clusters keep their endpoints. It does nothing if the last publication is
// that of another Tunnel, or if there is none.
func (s *Server) PublishEndpoints(gateway types.NamespacedName, tunnel types.UID, a envoy.Assignments) {
}

// Remove ends the streams of a Gateway whose Tunnel is gone, and forgets its resources.
func (s *Server) Remove(gateway types.NamespacedName) {}
