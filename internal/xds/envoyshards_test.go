package xds_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// sharded returns a publication in which both listeners serve app.example.com with the
// backend. Further hostnames make shards.
func sharded(t *testing.T, sequence int64, b routing.Backend, further int) xds.Publication {
	t.Helper()
	table := tableFor(b)
	route, gone := &routing.Route{Kind: routing.KindHTTPRoute}, &routing.Action{Status: http.StatusGone}
	for i := range further {
		name := fmt.Sprintf("app-%d.example.com", i)
		table.Groups = append(table.Groups, routing.Group{Hostname: name, Entries: []*routing.Entry{
			{Hostname: name, Match: &routing.Match{}, Action: gone, Source: routing.Source{Route: route}},
		}})
	}
	p := rendered(sequence, b)
	served := map[string]envoy.Placement{hostname: {Open: envoy.Served, Protected: envoy.Served}}
	p.Resources = envoy.RenderTransition(table, envoy.Transition{Placements: served}, nil)
	if shards := len(p.Resources.Routes) / 2; (shards > 1) != (further > 0) {
		t.Fatalf("%d shards for %d further hostnames", shards, further)
	}
	return p
}

// asBefore returns the publication of a version without scopes.
func asBefore(t *testing.T, p xds.Publication) xds.Publication {
	t.Helper()
	p.Listeners = slices.Clone(p.Listeners)
	for i, l := range p.Listeners {
		if l.Name != envoy.ListenerReady {
			p.Listeners[i] = withoutScopes(t, l)
		}
	}
	r := *p.Resources
	r.Routes, r.Scopes = []*routev3.RouteConfiguration{envoy.Whole(envoy.ListenerOpen, r.Routes), envoy.Whole(envoy.ListenerProtected, r.Routes)}, nil
	p.Resources = &r
	return p
}

// withoutScopes returns the listener with the RouteConfiguration that shares its name.
func withoutScopes(t *testing.T, l *listenerv3.Listener) *listenerv3.Listener {
	t.Helper()
	l = proto.CloneOf(l)
	config, m := l.FilterChains[0].Filters[0].GetTypedConfig(), &hcmv3.HttpConnectionManager{}
	if err := config.UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: l.Name, ConfigSource: m.GetScopedRoutes().RdsConfigSource}}
	m.HttpFilters = slices.DeleteFunc(m.HttpFilters, func(f *hcmv3.HttpFilter) bool { return strings.Contains(f.Name, "lua") })
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	config.Value = packed.Value
	return l
}

// loadBoth sends requests to both listeners until the returned function is called, which
// checks that none failed. Some connections exist the whole time.
func (s *sidecar) loadBoth(t *testing.T) (check func()) {
	t.Helper()
	var sent atomic.Int64
	var senders sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for _, address := range []string{s.open, s.protected} {
		for _, isShort := range []bool{false, true} {
			transport := &http.Transport{DisableKeepAlives: isShort}
			senders.Go(func() {
				defer transport.CloseIdleConnections()
				for ctx.Err() == nil && !t.Failed() {
					if got, err := answer(transport, address); err != nil || !strings.HasPrefix(got, "200 ") {
						t.Errorf("a request to %s failed: %q, %v (new connections: %t)", address, got, err, isShort)
					}
					sent.Add(1)
				}
			})
		}
	}
	await(t, "request", func() bool { return sent.Load() > 10 || t.Failed() })
	return func() {
		cancel()
		senders.Wait()
		t.Logf("%d requests", sent.Load())
	}
}

func answer(transport *http.Transport, address string) (string, error) {
	request, err := http.NewRequest(http.MethodGet, "http://"+address+"/app", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Host = hostname
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, body), err
}

// wantAnswers checks the answer of both listeners on new connections.
func (s *sidecar) wantAnswers(t *testing.T, want string) {
	t.Helper()
	for _, address := range []string{s.open, s.protected} {
		if got, err := answer(&http.Transport{DisableKeepAlives: true}, address); got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// The number of shards changes together with the routes, and no request fails.
func TestEnvoyFollowsTheNumberOfShards(t *testing.T) {
	s := newSidecar(t)
	blue, _ := backend(t, "blue")
	green, _ := backend(t, "green")
	s.publish(t, sharded(t, 1, blue, 0))
	s.awaitAcknowledged(t, 1)
	check := s.loadBoth(t)
	for i, further := range []int{5000, 0, 600, 5000, 0} {
		sequence, b, text := int64(2+i), green, "200 green"
		if i%2 == 1 {
			b, text = blue, "200 blue"
		}
		s.publish(t, sharded(t, sequence, b, further))
		s.awaitAcknowledged(t, sequence)
		s.wantAnswers(t, text)
	}
	check()
	if got := s.State(shared).Rejected; got != "" {
		t.Errorf("Envoy rejected: %s", got)
	}
}

// Listeners with scopes replace those of an earlier version, and go back, and no request
// fails. Connections to the former listeners get the changed routes, too.
func TestEnvoyReplacesListenersWithoutScopes(t *testing.T) {
	for name, further := range map[string]int{"one shard": 0, "several shards": 600} {
		t.Run(name, func(t *testing.T) {
			s := newSidecar(t)
			blue, _ := backend(t, "blue")
			green, _ := backend(t, "green")
			s.publish(t, asBefore(t, sharded(t, 1, blue, further)))
			s.awaitAcknowledged(t, 1)
			check := s.loadBoth(t)
			kept := &http.Transport{MaxConnsPerHost: 1}
			defer kept.CloseIdleConnections()
			if got, err := answer(kept, s.open); got != "200 blue" {
				t.Errorf("got %q, %v", got, err)
			}
			for i := range int64(2) {
				// On the way forth the routes change, too: Envoy can have former scopes.
				s.publish(t, sharded(t, 2+3*i, green, further))
				s.awaitAcknowledged(t, 2+3*i)
				s.wantAnswers(t, "200 green")
				if got, err := answer(kept, s.open); got != "200 green" {
					t.Errorf("a connection from before the change gets %q, %v", got, err)
				}
				s.publish(t, sharded(t, 3+3*i, blue, further))
				s.awaitAcknowledged(t, 3+3*i)
				s.wantAnswers(t, "200 blue")
				if got, err := answer(kept, s.open); got != "200 blue" {
					t.Errorf("a connection from before the change gets %q, %v", got, err)
				}
				s.publish(t, asBefore(t, sharded(t, 4+3*i, blue, further)))
				s.awaitAcknowledged(t, 4+3*i)
				s.wantAnswers(t, "200 blue")
			}
			check()
		})
	}
}

// An Envoy that reconnects while the number of shards changes loses no request.
func TestEnvoyReconnectsWithShards(t *testing.T) {
	s := newSidecar(t)
	blue, _ := backend(t, "blue")
	green, _ := backend(t, "green")
	s.publish(t, sharded(t, 1, blue, 0))
	s.awaitAcknowledged(t, 1)
	check := s.loadBoth(t)
	for i, further := range []int{600, 5000, 0} {
		p := sharded(t, int64(2+i), []routing.Backend{green, blue}[i%2], further)
		s.publish(t, p)
		s.stop() // perhaps in the middle
		s.startServer(t)
		s.publish(t, p)
		s.awaitAcknowledged(t, p.Sequence)
		s.wantAnswers(t, []string{"200 green", "200 blue"}[i%2])
	}
	check()
}
