package gateway

import gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

// parents are the Gateway and its ListenerSets, with the listeners to which
// routes can attach.
type parents map[Owner]parentListeners

type parentListeners struct {
	listeners  []*Listener
	notAllowed *Problem // why a ListenerSet is not allowed, or nil
	// bySection are the listeners by name. It is nil for an owner with few listeners, which
	// are faster to compare.
	bySection map[gatewayv1.SectionName][]*Listener
}

func newParents(s *Snapshot, gatewayListeners []*Listener, sets []*Set) parents {
	p := make(parents, 1+len(sets))
	p[gatewayOwner(s.Gateway)] = newParentListeners(gatewayListeners, nil)
	for _, set := range sets {
		p[set.Owner] = newParentListeners(set.Listeners, set.NotAllowed)
	}
	return p
}

func newParentListeners(listeners []*Listener, notAllowed *Problem) parentListeners {
	p := parentListeners{listeners: listeners, notAllowed: notAllowed}
	const few = 8
	if len(listeners) > few {
		p.bySection = make(map[gatewayv1.SectionName][]*Listener, len(listeners))
		for i, l := range listeners {
			if p.bySection[l.Spec.Name] == nil {
				p.bySection[l.Spec.Name] = listeners[i : i+1 : i+1] // avoids a copy: names are unique
			} else {
				p.bySection[l.Spec.Name] = append(p.bySection[l.Spec.Name], l)
			}
		}
	}
	return p
}

// inSection returns the listeners that a parentRef with the section name can select.
func (p parentListeners) inSection(name *gatewayv1.SectionName) []*Listener {
	if name == nil || p.bySection == nil {
		return p.listeners
	}
	return p.bySection[*name]
}
