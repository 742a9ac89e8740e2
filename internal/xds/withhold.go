package xds

import "k8s.io/apimachinery/pkg/types"

// Withhold forgets a Gateway's publication. Its streams stay open without a response,
// as on a leader that has published nothing yet, so the Envoys keep what they have.
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
