package xds

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
)

// stream carries all resource types to one Envoy. Each resource has a version, a hash
// of its content; the server remembers which versions the Envoy has. For example,
// Gateway infra/shared routes app.example.com to the Service blue, and its Envoy has
// cluster "blue" and the routes "open" in version 5e1d. A team changes the HTTPRoute to
// the Service green, and the controller publishes cluster "green" and the routes "open"
// in version 90c2, without cluster "blue". [Server.Publish] wakes the stream, which
// then runs these steps:
//
//  1. It sends the clusters: nonce 7, adds "green". Routes must wait, because requests
//     fail in Envoy if a route names a cluster that Envoy does not have.
//  2. Envoy requests clusters with nonce 7, which acknowledges them. The stream sends the
//     routes: nonce 8, "open" in version 90c2.
//  3. Envoy acknowledges nonce 8. No route uses "blue" now, so the stream sends the
//     clusters again: nonce 9, removes "blue".
//  4. Envoy acknowledges nonce 9 and has the whole publication. [State] reports that.
//
// If Envoy rejects nonce 8, "open" 5e1d remains in effect, and the server stops sending
// 90c2 to the Gateway's other Envoys too, unless one has acknowledged it. If the leader
// changes, Envoy opens a stream to the new leader and lists its versions, such as
// "open" 90c2. They are the same hashes there, so the new leader sends only what
// differs.
type stream struct {
	*connection
	session session
	// wake has a value when the Gateway's target may have changed.
	wake chan struct{}

	// completed is the last edition that the Envoy has acknowledged in full. sequence
	// is the newest sequence that it acknowledged before the current publication.
	// Server.mu guards both.
	completed uint64
	sequence  int64
	// wasBehind and lastCompleted are from the last sweep, and isLate is its result.
	wasBehind, isLate bool
	lastCompleted     uint64
	// remembered counts the names that the session remembers.
	remembered int
	// names also counts the names in requests that wait for the session. Server.mu
	// guards it.
	names int
	// byName are the clusters that the stream has added to gateway.byName, or nil if the
	// client has the Gateway's routes. Server.mu guards it. resubscribed are the clusters
	// to compare.
	byName       map[string]struct{}
	resubscribed []string
}

func (st *stream) notify() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

var errNotCurrent = status.Error(codes.PermissionDenied, "the certificate's Tunnel does not exist")

type discoveryStream = grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]

// DeltaAggregatedResources implements the gRPC service. It ignores the node in
// requests: the certificate identifies the client.
func (s *Server) DeltaAggregatedResources(grpcStream discoveryStream) error {
	ctx := grpcStream.Context()
	p, ok := peer.FromContext(ctx)
	if !ok {
		return errNotCurrent
	}
	info, ok := p.AuthInfo.(peerInfo)
	if !ok {
		return errNotCurrent
	}
	st := &stream{connection: info.connection, wake: make(chan struct{}, 1)}
	if err := s.open(st); err != nil {
		return err
	}
	defer s.close(st)
	return recovery.Call(ctx, func() error { return s.run(ctx, st, grpcStream) })
}

func (s *Server) open(st *stream) error {
	if !s.isAllowed(st.connection, time.Now()) {
		return errNotCurrent
	}
	err := errNotCurrent
	g := st.gateway
	s.change(g, func() {
		if s.gateways[g.name] != g {
			return
		}
		g.streams[st], g.hasConnected = struct{}{}, true
		st.session.leaked = maps.Clone(g.rejected.leaked)
		s.recordConnected(g)
		err = nil
	})
	return err
}

func (s *Server) close(st *stream) {
	s.change(st.gateway, func() {
		delete(st.gateway.streams, st)
		st.gateway.byName.leave(st)
		st.gateway.forgetRejection()
		st.gateway.names -= st.names
		st.idleSince = time.Now()
		s.recordConnected(st.gateway)
	})
}

// run is the stream's loop: it sends what it can, then waits for a request, a new
// target, or the time that the session asks for.
func (s *Server) run(ctx context.Context, st *stream, grpcStream discoveryStream) error {
	requests := s.receive(ctx, st, grpcStream)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, err := s.advance(st, grpcStream)
		if err != nil {
			return err
		}
		var expired <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			expired = timer.C
		}
		select {
		case r, ok := <-requests.arrived:
			if !ok {
				return requests.err
			}
			answer, err := st.session.receive(r, time.Now())
			st.resubscribe(r)
			if answer != nil {
				s.record(st, answer)
			}
			if err := cmp.Or(err, s.limitNames(st, r)); err != nil {
				return err
			}
		case <-st.wake:
		case <-expired:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// Request limits per stream. Envoy sends a few requests for each change, not one for
// each resource. A request counts once more for every namesPerRequest names in it.
const (
	requestRate     = 200 // per second
	requestBurst    = 2000
	namesPerRequest = 1000
)

// costOf returns how many requests the request counts as.
func costOf(r *discoveryv3.DeltaDiscoveryRequest) int {
	return min(1+namesOf(r)/namesPerRequest, requestBurst)
}

// limitNames returns an error if, after the request, the Gateway's streams make the
// server remember too many names.
func (s *Server) limitNames(st *stream, r *discoveryv3.DeltaDiscoveryRequest) error {
	remembered := 0
	for k := range st.session.types {
		remembered += st.session.types[k].size()
	}
	added := remembered - st.remembered - namesOf(r)
	st.remembered = remembered
	return s.countNames(st, added)
}

// countNames adds to the names that the server keeps for an open stream, on which a
// request has arrived.
func (s *Server) countNames(st *stream, added int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := st.gateway
	if _, ok := g.streams[st]; !ok {
		return errNotCurrent
	}
	st.idleSince = time.Time{}
	st.names, g.names = st.names+added, g.names+added
	if g.names > s.limits.names {
		return status.Errorf(codes.ResourceExhausted, "the Envoys of the Gateway list %d resources, the maximum is %d", g.names, s.limits.names)
	}
	return nil
}

func namesOf(r *discoveryv3.DeltaDiscoveryRequest) int {
	return len(r.InitialResourceVersions) + len(r.ResourceNamesSubscribe) + len(r.ResourceNamesUnsubscribe)
}

// requests receives a stream's requests in a goroutine of its own.
type requests struct {
	// arrived is closed after the last request.
	arrived chan *discoveryv3.DeltaDiscoveryRequest
	// err is why there are no more requests, or nil. It is set when arrived is closed.
	err error
}

// receive starts to receive requests. The sender waits for the receiver, which slows
// down a client that sends faster than the server works.
func (s *Server) receive(ctx context.Context, st *stream, grpcStream discoveryStream) *requests {
	all := &requests{arrived: make(chan *discoveryv3.DeltaDiscoveryRequest)}
	go func() {
		defer close(all.arrived)
		all.err = s.forward(ctx, st, grpcStream, all.arrived)
	}()
	return all
}

// forward sends the stream's requests to the channel until the stream ends.
func (s *Server) forward(ctx context.Context, st *stream, grpcStream discoveryStream, to chan<- *discoveryv3.DeltaDiscoveryRequest) error {
	limiter := rate.NewLimiter(requestRate, requestBurst)
	for {
		r, err := grpcStream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err //nolint:wrapcheck // the status of gRPC
		}
		st.resetUnread()
		if err := s.countNames(st, namesOf(r)); err != nil {
			return err
		}
		if err := limiter.WaitN(ctx, costOf(r)); err != nil {
			return status.FromContextError(err).Err()
		}
		select {
		case to <- r:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// advance sends everything that can be sent now: in the example, one response. It
// returns the time after which there may be more to send, or 0 if only a request or a
// new target can cause that.
func (s *Server) advance(st *stream, grpcStream discoveryStream) (time.Duration, error) {
	for {
		target, byName, err := s.targetOf(st)
		if err != nil {
			return 0, err
		}
		st.session.follow(target, byName)
		next, err := st.session.next(time.Now())
		if err != nil {
			return 0, err
		}
		if next.isSettled {
			s.complete(st)
		}
		if next.response == nil {
			return next.wait, nil
		}
		if err := s.send(st, grpcStream, next); err != nil {
			return 0, err
		}
	}
}

// targetOf returns the snapshot that the client should have and, if it lacks routes, the
// endpoints for the clusters to which the client subscribes.
func (s *Server) targetOf(st *stream) (target *snapshot, byName resources, err error) {
	g := st.gateway
	isSubscribed := false
	s.locked(func() {
		if s.gateways[g.name] != g {
			err = errNotCurrent
			return
		}
		if g.tunnel == st.identity.Tunnel { // otherwise another Tunnel's publication
			target = g.target
		}
		if target.isComplete() {
			g.byName.leave(st)
			return
		}
		g.byName.follow(st)
		byName, isSubscribed = g.byName.current(), g.byName.takeReport(false)
	})
	if isSubscribed {
		s.options.Subscribed(g.name)
	}
	return target, byName, err
}

// complete records that the client has acknowledged its whole target.
func (s *Server) complete(st *stream) {
	s.change(st.gateway, func() { st.gateway.complete(st, st.session.target) })
}

// record passes the client's answer on to the Gateway. A rejection can change the
// target for all its Envoys.
func (s *Server) record(st *stream, answer *reply) {
	g := st.gateway
	if answer.problem != "" && g.logs.Allow() {
		s.options.Logger.Error(nil, "Envoy rejected its configuration", "gateway", g.name, "resources", answer.kind.label(), "problem", answer.problem)
	}
	s.change(g, func() {
		switch {
		case s.gateways[g.name] != g:
		case answer.problem == "":
			s.options.Metrics.ObserveAcknowledgement(answer.kind.label(), answer.took)
			g.acknowledge(answer.kind, answer.response)
		default:
			s.options.Metrics.RecordXDSRejection(g.name, answer.kind.label())
			g.reject(answer.kind, answer.response, answer.problem)
			for other := range g.streams {
				other.notify()
			}
		}
	})
}

// send sends a response, unless the client is no longer allowed to get it. A client
// that takes longer than [sendTimeout] to read it loses its connection.
func (s *Server) send(st *stream, grpcStream discoveryStream, next step) error {
	if !s.isAllowed(st.connection, time.Now()) {
		return errNotCurrent
	}
	slow := time.AfterFunc(sendTimeout, st.end)
	defer slow.Stop()
	if len(next.added)+len(next.removed) > 0 {
		s.push(st, next.kind)
	}
	return grpcStream.Send(&discoveryv3.DeltaDiscoveryResponse{
		TypeUrl: typeURLs[next.kind], Nonce: next.nonce, Resources: next.added, RemovedResources: next.removed,
	})
}

func (s *Server) push(st *stream, k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gateways[st.gateway.name] == st.gateway {
		s.options.Metrics.RecordXDSPush(st.gateway.name, k.label())
	}
}
