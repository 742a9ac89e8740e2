package xds

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// maxAwait is the maximum time that Await waits: an Envoy that acknowledges nothing must not
	// delay a change of Access.
	maxAwait = 2 * time.Second
	// awaitInterval is the interval at which Await checks the acknowledgements.
	awaitInterval = 5 * time.Millisecond
)

// Await returns when every connected Envoy of the Gateway has acknowledged the last
// publication, and after two seconds at the latest.
func (s *Server) Await(ctx context.Context, gateway types.NamespacedName) {
	ctx, cancel := context.WithTimeout(ctx, maxAwait)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, awaitInterval, true, func(context.Context) (bool, error) { // fails only when the time has passed
		return s.IsAcknowledged(gateway), nil
	})
}

// IsAcknowledged reports whether every connected Envoy of the Gateway has acknowledged the last
// publication.
func (s *Server) IsAcknowledged(name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gateways[name]
	if g == nil || g.published == nil {
		return true
	}
	for st := range g.streams {
		if st.completed != g.published.edition {
			return false
		}
	}
	return true
}
