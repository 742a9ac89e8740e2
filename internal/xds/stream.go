package xds

import (
	"cmp"
	"context"
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

// stream is the stream of an Envoy.
type stream struct {
	*connection
	session session
	// wake has a value when the target of the Gateway may have changed.
	wake chan struct{}

	// completed is the last edition that the Envoy has acknowledged, and sequence the
	// newest sequence that it acknowledged before. Server.mu guards both.
	completed uint64
	sequence  int64
	// wasBehind and lastCompleted are the state at the last sweep, and isLate its result.
	wasBehind, isLate bool
	lastCompleted     uint64
	// names is the number of names that the session remembers. Server.mu guards it.
	names int
}

// notify wakes the stream.
func (st *stream) notify() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

var errNotCurrent = status.Error(codes.PermissionDenied, "the Tunnel of the certificate does not exist")

type discoveryStream = grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]

// DeltaAggregatedResources implements the service. It ignores the node in requests: the
// client is identified by its certificate.
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

// open adds the stream to its Gateway.
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

// close removes the stream from its Gateway.
func (s *Server) close(st *stream) {
	s.change(st.gateway, func() {
		delete(st.gateway.streams, st)
		st.gateway.names -= st.names
		s.recordConnected(st.gateway)
	})
}

// run serves the stream until it ends.
func (s *Server) run(ctx context.Context, st *stream, grpcStream discoveryStream) error {
	requests := receive(ctx, st, grpcStream)
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
		case r, ok := <-requests:
			if !ok {
				return nil
			}
			answer, err := st.session.receive(r, time.Now())
			if answer != nil {
				s.record(st, answer)
			}
			if err := cmp.Or(err, s.limitNames(st)); err != nil {
				return err
			}
		case <-st.wake:
		case <-expired:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// The limits of the requests on a stream. Envoy makes a few requests for a change, and not
// one for each resource. namesPerRequest is the number of names that count as one more request.
const (
	requestRate     = 200 // per second
	requestBurst    = 2000
	namesPerRequest = 1000
)

// costOf returns the number of requests that a request counts as.
func costOf(r *discoveryv3.DeltaDiscoveryRequest) int {
	names := len(r.InitialResourceVersions) + len(r.ResourceNamesSubscribe) + len(r.ResourceNamesUnsubscribe)
	return min(1+names/namesPerRequest, requestBurst)
}

// limitNames returns an error if the streams of the Gateway make the server remember too many
// names.
func (s *Server) limitNames(st *stream) error {
	names := 0
	for k := range st.session.types {
		names += st.session.types[k].size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.gateway.names += names - st.names
	st.names = names
	if st.gateway.names > maxNamesPerGateway {
		return status.Errorf(codes.ResourceExhausted, "the Envoys of the Gateway list %d resources, the maximum is %d", st.gateway.names, maxNamesPerGateway)
	}
	return nil
}

// receive returns a channel with the requests of the stream, which is closed when the stream
// ends. Its sender waits for the receiver, which slows down a client that sends faster than the
// server works.
func receive(ctx context.Context, st *stream, grpcStream discoveryStream) <-chan *discoveryv3.DeltaDiscoveryRequest {
	requests := make(chan *discoveryv3.DeltaDiscoveryRequest)
	limiter := rate.NewLimiter(requestRate, requestBurst)
	go func() {
		defer close(requests)
		for {
			r, err := grpcStream.Recv()
			if err != nil {
				return
			}
			st.resetUnread()
			if limiter.WaitN(ctx, costOf(r)) != nil {
				return
			}
			select {
			case requests <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	return requests
}

// advance sends everything that can be sent now. It returns the time after which there may be
// more to send, or 0 if only a request or a change of the target can cause that.
func (s *Server) advance(st *stream, grpcStream discoveryStream) (time.Duration, error) {
	for {
		target, err := s.targetOf(st)
		if err != nil {
			return 0, err
		}
		st.session.follow(target)
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

// targetOf returns the snapshot that the client should have.
func (s *Server) targetOf(st *stream) (*snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := st.gateway
	if s.gateways[g.name] != g {
		return nil, errNotCurrent
	}
	if g.tunnel != st.identity.Tunnel {
		return nil, nil // the publication of another Tunnel
	}
	return g.target, nil
}

// complete records that the client has acknowledged all resources of its target.
func (s *Server) complete(st *stream) {
	s.change(st.gateway, func() { st.gateway.complete(st, st.session.target) })
}

// record records the client's answer to a response.
func (s *Server) record(st *stream, answer *reply) {
	g := st.gateway
	if answer.problem != "" {
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

// send sends a response, unless the client is no longer allowed to get it.
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

// push counts a response.
func (s *Server) push(st *stream, k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gateways[st.gateway.name] == st.gateway {
		s.options.Metrics.RecordXDSPush(st.gateway.name, k.label())
	}
}
