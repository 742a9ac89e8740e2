package xds

import (
	"maps"
	"slices"
	"strconv"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// orderTimeout is how long routes wait until clusters and endpoints are
	// acknowledged.
	orderTimeout = 2 * time.Second
	// stallTimeout is how long a client may take for an acknowledgement. The largest table
	// takes 3 s.
	stallTimeout = time.Minute
	// longestEndpointsPause limits the pause between endpoint changes.
	longestEndpointsPause = 500 * time.Millisecond
)

// session is the state behind one stream. It decides what to send next, without I/O.
//
// Clusters, endpoints and secrets precede the routes that use them, and routes precede the
// scopes that select them. Unused resources are removed in the opposite order.
// Listeners precede routes, too, except the listener for probes. The type stream shows an
// example.
type session struct {
	// latest is the newest snapshot for the client, or nil if it is unknown. It replaces
	// target when the client has the target.
	latest, target *snapshot
	// byName are endpoints for clusters that the target lacks, while it lacks routes.
	byName resources
	types  [kinds]subscription
	// pending are the clusters whose endpoints precede the routes.
	pending map[string]struct{}
	// deadline is when routes no longer wait for clusters, endpoints and listeners.
	deadline time.Time
	// leaked are the clusters in rejected responses. Envoy may have applied some.
	leaked map[string]struct{}
	// hasSentRoutes reports whether routes or scopes from the target were sent.
	hasSentRoutes bool
	// isNew reports whether the client started without scopes and has not had all the routes
	// since.
	isNew bool

	pace, endpointsPace pace
	nonces              uint64
}

// reply is a client's answer to a response.
type reply struct {
	kind kind
	*response
	took time.Duration
	// problem is why the client rejected the response; empty if it accepted the
	// response.
	problem string
}

// receive handles a request. It returns nil if the request does not answer a response.
// A type that this server does not know belongs to a newer controller's bootstrap. Its
// subscriptions stay without a response, and the other types are served.
func (s *session) receive(r *discoveryv3.DeltaDiscoveryRequest, now time.Time) (*reply, error) {
	k, ok := kindOf(r.TypeUrl)
	switch {
	case r.TypeUrl == "":
		return nil, status.Error(codes.InvalidArgument, "the request has no type")
	case !ok:
		return nil, nil
	}
	sub := &s.types[k]
	isFirst := !sub.isStarted
	if isFirst {
		if err := sub.start(k, r); err != nil {
			return nil, err
		}
		s.isNew = s.isNew || k == scopes && len(sub.held) == 0
	}
	answer := s.answer(k, r, now)
	return answer, sub.update(r, isFirst)
}

// answer handles an acknowledgement or a rejection.
func (s *session) answer(k kind, r *discoveryv3.DeltaDiscoveryRequest, now time.Time) *reply {
	sub := &s.types[k]
	response := sub.take(r.ResponseNonce)
	if response == nil {
		return nil
	}
	answer := &reply{kind: k, response: response, took: now.Sub(response.sent)}
	if r.ErrorDetail != nil {
		answer.problem = problemText(r.ErrorDetail.Message)
		s.reject(k, response)
		return answer
	}
	switch k {
	case endpoints:
		s.endpointsPace.acknowledged(now, min(answer.took, longestEndpointsPause))
		for _, a := range response.added {
			delete(s.pending, a.Name)
		}
	default:
		s.pace.acknowledged(now, answer.took)
	}
	return answer
}

// reject undoes what the server remembers about a response.
func (s *session) reject(k kind, r *response) {
	sub := &s.types[k]
	added := sub.revert(r)
	if k == endpoints && len(r.added) > 1 {
		sub.limit = len(r.added) / 2 // to find the resource that the client rejects
		return
	}
	sub.refuse(r)
	if k != clusters {
		return
	}
	if s.leaked == nil {
		s.leaked = map[string]struct{}{}
	}
	for _, name := range added {
		s.leaked[name] = struct{}{}
		delete(s.pending, name)
	}
}

// follow makes the session bring the client to the newest snapshot. After a rejection,
// the session does not complete the present target first.
func (s *session) follow(latest *snapshot, byName resources) {
	s.latest, s.byName = latest, byName
	switch {
	case s.target == nil:
	case latest == nil:
		s.target = nil
	case (latest.isPartial || s.target.isPartial) && latest.edition != s.target.edition:
		hasSentRoutes := s.hasSentRoutes
		s.begin()
		s.hasSentRoutes = hasSentRoutes
	}
}

// step is a stream's next action: to send a response, or to wait.
type step struct {
	kind kind
	*response
	// wait is the time after which to decide again; 0 if only a request or another
	// snapshot can change the decision.
	wait time.Duration
	// isHeld reports whether routes wait for clusters, endpoints or listeners.
	isHeld bool
	// isSettled reports whether the client has acknowledged all resources in the
	// target.
	isSettled bool
}

// next decides what to do next, records it, and fails if the client stalls.
func (s *session) next(now time.Time) (step, error) {
	oldest := time.Duration(0)
	for k := range s.types {
		for _, r := range s.types[k].outstanding {
			oldest = max(oldest, now.Sub(r.sent))
		}
	}
	if oldest >= stallTimeout {
		return step{}, status.Errorf(codes.DeadlineExceeded, "no acknowledgement within %s", stallTimeout)
	}
	next := s.decide(now)
	if next.response == nil && s.isWaiting() {
		next.wait = shorter(next.wait, stallTimeout-oldest)
	}
	if next.response != nil {
		s.nonces++
		next.nonce, next.sent, next.snapshot = strconv.FormatUint(s.nonces, 10), now, s.target
		s.types[next.kind].send(next.response)
	}
	return next, nil
}

func (s *session) isWaiting() bool {
	return slices.ContainsFunc(s.types[:], func(t subscription) bool { return len(t.outstanding) > 0 })
}

// decide returns the next step without recording it.
func (s *session) decide(now time.Time) step {
	if s.latest == nil {
		s.target = nil
		next := s.endpoints(now)
		if next.response == nil {
			wait := next.wait
			next = s.removals(false)
			next.wait = wait
		}
		return next
	}
	if s.target == nil {
		s.begin()
	} else if s.target.edition == s.latest.edition {
		s.target = s.latest // perhaps with other endpoints
	}
	next := s.towardsTarget(now)
	if next.response != nil || next.isHeld || s.isSending() || s.target.edition == s.latest.edition {
		return next
	}
	if pause := s.pace.remaining(now); pause > 0 {
		next.wait = shorter(next.wait, pause)
		return next
	}
	s.begin()
	return s.towardsTarget(now)
}

// towardsTarget returns the next step on the way to the target.
func (s *session) towardsTarget(now time.Time) step {
	first := s.endpoints(now)
	if first.response != nil {
		return first
	}
	if next := s.one(secrets); next.response != nil {
		return next
	}
	if next := s.one(limits); next.response != nil {
		return next
	}
	next := s.clustersAndRoutes(now)
	if next.response == nil && !next.isHeld {
		next = s.afterRoutes()
	}
	next.wait = shorter(next.wait, first.wait)
	return next
}

// begin starts to bring the client to the newest snapshot.
func (s *session) begin() {
	if s.target != nil && s.target.edition < s.latest.edition {
		s.pace.begin(s.latest.edition - s.target.edition)
	}
	s.target, s.hasSentRoutes, s.deadline = s.latest, false, time.Time{}
	s.types[clusters].refused = map[string]string{}
	s.pending = map[string]struct{}{}
	for _, r := range s.types[endpoints].missing(s.target.byKind[endpoints]) {
		s.pending[r.Name] = struct{}{}
	}
}

// endpoints sends changed endpoints. They wait until the previous endpoints are
// acknowledged and the pause after them has passed, and for nothing else.
func (s *session) endpoints(now time.Time) step {
	sub := &s.types[endpoints]
	if !sub.isStarted || len(sub.outstanding) > 0 {
		return step{}
	}
	added, removed := s.changedEndpoints(sub)
	if len(added)+len(removed) == 0 {
		sub.limit = 0
		return step{}
	}
	if pause := s.endpointsPace.remaining(now); pause > 0 {
		return step{wait: pause}
	}
	if sub.limit > 0 && len(added) > sub.limit {
		added = added[:sub.limit]
	}
	s.holdRoutes(now)
	return step{kind: endpoints, response: &response{added: added, removed: removed}}
}

// holdRoutes makes the target's routes wait until what is sent now is acknowledged, but
// at most [orderTimeout] from its first call.
func (s *session) holdRoutes(now time.Time) {
	if s.deadline.IsZero() {
		s.deadline = now.Add(orderTimeout)
	}
}

// clustersAndRoutes sends the target's clusters, listeners and routes that the client
// does not have.
func (s *session) clustersAndRoutes(now time.Time) step {
	sub := &s.types[clusters]
	if !sub.isStarted {
		return step{}
	}
	added := sub.missing(s.target.byKind[clusters])
	if len(added) > 0 || sub.needsAnswer {
		s.holdRoutes(now) // also when a removal precedes them
	}
	if len(sub.outstanding) == 0 && (len(added) > 0 || sub.needsAnswer) {
		s.awaitEndpoints(added)
		return step{kind: clusters, response: &response{added: added}}
	}
	if s.refusesClusters() {
		return step{} // the routes may use the refused clusters
	}
	if remaining := s.deadline.Sub(now); remaining > 0 && (len(added) > 0 || s.lacksForRoutes()) {
		return step{wait: remaining, isHeld: true}
	}
	return s.listenersAndRoutes(now)
}

// lacksForRoutes reports whether the client has not acknowledged what the routes need.
func (s *session) lacksForRoutes() bool {
	return s.isSendingClusters() || len(s.pending) > 0 || s.lacksSecrets()
}

// awaitEndpoints makes the routes wait for the new clusters' endpoints, too.
func (s *session) awaitEndpoints(added []*resource) {
	for _, r := range added {
		if s.target.byKind[endpoints].has(r.Name) {
			s.pending[r.Name] = struct{}{}
		}
	}
}

// one sends a resource that the client does not have in its own response, so that a
// rejection concerns only one.
func (s *session) one(k kind) step {
	sub := &s.types[k]
	for _, r := range sub.missing(s.target.byKind[k]) {
		if sub.onItsWay[r.Name] == 0 {
			return step{kind: k, response: &response{added: []*resource{r}}}
		}
	}
	return step{}
}

// removals removes the clusters that no route uses after the routes have settled. It
// also removes clusters from a rejected response if no routes followed it.
func (s *session) removals(isSettled bool) step {
	sub := &s.types[clusters]
	if !sub.isStarted || len(sub.outstanding) > 0 || !isSettled && s.hasSentRoutes {
		return step{}
	}
	kept := s.target.of(clusters)
	removed := map[string]struct{}{}
	for name := range s.leaked {
		if !kept.has(name) {
			removed[name] = struct{}{}
			delete(s.leaked, name)
		}
	}
	if isSettled {
		for _, name := range sub.heldBeyond(kept) {
			removed[name] = struct{}{}
		}
	}
	if len(removed) == 0 {
		return step{}
	}
	return step{kind: clusters, response: &response{removed: slices.Sorted(maps.Keys(removed))}}
}

// shorter returns the shorter wait, where 0 means no limit.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
