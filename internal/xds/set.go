package xds

import (
	"iter"
	"maps"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// resource is a resource as it is sent. All streams share it.
type resource = discoveryv3.Resource

// resources maps names to resources of one type.
type resources map[string]*resource

// set contains resources of one type. It never changes. The methods accept nil for an empty
// set.
type set struct {
	all resources
	// revision identifies the set, and base the set from which it was derived. changed are
	// the names that differ between both: a client that has the base needs only those.
	revision, base *revision
	changed        []string
}

// revision identifies a set by its address. Unlike a pointer to the set, it does not keep the
// set in memory.
type revision struct{ _ byte }

// newSet returns a set that was not derived from another one.
func newSet(all resources) *set { return &set{all: all, revision: &revision{}} }

// derive returns the set with the added and without the removed resources. It returns the
// set itself if nothing changes.
func (s *set) derive(added resources, removed []string) *set {
	if s == nil {
		return newSet(maps.Clone(added))
	}
	var changed []string
	for name, r := range added {
		if s.get(name).GetVersion() != r.Version {
			changed = append(changed, name)
		}
	}
	if changed = append(changed, removed...); len(changed) == 0 {
		return s
	}
	next := &set{all: maps.Clone(s.all), revision: &revision{}, base: s.revision, changed: changed}
	for _, name := range changed {
		if r, ok := added[name]; ok {
			next.all[name] = r
		} else {
			delete(next.all, name)
		}
	}
	return next
}

func (s *set) get(name string) *resource {
	if s == nil {
		return nil
	}
	return s.all[name]
}

func (s *set) has(name string) bool { return s.get(name) != nil }

func (s *set) size() int {
	if s == nil {
		return 0
	}
	return len(s.all)
}

// each iterates over the resources in any order.
func (s *set) each() iter.Seq2[string, *resource] {
	if s == nil {
		return maps.All(resources(nil))
	}
	return maps.All(s.all)
}

// contains reports whether the set has all the versions.
func (s *set) contains(versions map[string]string) bool {
	for name, version := range versions {
		if s.get(name).GetVersion() != version {
			return false
		}
	}
	return true
}

// withCommon returns the set with the other's resources where both have one.
func (s *set) withCommon(other *set) *set {
	common := resources{}
	for name := range s.each() {
		if r := other.get(name); r != nil {
			common[name] = r
		}
	}
	return s.derive(common, nil)
}

// withMissing returns the set with the other's resources that it lacks.
func (s *set) withMissing(other *set) *set {
	missing := resources{}
	for name, r := range other.each() {
		if !s.has(name) {
			missing[name] = r
		}
	}
	return s.derive(missing, nil)
}
