package xds

// acknowledgements are the newest routes and scopes that an Envoy has acknowledged.
type acknowledgements struct {
	// completed is the newest snapshot that an Envoy has acknowledged as a whole.
	completed *snapshot
	// newer are acknowledged in snapshots after that one.
	newer [kinds]map[string]acknowledged
}

// acknowledged is a resource with the snapshot that has its clusters.
type acknowledged struct {
	*resource
	*snapshot
}

// add records that an Envoy has acknowledged the snapshot's resource.
func (a *acknowledgements) add(k kind, r *resource, s *snapshot) {
	if _, from := a.find(k, r.Name); from != nil && from.edition > s.edition {
		return
	}
	if a.newer[k] == nil {
		a.newer[k] = map[string]acknowledged{}
	}
	a.newer[k][r.Name] = acknowledged{r, s}
}

// complete records that an Envoy has acknowledged the whole snapshot. Resources that it
// lacks are in effect nowhere else, unless a newer snapshot has them.
func (a *acknowledgements) complete(s *snapshot) {
	if a.completed != nil && a.completed.edition > s.edition {
		return
	}
	a.completed = s
	for _, all := range a.newer {
		for name, r := range all {
			if r.edition <= s.edition {
				delete(all, name)
			}
		}
	}
}

// find returns the acknowledged resource with the name, and the snapshot that has its
// clusters, or nil.
func (a *acknowledgements) find(k kind, name string) (*resource, *snapshot) {
	if r, ok := a.newer[k][name]; ok {
		return r.resource, r.snapshot
	}
	if r := a.completed.of(k).get(name); r != nil {
		return r, a.completed
	}
	return nil, nil
}
