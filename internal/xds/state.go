package xds

import "k8s.io/apimachinery/pkg/types"

// State is what the server knows about the Envoys of a Gateway.
type State struct {
	// Connected is the number of Envoys that have a stream.
	Connected int
	// Known is false until the server has listened for 15 seconds or an Envoy of the Gateway
	// has connected. Until then, Connected says nothing.
	Known bool
	// Published reports whether this leader has published the Gateway's configuration.
	Published bool
	// Acknowledged is the newest Generation of which every connected Envoy has acknowledged
	// all resources, or 0. Later publications of the same generation do not lower it.
	Acknowledged int64
	// Rejected is the error of the last rejection of the current publication: at most 200
	// characters without control characters. It is empty after Envoy has acknowledged a newer
	// publication.
	Rejected string
}

// State returns the state of a Gateway.
func (s *Server) State(gateway types.NamespacedName) State { return State{} }
