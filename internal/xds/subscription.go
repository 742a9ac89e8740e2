package xds

import (
	"slices"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The limits on what a client can make the server remember.
const (
	maxNames       = 200_000
	maxNameSize    = 256
	maxVersionSize = 128
)

// wildcard subscribes to all resources of a type.
const wildcard = "*"

// subscription tracks one resource type on a stream: what the client wants, has and
// refused.
type subscription struct {
	// isStarted reports whether a request for the type has arrived.
	isStarted  bool
	isWildcard bool
	names      map[string]struct{}
	// held maps names to the versions that the client has or that are on their way to
	// it.
	held map[string]string
	// refused maps names to the versions that the client rejected. They are not sent
	// again.
	refused map[string]string
	// unanswered are names for which the client waits.
	unanswered map[string]struct{}
	// needsAnswer reports whether the client waits for an answer even if it is empty.
	needsAnswer bool
	outstanding []*response
	// limit caps the resources in a response; 0 means no limit.
	limit int
}

// response is a response that the client has not acknowledged yet.
type response struct {
	nonce    string
	sent     time.Time
	snapshot *snapshot
	added    []*resource
	removed  []string
	// previous has the versions before the response.
	previous map[string]string
}

// start begins the subscription with the versions that the client has from an earlier
// stream.
func (s *subscription) start(k kind, r *discoveryv3.DeltaDiscoveryRequest) error {
	s.isStarted = true
	s.names, s.held, s.refused, s.unanswered = map[string]struct{}{}, map[string]string{}, map[string]string{}, map[string]struct{}{}
	if len(r.InitialResourceVersions) > maxNames {
		return status.Errorf(codes.ResourceExhausted, "the request has %d initial versions, the maximum is %d", len(r.InitialResourceVersions), maxNames)
	}
	for name, version := range r.InitialResourceVersions {
		if len(name) > maxNameSize || len(version) > maxVersionSize {
			return status.Error(codes.InvalidArgument, "a resource name or version is too long")
		}
		s.held[name] = version
	}
	if (k == clusters || k == listeners) && len(r.ResourceNamesSubscribe) == 0 {
		s.isWildcard = true
	}
	s.needsAnswer = (s.isWildcard || slices.Contains(r.ResourceNamesSubscribe, wildcard)) && len(s.held) == 0
	return nil
}

// update adds and removes names. A client that subscribes again to a name wants the
// resource again.
func (s *subscription) update(r *discoveryv3.DeltaDiscoveryRequest, isFirst bool) error {
	for _, name := range r.ResourceNamesSubscribe {
		if name == wildcard {
			s.isWildcard = true
			continue
		}
		if len(name) > maxNameSize {
			return status.Error(codes.InvalidArgument, "a resource name is too long")
		}
		s.names[name] = struct{}{}
		if !isFirst {
			delete(s.held, name)
		}
		delete(s.refused, name)
		if _, ok := s.held[name]; !ok {
			s.unanswered[name] = struct{}{}
		}
	}
	for _, name := range r.ResourceNamesUnsubscribe {
		if name == wildcard {
			s.isWildcard = false
			continue
		}
		delete(s.names, name)
		delete(s.unanswered, name)
		if !s.isWildcard {
			delete(s.held, name)
			delete(s.refused, name)
		}
	}
	if len(s.names) > maxNames {
		return status.Errorf(codes.ResourceExhausted, "the client subscribes to more than %d resources", maxNames)
	}
	return nil
}

// size counts the names that the server remembers.
func (s *subscription) size() int {
	return len(s.names) + len(s.held) + len(s.refused) + len(s.unanswered)
}

func (s *subscription) wants(name string) bool {
	if s.isWildcard {
		return true
	}
	_, ok := s.names[name]
	return ok
}

// missing returns the resources that the client wants and neither has nor refused, by name.
func (s *subscription) missing(all resources) []*resource {
	var missing []*resource
	consider := func(r *resource) {
		if s.held[r.Name] != r.Version && s.refused[r.Name] != r.Version {
			missing = append(missing, r)
		}
	}
	if s.isWildcard || len(all) < len(s.names) {
		for name, r := range all {
			if s.wants(name) {
				consider(r)
			}
		}
	} else {
		for name := range s.names {
			if r, ok := all[name]; ok {
				consider(r)
			}
		}
	}
	slices.SortFunc(missing, func(a, b *resource) int { return strings.Compare(a.Name, b.Name) })
	return missing
}

// absent returns the names for which the client waits and that do not exist, sorted.
func (s *subscription) absent(all resources) []string {
	var absent []string
	for name := range s.unanswered {
		if _, ok := all[name]; !ok {
			absent = append(absent, name)
		}
	}
	slices.Sort(absent)
	return absent
}

// send records that the response is on its way.
func (s *subscription) send(r *response) {
	r.previous = map[string]string{}
	for _, added := range r.added {
		if version, ok := s.held[added.Name]; ok {
			r.previous[added.Name] = version
		}
		s.held[added.Name] = added.Version
		delete(s.unanswered, added.Name)
	}
	for _, name := range r.removed {
		delete(s.held, name)
		delete(s.unanswered, name)
	}
	s.needsAnswer = false
	s.outstanding = append(s.outstanding, r)
}

// take removes and returns the outstanding response with the nonce, or returns nil.
func (s *subscription) take(nonce string) *response {
	i := slices.IndexFunc(s.outstanding, func(r *response) bool { return r.nonce == nonce })
	if i < 0 {
		return nil
	}
	r := s.outstanding[i]
	s.outstanding = slices.Delete(s.outstanding, i, i+1)
	return r
}

// revert records that the client rejected the response. It returns the names that the
// client did not have before.
func (s *subscription) revert(r *response) (added []string) {
	for _, a := range r.added {
		if s.held[a.Name] != a.Version {
			continue // unsubscribed meanwhile
		}
		if version, ok := r.previous[a.Name]; ok {
			s.held[a.Name] = version
			continue
		}
		delete(s.held, a.Name)
		added = append(added, a.Name)
	}
	return added
}

// refuse keeps the resources in a rejected response from being sent again.
func (s *subscription) refuse(r *response) {
	for _, a := range r.added {
		s.refused[a.Name] = a.Version
	}
}

// has reports whether the client has acknowledged the resource in its version.
func (s *subscription) has(r *resource) bool {
	return s.wants(r.Name) && s.held[r.Name] == r.Version && !s.isOnItsWay(r.Name)
}

// isOnItsWay reports whether an outstanding response contains the resource.
func (s *subscription) isOnItsWay(name string) bool {
	return slices.ContainsFunc(s.outstanding, func(r *response) bool {
		return slices.ContainsFunc(r.added, func(a *resource) bool { return a.Name == name })
	})
}

// heldBeyond returns the names that the client has and that are not among the resources,
// sorted.
func (s *subscription) heldBeyond(all resources) []string {
	var names []string
	for name := range s.held {
		if _, ok := all[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
