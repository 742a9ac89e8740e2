package simulator_test

import (
	"context"
	"errors"
	"io"
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

func TestRequestsAreRecordedAndCounted(t *testing.T) {
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
			t.Error("a request has no time")
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
		t.Errorf("%d requests after the reset, want none", got)
	}
}

func TestDropBeforeOrAfterTheWrite(t *testing.T) {
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
				t.Fatal("the dropped request was answered")
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

func TestStatusFaultAnswersWithoutExecuting(t *testing.T) {
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
		t.Error("a request that the fault answered was executed")
	}
	s.ClearFaults()
	c.create(t, "one")
}

func TestBodyFaultAnswersWithHTML(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	s.Inject(simulator.Fault{Times: 1, Body: "<html>"})
	var response *http.Response
	_, err := c.get(t.Context(), "any")
	if err == nil {
		t.Error("the client accepted HTML as a response")
	}
	s.Inject(simulator.Fault{Times: 1, Body: "<html>", Status: 502})
	err = c.Get(t.Context(), "user/tokens/verify", nil, nil, option.WithResponseInto(&response))
	if err == nil || response.StatusCode != 502 || response.Header.Get("Content-Type") != "text/html" {
		t.Errorf("error %v, response %v, want 502 in text/html", err, response)
	}
}

func TestHeaderFaultTruncatesAResponse(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	s.Inject(simulator.Fault{Times: 1, Status: 429, Header: http.Header{"Retry-After": {date}}})
	_, err := c.get(t.Context(), "any")
	var failed *cloudflare.Error
	if !errors.As(err, &failed) || failed.Response.Header.Get("Retry-After") != date {
		t.Errorf("error %v, want Retry-After %s", err, date)
	}
	s.Inject(simulator.Fault{Times: 1, Body: `{"success":`, Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {"100"}}})
	if _, err := c.get(t.Context(), "any"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want that the response ends too early", err)
	}
}

func TestLatencyDelaysTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{})
		s.Inject(simulator.Fault{Latency: time.Minute})
		start := time.Now()
		s.API().ServeHTTP(httptest.NewRecorder(), createRequest(t.Context()))
		if elapsed := time.Since(start); elapsed != time.Minute || len(s.Tunnels()) != 1 {
			t.Errorf("took %s with %d tunnels, want 1m0s and one", elapsed, len(s.Tunnels()))
		}
	})
}

func TestCanceledRequestIsNotExecuted(t *testing.T) {
	s := simulator.New(simulator.Options{})
	s.Inject(simulator.Fault{Latency: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	defer func() {
		aborted, _ := recover().(error)
		if !errors.Is(aborted, http.ErrAbortHandler) || len(s.Tunnels()) != 0 {
			t.Errorf("%d tunnels, want an aborted request and no tunnel", len(s.Tunnels()))
		}
	}()
	s.API().ServeHTTP(httptest.NewRecorder(), createRequest(ctx))
}

func TestLateFaultExecutesACanceledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{})
		s.Inject(simulator.Fault{Latency: time.Minute, Late: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		s.API().ServeHTTP(httptest.NewRecorder(), createRequest(ctx))
		if elapsed := time.Since(start); elapsed != time.Minute || len(s.Tunnels()) != 1 {
			t.Errorf("took %s with %d tunnels, want 1m0s and one", elapsed, len(s.Tunnels()))
		}
	})
}

func TestBeforeAndAfterAreCalled(t *testing.T) {
	for name, test := range map[string]struct {
		fault         simulator.Fault
		before, after []int // tunnels at each call
	}{
		"executed":                 {simulator.Fault{}, []int{0}, []int{1}},
		"dropped before the write": {simulator.Fault{Drop: simulator.DropBeforeWrite}, []int{0}, nil},
		"dropped after the write":  {simulator.Fault{Drop: simulator.DropAfterWrite}, []int{0}, []int{1}},
		"answered by the fault":    {simulator.Fault{Status: 500}, []int{0}, nil},
		"dropped and then written": {simulator.Fault{Drop: simulator.DropThenWrite}, []int{0}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := simulator.New(simulator.Options{})
			var before, after []int
			test.fault.Before = func(r simulator.Request) {
				if r.Method != "POST" || r.Path != "/accounts/"+account+"/cfd_tunnel" || r.Time.IsZero() {
					t.Errorf("Before got the request %+v", r)
				}
				before = append(before, len(s.Tunnels()))
			}
			test.fault.After = func(simulator.Request) { after = append(after, len(s.Tunnels())) }
			test.fault.Times = 1
			s.Inject(test.fault)
			synctest.Test(t, func(t *testing.T) {
				postTunnel(t.Context(), s)
				synctest.Wait()
			})
			if diff := cmp.Diff(test.before, before); diff != "" {
				t.Errorf("tunnels when Before was called (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.after, after); diff != "" {
				t.Errorf("tunnels when After was called (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestCanceledDuringBeforeIsNotExecuted(t *testing.T) {
	for late, want := range map[bool]int{false: 0, true: 1} {
		s := simulator.New(simulator.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		s.Inject(simulator.Fault{Late: late, Before: func(simulator.Request) { cancel() }})
		postTunnel(ctx, s)
		if got := len(s.Tunnels()); got != want {
			t.Errorf("late %t: %d tunnels, want %d", late, got, want)
		}
	}
}

func TestDropThenWriteExecutesTheRequestLater(t *testing.T) {
	const configuration = `{"config":{"ingress":[{"service":"http_status:%s"}]}}`
	for name, test := range map[string]struct {
		method, path, body string
		next               func(*testing.T, *simulator.Server, string) // the client's next request
		executed           func(*simulator.Server, string) bool
	}{
		"a create": {http.MethodPost, "", `{"name":"late"}`,
			func(*testing.T, *simulator.Server, string) {},
			func(s *simulator.Server, _ string) bool { _, ok := s.TunnelID("late"); return ok }},
		"a configuration": {http.MethodPut, "/{id}/configurations", strings.Replace(configuration, "%s", "201", 1),
			func(t *testing.T, s *simulator.Server, id string) {
				call(t, s, http.MethodPut, "/"+id+"/configurations", strings.Replace(configuration, "%s", "202", 1))
			},
			func(s *simulator.Server, id string) bool {
				stored, version := s.StoredConfiguration(id)
				return version == 2 && strings.Contains(string(stored), "201")
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
				if !isDropped(func() { call(t, s, test.method, strings.Replace(test.path, "{id}", id, 1), test.body) }) {
					t.Error("the request was answered")
				}
				if elapsed := time.Since(start); elapsed != 0 {
					t.Errorf("the connection was dropped after %s", elapsed)
				}
				test.next(t, s, id)
				advance(time.Hour)
				if test.executed(s, id) {
					t.Error("the request was executed before Before returned")
				}
				close(release)
				synctest.Wait()
				if !test.executed(s, id) {
					t.Errorf("the request was not executed: %+v", s.Tunnels())
				}
			})
		})
	}
}

func TestClosedServerDiscardsDelayedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{})
		s.Inject(simulator.Fault{Drop: simulator.DropThenWrite, Latency: time.Minute})
		postTunnel(t.Context(), s)
		s.Close()
		advance(time.Hour)
		if got := s.Tunnels(); len(got) != 0 {
			t.Errorf("tunnels %+v, want none", got)
		}
	})
}

func TestFaultSkipsRequests(t *testing.T) {
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

// postTunnel sends a request to create a tunnel. The server may drop it.
func postTunnel(ctx context.Context, s *simulator.Server) {
	isDropped(func() { s.API().ServeHTTP(httptest.NewRecorder(), createRequest(ctx)) })
}

// isDropped reports whether the server drops the request's connection.
func isDropped(request func()) (aborted bool) {
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
