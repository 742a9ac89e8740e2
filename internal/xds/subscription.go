package xds

import (
	"slices"
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
	// onItsWay counts the outstanding responses with a resource.
	onItsWay map[string]int
	// limit caps the resources in a response; 0 means no limit.
	limit int

	// compared is the set with which the client's resources were compared last. differing
	// are the names where they can differ, including all that have changed since then.
	compared  *revision
	differing map[string]struct{}
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
	s.onItsWay, s.differing = map[string]int{}, map[string]struct{}{}
	if len(r.InitialResourceVersions) > maxNames {
		return status.Errorf(codes.ResourceExhausted, "the request has %d initial versions, the maximum is %d", len(r.InitialResourceVersions), maxNames)
	}
	for name, version := range r.InitialResourceVersions {
		if len(name) > maxNameSize || len(version) > maxVersionSize {
			return status.Error(codes.InvalidArgument, "a resource name or version is too long")
		}
		s.held[name] = version
	}
	if k.isWildcard() && len(r.ResourceNamesSubscribe) == 0 {
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
			s.setWildcard(true)
			continue
		}
		if len(name) > maxNameSize {
			return status.Error(codes.InvalidArgument, "a resource name is too long")
		}
		s.names[name] = struct{}{}
		s.differing[name] = struct{}{}
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
			s.setWildcard(false)
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

func (s *subscription) setWildcard(isWildcard bool) { s.isWildcard, s.compared = isWildcard, nil }

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

// absent returns the names for which the client waits and that do not exist, sorted.
func (s *subscription) absent(exists func(name string) bool) []string {
	var absent []string
	for name := range s.unanswered {
		if !exists(name) {
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
		s.onItsWay[added.Name]++
		s.differing[added.Name] = struct{}{} // perhaps not from the set
		delete(s.unanswered, added.Name)
	}
	for _, name := range r.removed {
		delete(s.held, name)
		delete(s.unanswered, name)
		s.differing[name] = struct{}{}
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
	for _, a := range r.added {
		if s.onItsWay[a.Name]--; s.onItsWay[a.Name] == 0 {
			delete(s.onItsWay, a.Name)
		}
	}
	return r
}

// revert records that the client rejected the response. It returns the names that the
// client did not have before.
func (s *subscription) revert(r *response) (added []string) {
	for _, a := range r.added {
		if s.held[a.Name] != a.Version {
			continue // unsubscribed meanwhile
		}
		s.differing[a.Name] = struct{}{}
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
	return s.wants(r.Name) && s.held[r.Name] == r.Version && s.onItsWay[r.Name] == 0
}
