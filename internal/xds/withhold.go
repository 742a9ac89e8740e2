package xds

import "k8s.io/apimachinery/pkg/types"

// Withhold forgets the publication of a Gateway. Its streams stay open without an answer, as on a
// leader that has published nothing yet, so that the Envoys keep what they have.
func (s *Server) Withhold(name types.NamespacedName) {
	s.mu.Lock()
	g := s.gateways[name]
	s.mu.Unlock()
	if g == nil {
		return
	}
	g.publishing.Lock()
	defer g.publishing.Unlock()
	s.commit(g, func() {
		g.refused = ""
		g.replaceTunnel("")
	})()
}
