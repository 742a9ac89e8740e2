package controller

import (
	"sync"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// reservations prevents Gateways from claiming the same existing tunnel concurrently.
type reservations struct {
	mu       sync.Mutex
	byTunnel map[string]state.Key // the Gateway by tunnel ID
}

// reserve reserves the tunnel for the Gateway. It reports whether another Gateway has
// already reserved it.
func (r *reservations) reserve(id string, key state.Key) (conflict bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if holder, ok := r.byTunnel[id]; ok && holder != key {
		return true
	}
	r.byTunnel[id] = key
	return false
}

// release removes a Gateway's reservations.
func (r *reservations) release(key state.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, holder := range r.byTunnel {
		if holder == key {
			delete(r.byTunnel, id)
		}
	}
}
