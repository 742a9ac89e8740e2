package dns

import "k8s.io/apimachinery/pkg/types"

// released returns the Gateways that retire and have no record left to move or delete. A
// record that a Gateway in another namespace wants stays, and moves after the deletion
// delay, also if the tunnel is gone by then.
func (s *situation) released() map[types.NamespacedName]bool {
	released := map[types.NamespacedName]bool{}
	for _, g := range s.Gateways {
		if g.State == Retiring {
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
		r, _ := set.address()
		holder := s.byTarget[target(r)]
		if !set.marked || holder == nil || !released[holder.NamespacedName] {
			continue
		}
		if c, ok := s.needed(name); ok && c.due <= s.Uptime {
			released[holder.NamespacedName] = false
		}
	}
	return released
}
