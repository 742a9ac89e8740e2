package dns

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
)

// released returns the Gateways that retire and have no record left to move or delete. A
// record that a Gateway in another namespace wants stays, and moves after the deletion
// delay, also if the tunnel is gone by then.
func (s *situation) released() map[types.NamespacedName]bool {
	released := map[types.NamespacedName]bool{}
	for _, g := range s.Gateways {
		if g.State == ownership.Retiring {
			released[g.NamespacedName] = true
		}
	}
	if len(released) == 0 || !s.mayManage() {
		return released
	}
	if !s.GatewaysKnown || s.view == nil || s.Memory.records.outdated {
		return map[types.NamespacedName]bool{}
	}
	for name, set := range s.view.sets {
		if holder := s.holderOf(set); holder != nil && released[holder.NamespacedName] {
			c, ok := s.needed(name)
			released[holder.NamespacedName] = !ok || c.due > s.Uptime
		}
	}
	return released
}

// holderOf returns the Gateway to which a record with a valid mark leads, or nil.
func (s *situation) holderOf(set *recordSet) *party {
	if !set.marked {
		return nil
	}
	r, _ := set.address()
	return s.byTarget[target(r)]
}
