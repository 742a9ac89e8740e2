package controller

import (
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

// A Gateway is forgotten in two steps: leave, when the controller does not manage it,
// and forget, when it has no Tunnel either. Its metrics end with the reconcile that
// calls forget: see [observer.recordState]. The loader forgets the certificates for a
// Gateway that it does not find: see [state.CachedCertificates].

// leave forgets the Gateway's statuses and events, because another controller may
// manage it now.
func (p *process) leave(key state.Key) {
	p.writer.Forget(key)
	p.hostnames.remove(key.NamespacedName)
	if m := p.memories.find(key); m != nil {
		m.warned, m.loaded, m.decisions, m.statuses = nil, state.Previous{}, nil, status.Last{}
	}
}

// forget forgets a Gateway that has no Tunnel, apart from its unprocessed changes.
func (p *process) forget(key state.Key) {
	p.envoys.remove(key.NamespacedName)
	p.dns.forget(key.NamespacedName)
	p.access.forget(key.NamespacedName)
	p.memories.forget(key)
}
