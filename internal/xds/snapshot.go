package xds

// snapshot contains the resources that a Gateway's Envoys should have. It never
// changes.
type snapshot struct {
	// edition identifies the snapshot's resources without its endpoints. A newer snapshot
	// with other ones has a greater edition.
	edition uint64
	byKind  [kinds]*set
	// isPartial reports whether a rejection holds back a part of the publication, and
	// lacksRoutes whether it omits a RouteConfiguration or a scope for this reason.
	isPartial, lacksRoutes bool
	// whole are the routes for clients without scopes.
	whole *wholeRoutes
}

// isComplete reports whether the snapshot is known and has the routes for all hostnames.
func (s *snapshot) isComplete() bool { return s != nil && !s.lacksRoutes }

// hasSameEdition reports whether the other snapshot differs at most in its endpoints.
func (s *snapshot) hasSameEdition(other *snapshot) bool {
	for k := range s.byKind {
		if kind(k) != endpoints && s.byKind[k] != other.byKind[k] {
			return false
		}
	}
	return true
}

// withEndpoints returns the snapshot with other endpoints.
func (s *snapshot) withEndpoints(r *set) *snapshot {
	c := *s
	c.byKind[endpoints] = r
	return &c
}

// of returns the snapshot's resources of a type, or nil if the snapshot is nil.
func (s *snapshot) of(k kind) *set {
	if s == nil {
		return nil
	}
	return s.byKind[k]
}

// usesScopes reports whether scopes select the RouteConfiguration for a request. Otherwise
// each listener has one RouteConfiguration, which shares its name.
func (s *snapshot) usesScopes() bool { return s.of(scopes).size() > 0 }

// isPublished reports whether the snapshot has all the versions. RouteConfigurations can be
// those for clients without scopes.
func (s *snapshot) isPublished(k kind, versions map[string]string) bool {
	for name, version := range versions {
		r := s.byKind[k].get(name)
		if r == nil && k == routes {
			r = s.whole.get(name)
		}
		if r.GetVersion() != version {
			return false
		}
	}
	return true
}
