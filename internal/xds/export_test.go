package xds

import (
	"context"
	"net"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"k8s.io/apimachinery/pkg/types"
)

// Serve serves on a test listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener)
}

// Follower plays the stream of a client that acknowledges everything at once and requests the
// endpoints and routes that it needs.
type Follower struct {
	session session
	gateway *gateway
}

// Follow starts a stream to the Gateway's publications.
func (s *Server) Follow(gateway types.NamespacedName) *Follower {
	f := &Follower{gateway: s.ensureGateway(gateway)}
	for _, k := range []kind{clusters, listeners, scopes} {
		f.receive(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURLs[k]})
	}
	return f
}

// Advance sends everything until the client has the publication. It returns the number of
// responses.
func (f *Follower) Advance() int {
	sent := 0
	for {
		f.session.follow(f.gateway.target, nil)
		next, err := f.session.next(time.Now())
		switch {
		case err != nil:
			panic(err)
		case next.isSettled && next.response == nil && f.session.target.edition == f.gateway.target.edition:
			return sent
		case next.response == nil && next.wait > 0:
			f.session.pace, f.session.endpointsPace = pace{}, pace{} // does not wait
			continue
		case next.response == nil:
			panic("the client lacks something")
		}
		sent++
		f.subscribe(next.kind, next.added)
		f.receive(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURLs[next.kind], ResponseNonce: next.nonce})
	}
}

// subscribe requests what the resources need.
func (f *Follower) subscribe(k kind, added []*resource) {
	var names []string
	needed := routes
	for _, r := range added {
		switch {
		case k == scopes:
			names = append(names, selectedBy(r))
		case k == clusters && f.session.target.byKind[endpoints].has(r.Name):
			needed, names = endpoints, append(names, r.Name)
		default:
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return f.session.types[needed].wants(name) })
	if len(names) > 0 {
		f.receive(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURLs[needed], ResourceNamesSubscribe: names})
	}
}

func (f *Follower) receive(r *discoveryv3.DeltaDiscoveryRequest) {
	if _, err := f.session.receive(r, time.Now()); err != nil {
		panic(err)
	}
}
