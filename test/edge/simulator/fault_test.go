package simulator_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudflare/cloudflare-go/v7"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const tunnelsPattern = "/accounts/*/cfd_tunnel"

func TestRequestsAreCounted(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	id := c.create(t, "one").ID
	_, _ = c.new(t.Context(), "one")
	_, _ = c.configuration(t.Context(), id)
	type seen struct {
		Method, Path string
		Status       int
	}
	var got []seen
	for _, r := range s.Requests() {
		if r.Time.IsZero() {
			t.Error("a request without a time")
		}
		got = append(got, seen{r.Method, r.Path, r.Status})
	}
	want := []seen{
		{"POST", "/accounts/" + account + "/cfd_tunnel", 200},
		{"POST", "/accounts/" + account + "/cfd_tunnel", 409},
		{"GET", "/accounts/" + account + "/cfd_tunnel/" + id + "/configurations", 200},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		method, pattern string
		want            int
	}{
		{"POST", tunnelsPattern, 2},
		{"GET", tunnelsPattern, 0},
		{"GET", "/accounts/*/cfd_tunnel/*/configurations", 1},
		{"", "", 3},
	} {
		if got := s.Count(test.method, test.pattern); got != test.want {
			t.Errorf("Count(%q, %q) = %d, want %d", test.method, test.pattern, got, test.want)
		}
	}
	s.ResetRequests()
	if got := s.Count("", ""); got != 0 {
		t.Errorf("%d requests after the reset", got)
	}
}

func TestDroppedConnections(t *testing.T) {
	for name, test := range map[string]struct {
		drop    simulator.Drop
		applied bool
	}{
		"before the write": {simulator.DropBeforeWrite, false},
		"after the write":  {simulator.DropAfterWrite, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newAPI(t, simulator.Options{})
			s.Inject(simulator.Fault{Method: "POST", Path: tunnelsPattern, Times: 1, Drop: test.drop})
			if _, err := c.new(t.Context(), "one"); err == nil {
				t.Fatal("a dropped request was answered")
			}
			if _, ok := s.TunnelID("one"); ok != test.applied {
				t.Errorf("tunnel created: %t, want %t", ok, test.applied)
			}
			if requests := s.Requests(); len(requests) != 1 || requests[0].Status != 0 {
				t.Errorf("requests %+v, want one without a status", requests)
			}
			if _, err := c.new(t.Context(), "two"); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

func TestStatusFaults(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	s.Inject(simulator.Fault{Method: "POST", Times: 2, Status: 429, RetryAfter: 1500 * time.Millisecond})
	s.Inject(simulator.Fault{Path: tunnelsPattern, Status: 503})
	for _, want := range []int{429, 429, 503, 503} {
		_, err := c.new(t.Context(), "one")
		wantError(t, err, want, int64(want))
		var failed *cloudflare.Error
		if errors.As(err, &failed) && want == 429 && failed.Response.Header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After %q, want 2", failed.Response.Header.Get("Retry-After"))
		}
	}
	if len(s.Tunnels()) != 0 {
		t.Error("a refused request was carried out")
	}
	s.ClearFaults()
	c.create(t, "one")
}

func TestBodyFault(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	s.Inject(simulator.Fault{Times: 1, Body: "<html>"})
	var response *http.Response
	_, err := c.get(t.Context(), "any")
	if err == nil {
		t.Error("the client took HTML for an answer")
	}
	s.Inject(simulator.Fault{Times: 1, Body: "<html>", Status: 502})
	err = c.Get(t.Context(), "user/tokens/verify", nil, nil, option.WithResponseInto(&response))
	if err == nil || response.StatusCode != 502 || response.Header.Get("Content-Type") != "text/html" {
		t.Errorf("error %v, response %v, want 502 in text/html", err, response)
	}
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{})
		s.Inject(simulator.Fault{Latency: time.Minute})
		start := time.Now()
		s.API().ServeHTTP(httptest.NewRecorder(), createRequest(t.Context()))
		if took := time.Since(start); took != time.Minute || len(s.Tunnels()) != 1 {
			t.Errorf("took %s with %d tunnels, want 1m0s and one", took, len(s.Tunnels()))
		}
	})
}

func TestClientThatGivesUpChangesNothing(t *testing.T) {
	s := simulator.New(simulator.Options{})
	s.Inject(simulator.Fault{Latency: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	defer func() {
		aborted, _ := recover().(error)
		if !errors.Is(aborted, http.ErrAbortHandler) || len(s.Tunnels()) != 0 {
			t.Errorf("%d tunnels, want an aborted request and none", len(s.Tunnels()))
		}
	}()
	s.API().ServeHTTP(httptest.NewRecorder(), createRequest(ctx))
}

func TestLateRequestIsCarriedOutWithoutItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{})
		s.Inject(simulator.Fault{Latency: time.Minute, Late: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		s.API().ServeHTTP(httptest.NewRecorder(), createRequest(ctx))
		if took := time.Since(start); took != time.Minute || len(s.Tunnels()) != 1 {
			t.Errorf("took %s with %d tunnels, want 1m0s and one", took, len(s.Tunnels()))
		}
	})
}

func TestMomentsOfAFault(t *testing.T) {
	for name, test := range map[string]struct {
		fault         simulator.Fault
		before, after []int // tunnels that there were at each call
	}{
		"carried out":      {simulator.Fault{}, []int{0}, []int{1}},
		"dropped before":   {simulator.Fault{Drop: simulator.DropBeforeWrite}, []int{0}, nil},
		"dropped after":    {simulator.Fault{Drop: simulator.DropAfterWrite}, []int{0}, []int{1}},
		"answered instead": {simulator.Fault{Status: 500}, []int{0}, nil},
		"dropped at once":  {simulator.Fault{Drop: simulator.DropThenWrite}, []int{0}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{})
			var before, after []int
			test.fault.Before = func(r simulator.Request) {
				if r.Method != "POST" || r.Path != "/accounts/"+account+"/cfd_tunnel" || r.Time.IsZero() {
					t.Errorf("told of %+v", r)
				}
				before = append(before, len(s.Tunnels()))
			}
			test.fault.After = func(simulator.Request) { after = append(after, len(s.Tunnels())) }
			test.fault.Times = 1
			s.Inject(test.fault)
			synctest.Test(t, func(t *testing.T) {
				serve(t.Context(), s)
				synctest.Wait()
			})
			if diff := cmp.Diff(test.before, before); diff != "" {
				t.Errorf("before (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.after, after); diff != "" {
				t.Errorf("after (-want +got):\n%s", diff)
			}
		})
	}
}

// A client that leaves while Before is called changes nothing either.
func TestClientThatLeavesDuringBefore(t *testing.T) {
	for late, want := range map[bool]int{false: 0, true: 1} {
		s := simulator.New(simulator.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		s.Inject(simulator.Fault{Late: late, Before: func(simulator.Request) { cancel() }})
		serve(ctx, s)
		if got := len(s.Tunnels()); got != want {
			t.Errorf("late %t: %d tunnels, want %d", late, got, want)
		}
	}
}

// Whatever the method, a request whose connection was dropped arrives after what
// the client did next.
func TestRequestsThatArriveLate(t *testing.T) {
	const configuration = `{"config":{"ingress":[{"service":"http_status:%s"}]}}`
	for name, test := range map[string]struct {
		method, path, body string
		next               func(*testing.T, *simulator.Server, string)
		arrived            func(*simulator.Server, string) bool
	}{
		"a create": {http.MethodPost, "", `{"name":"late"}`,
			func(*testing.T, *simulator.Server, string) {},
			func(s *simulator.Server, _ string) bool { _, ok := s.TunnelID("late"); return ok }},
		"a configuration": {http.MethodPut, "/{id}/configurations", strings.Replace(configuration, "%s", "201", 1),
			func(t *testing.T, s *simulator.Server, id string) {
				call(t, s, http.MethodPut, "/"+id+"/configurations", strings.Replace(configuration, "%s", "202", 1))
			},
			func(s *simulator.Server, id string) bool {
				document, version := s.StoredConfiguration(id)
				return version == 2 && strings.Contains(string(document), "201")
			}},
		"a deletion": {http.MethodDelete, "/{id}", "",
			func(*testing.T, *simulator.Server, string) {},
			func(s *simulator.Server, _ string) bool { return s.Tunnels()[0].Deleted }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulator.New(simulator.Options{})
				id := newTunnelID(t, s)
				release := make(chan struct{})
				s.Inject(simulator.Fault{
					Times: 1, Drop: simulator.DropThenWrite, Latency: time.Minute, Before: func(simulator.Request) { <-release },
				})
				start := time.Now()
				if !dropped(func() { call(t, s, test.method, strings.Replace(test.path, "{id}", id, 1), test.body) }) {
					t.Error("the request was answered")
				}
				if took := time.Since(start); took != 0 {
					t.Errorf("the connection was dropped after %s", took)
				}
				test.next(t, s, id)
				pass(time.Hour)
				if test.arrived(s, id) {
					t.Error("the request arrived before the test let it")
				}
				close(release)
				synctest.Wait()
				if !test.arrived(s, id) {
					t.Errorf("the request did not arrive: %+v", s.Tunnels())
				}
			})
		})
	}
}

func TestClosedServerForgetsLateRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{})
		s.Inject(simulator.Fault{Drop: simulator.DropThenWrite, Latency: time.Minute})
		serve(t.Context(), s)
		s.Close()
		pass(time.Hour)
		if got := s.Tunnels(); len(got) != 0 {
			t.Errorf("tunnels %+v", got)
		}
	})
}

func TestSkippedRequests(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	s.Inject(simulator.Fault{Method: "POST", Skip: 2, Times: 1, Status: 503})
	s.Inject(simulator.Fault{Skip: 1, Times: 1, Status: 429})
	for i, want := range []int{0, 429, 503, 0} {
		_, err := c.new(t.Context(), string(rune('a'+i)))
		if want != 0 {
			wantError(t, err, want, int64(want))
		} else if err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func TestMalformedPatternPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a malformed pattern was accepted")
		}
	}()
	simulator.New(simulator.Options{}).Inject(simulator.Fault{Path: "["})
}

// serve makes a request to create a tunnel, whether it is answered or dropped.
func serve(ctx context.Context, s *simulator.Server) {
	dropped(func() { s.API().ServeHTTP(httptest.NewRecorder(), createRequest(ctx)) })
}

// dropped reports whether the server drops the connection of a request.
func dropped(request func()) (aborted bool) {
	defer func() {
		cause := recover()
		err, _ := cause.(error)
		aborted = errors.Is(err, http.ErrAbortHandler)
		if cause != nil && !aborted {
			panic(cause)
		}
	}()
	request()
	return false
}

func createRequest(ctx context.Context) *http.Request {
	request := httptest.NewRequest(http.MethodPost, "/client/v4/accounts/"+account+"/cfd_tunnel",
		strings.NewReader(`{"name":"one"}`)).WithContext(ctx)
	request.Header.Set("Authorization", "Bearer "+token)
	return request
}
