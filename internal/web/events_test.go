package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// startServer serves s until the context ends. It returns the address and a cookie of a session.
func startServer(ctx context.Context, t *testing.T, s *Server) (url string, cookie *http.Cookie) {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	s.Hosts = []string{server.Listener.Addr().String()}
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	t.Cleanup(server.Close)
	r := httptest.NewRequest(http.MethodGet, s.NewLink(), http.NoBody)
	r.Host = s.Hosts[0]
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return server.URL, w.Result().Cookies()[0]
}

// events opens an event stream, and returns the HTTP status and the stream.
func events(ctx context.Context, t *testing.T, url string, cookie *http.Cookie) (status int, stream io.Reader) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(cookie)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, response.Body
}

// nextData returns the data of the next event.
func nextData(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return data
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return ""
}

func TestStreamAnnouncesEachState(t *testing.T) {
	s := newTestServer()
	url, cookie := startServer(t.Context(), t, s)
	_, stream := events(t.Context(), t, url, cookie)
	lines := bufio.NewScanner(stream)
	state := func() string { return fmt.Sprintf("%s %d", s.id, s.Feed.State().Revision) }
	if got := nextData(t, lines); got != state() {
		t.Fatalf("the first event is %q, want %q", got, state())
	}
	s.Feed.Publish(&Snapshot{Plan: &plan.Plan{}})
	if got := nextData(t, lines); got != state() {
		t.Errorf("the event for a snapshot is %q, want %q", got, state())
	}
	s.Feed.Fail("The API server does not answer.")
	if got := nextData(t, lines); got != state() {
		t.Errorf("the event for a problem is %q, want %q", got, state())
	}
	for range 1000 { // faster than the stream is read
		s.Feed.Publish(&Snapshot{Plan: &plan.Plan{}})
	}
	for got := nextData(t, lines); got != state(); got = nextData(t, lines) {
		if !strings.HasPrefix(got, s.id+" ") {
			t.Fatalf("got the event %q", got)
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	s := newTestServer()
	url, cookie := startServer(t.Context(), t, s)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range maxStreams {
		if status, _ := events(ctx, t, url, cookie); status != http.StatusOK {
			t.Fatalf("a stream is answered with %d", status)
		}
	}
	if status, _ := events(t.Context(), t, url, cookie); status != http.StatusServiceUnavailable {
		t.Errorf("one more stream is answered with %d", status)
	}
	leave()
	deadline := time.Now().Add(10 * time.Second)
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for len(s.streams) > 0 {
		if (<-poll.C).After(deadline) {
			t.Fatalf("%d streams did not end with their visitors", len(s.streams))
		}
	}
}

func TestStreamsEndAtShutdown(t *testing.T) {
	s := newTestServer()
	ctx, shutDown := context.WithCancel(t.Context())
	url, cookie := startServer(ctx, t, s)
	_, stream := events(t.Context(), t, url, cookie)
	lines := bufio.NewScanner(stream)
	nextData(t, lines)
	shutDown()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
		}
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the stream did not end")
	}
}
