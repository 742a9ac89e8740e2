package simulator

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"
)

// Fault is something that goes wrong with requests to the API. The first fault
// that matches a request applies to it, in the order of injection.
type Fault struct {
	// Method of the requests; any when empty.
	Method string
	// Path is a pattern of [path.Match] for what follows /client/v4, for
	// instance "/accounts/*/cfd_tunnel"; any path when empty.
	Path string
	// Skip is how many such requests pass before it applies to one. A fault that
	// was injected later may apply to those.
	Skip int
	// Times is how many requests it applies to; 0 until faults are cleared.
	Times int
	// Latency passes before anything else happens. A client that gives up
	// meanwhile changes nothing, unless Late is set.
	Latency time.Duration
	// Late carries the request out though the client gave up during Latency or
	// Before: a write that arrives after whatever the client did next. A server
	// that is closed waits for it. See DropThenWrite for a client that does not
	// have to wait.
	Late bool
	// Before is called after Latency, before the request is carried out, dropped
	// or answered by the fault. After is called when it was carried out, before
	// it is dropped or its answer is written; never when it was not. Each may
	// take its time and call the server's methods, and gets the request as it is
	// recorded so far.
	Before, After func(Request)
	// Status is answered without carrying the request out; 0 carries it out.
	Status int
	// RetryAfter is sent along with Status, in whole seconds, rounded up.
	RetryAfter time.Duration
	// Body is sent as text/html, with Status or else 200, in place of the
	// envelope and without carrying the request out.
	Body string
	// Drop closes the connection without an answer, whatever Status and Body say.
	// Note that net/http's client repeats a GET on its own when a reused connection
	// breaks.
	Drop Drop
}

// Drop is when the connection is closed.
type Drop int

// The moments of a drop.
const (
	DropNone        Drop = iota // not at all
	DropBeforeWrite             // before the request was carried out
	DropAfterWrite              // after it was, before the answer
	// DropThenWrite closes the connection at once and carries the request out
	// afterwards, of whatever method: when Latency has passed and Before, which a
	// test may let wait, has returned. It is how a create, a configuration or a
	// deletion arrives late. After is called when it was carried out. Closing the
	// [Server] forgets requests that have not arrived.
	DropThenWrite
)

// Request is one request to the API.
type Request struct {
	Method string
	// Path is what follows /client/v4, without the query.
	Path string
	// Status that was answered; 0 while there is none, and for good when the
	// connection was dropped.
	Status int
	// Time of arrival.
	Time time.Time
}

// Inject adds a fault. It panics when the path pattern is malformed.
func (s *Server) Inject(f Fault) {
	matches("", f.Path, "", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults ends all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Requests returns the requests to the API in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := make([]Request, 0, len(s.requests))
	for _, r := range s.requests {
		requests = append(requests, *r)
	}
	return requests
}

// Count returns how many requests had the method and a path that matches the
// pattern; both as in [Fault].
func (s *Server) Count(method, pathPattern string) int {
	count := 0
	for _, r := range s.Requests() {
		if matches(method, pathPattern, r.Method, r.Path) {
			count++
		}
	}
	return count
}

// ResetRequests forgets the requests so far.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

func (s *Server) record(method, path string) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := &Request{Method: method, Path: path, Time: time.Now()}
	s.requests = append(s.requests, request)
	return request
}

// setStatus is called before the answer is written, so that whoever has the
// answer finds it recorded.
func (s *Server) setStatus(request *Request, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request.Status = status
}

// nextFault returns the fault for a request, the zero one when there is none.
func (s *Server) nextFault(method, path string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if !matches(f.Method, f.Path, method, path) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		fault := *f
		if f.Times--; f.Times == 0 { // one that began at 0 never gets there again
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return fault
	}
	return Fault{}
}

// admit lets pass what comes before the request, and reports whether it is to
// be carried out or answered.
func (f Fault) admit(ctx context.Context, request Request) bool {
	f.wait(ctx)
	if f.Before != nil {
		f.Before(request)
	}
	return f.Drop != DropBeforeWrite && (f.Late || ctx.Err() == nil)
}

// wait lets the latency pass, or as much of it as the client stays.
func (f Fault) wait(ctx context.Context) {
	if f.Late {
		ctx = context.WithoutCancel(ctx)
	}
	timer := time.NewTimer(f.Latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (f Fault) done(request Request) {
	if f.After != nil {
		f.After(request)
	}
}

func (f Fault) answers() bool { return f.Status != 0 || f.Body != "" }

func (f Fault) status() int {
	if f.Status == 0 {
		return http.StatusOK
	}
	return f.Status
}

func (f Fault) write(w http.ResponseWriter) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	if f.Body == "" {
		failure(f.status(), f.status(), http.StatusText(f.status())).write(w)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(f.status())
	_, _ = w.Write([]byte(f.Body)) // a client that left needs no answer
}

func matches(wantMethod, pattern, method, requestPath string) bool {
	if wantMethod != "" && wantMethod != method {
		return false
	}
	if pattern == "" {
		return true
	}
	ok, err := path.Match(pattern, requestPath)
	if err != nil {
		panic(fmt.Sprintf("simulator: path pattern %q: %v", pattern, err))
	}
	return ok
}
