package xds

import (
	"slices"
	"strings"
)

// compare finds the names for which the client's resources can differ from the set. It
// compares all of them only if the last comparison was not with the set's base.
func (s *subscription) compare(all *set) {
	switch {
	case all == nil || s.compared == all.revision:
		return
	case s.compared != nil && s.compared == all.base:
		for _, name := range all.changed {
			s.differing[name] = struct{}{}
		}
	default:
		for name, r := range all.all {
			if s.held[name] != r.Version {
				s.differing[name] = struct{}{}
			}
		}
		for name := range s.held {
			if !all.has(name) {
				s.differing[name] = struct{}{}
			}
		}
	}
	s.compared = all.revision
}

// missing returns the resources that the client wants and neither has nor refused, by name.
func (s *subscription) missing(all *set) []*resource {
	if all == nil || !s.isStarted {
		return nil
	}
	s.compare(all)
	var missing []*resource
	for name := range s.differing {
		r, version := all.get(name), s.held[name]
		switch {
		case r.GetVersion() == version, version == "" && !s.wants(name):
			delete(s.differing, name) // until one of them changes
		case r != nil && s.wants(name) && s.refused[name] != r.Version:
			missing = append(missing, r)
		default: // refused, or the client has what does not exist
		}
	}
	sortByName(missing)
	return missing
}

// missingAmong is [subscription.missing] for resources that belong to no set.
func (s *subscription) missingAmong(all resources) []*resource {
	var missing []*resource
	for name := range s.names {
		if r, ok := all[name]; ok && s.held[name] != r.Version && s.refused[name] != r.Version {
			missing = append(missing, r)
		}
	}
	sortByName(missing)
	return missing
}

func sortByName(all []*resource) {
	slices.SortFunc(all, func(a, b *resource) int { return strings.Compare(a.Name, b.Name) })
}

// hasAll reports whether the client has acknowledged all resources in the set.
func (s *subscription) hasAll(all *set) bool {
	if !s.isStarted {
		return all.size() == 0
	}
	s.compare(all)
	for name := range s.differing {
		if r := all.get(name); r != nil && s.held[name] != r.Version {
			return false
		}
	}
	return !slices.ContainsFunc(s.outstanding, func(r *response) bool { return len(r.added) > 0 })
}

// heldBeyond returns the names that the client has and that are not in the set, sorted. The
// client has to want all resources.
func (s *subscription) heldBeyond(all *set) []string {
	s.compare(all)
	var names []string
	for name := range s.differing {
		if _, ok := s.held[name]; ok && !all.has(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
