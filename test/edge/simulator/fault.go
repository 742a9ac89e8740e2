package simulator

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"
)

// Fault makes API requests fail. If several faults match a request, the fault that was
// injected first applies.
type Fault struct {
	// Method is the HTTP method of the requests. An empty method matches any.
	Method string
	// Path is a [path.Match] pattern for the path after /client/v4, for example
	// "/accounts/*/cfd_tunnel". An empty pattern matches any path.
	Path string
	// The fault skips the first Skip matching requests. A fault that was injected later
	// can apply to these.
	Skip int
	// The fault applies to Times requests. 0 means all requests until
	// [Server.ClearFaults].
	Times int
	// Latency delays the request before anything else happens. If the client
	// cancels the request meanwhile, the request is not executed unless Late is
	// set.
	Latency time.Duration
	// Late executes the request even if the client cancels it during Latency or
	// Before. The write then arrives after the client's next requests. A closing
	// HTTP server waits for it. With [DropThenWrite] the client does not have to
	// cancel.
	Late bool
	// Before is called after Latency, before the request is executed, dropped or answered
	// by the fault. After is called only if the request was executed, before it is
	// dropped or answered. Both may block and may call the server's methods. They receive
	// the request as recorded so far.
	Before, After func(Request)
	// Status makes the fault return this status instead of executing the request. 0
	// executes the request.
	Status int
	// RetryAfter is sent with Status, in whole seconds, rounded up.
	RetryAfter time.Duration
	// Header is sent with Status or Body, for example Retry-After as a date. With a
	// Content-Length above the length of Body, the response is truncated.
	Header http.Header
	// Body is sent as text/html, unless Header says otherwise, instead of the envelope, with
	// Status or 200. The request is not executed.
	Body string
	// Drop closes the connection without a response. It takes precedence over Status and
	// Body. The net/http client repeats a GET automatically if a reused connection
	// breaks.
	Drop Drop
}

// Drop selects when a fault closes the connection.
type Drop int

// Values of [Drop].
const (
	DropNone        Drop = iota // never
	DropBeforeWrite             // instead of executing the request
	DropAfterWrite              // after the request was executed, before the answer
	// DropThenWrite closes the connection immediately and executes the request
	// later, after Latency has passed and Before, which may block, has returned. It
	// simulates a create, update or deletion that arrives late. After is called
	// when the request was executed. Closing the [Server] discards requests that
	// have not been executed yet.
	DropThenWrite
)

// Request is one request to the API.
type Request struct {
	Method string
	// Path is the path after /client/v4, without the query.
	Path string
	// Status is the response status. It is 0 before the response, and stays 0 if the
	// connection was dropped.
	Status int
	// Time is when the request arrived.
	Time time.Time
}

// Inject adds a fault. It panics if the path pattern is malformed.
func (s *Server) Inject(f Fault) {
	matches("", f.Path, "", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Requests returns the API requests in the order in which they arrived.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := make([]Request, 0, len(s.requests))
	for _, r := range s.requests {
		requests = append(requests, *r)
	}
	return requests
}

// Count counts the requests that match the method and the path pattern, both as in
// [Fault].
func (s *Server) Count(method, pathPattern string) int {
	count := 0
	for _, r := range s.Requests() {
		if matches(method, pathPattern, r.Method, r.Path) {
			count++
		}
	}
	return count
}

// ResetRequests clears the list of requests.
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

// setStatus records the response status. It is called before the response is written, so
// that a client that has the response finds the status in [Server.Requests].
func (s *Server) setStatus(request *Request, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request.Status = status
}

// nextFault returns the fault that applies to a request, or the zero fault.
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
		if f.Times--; f.Times == 0 { // a fault without a limit starts at 0 and goes negative
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return fault
	}
	return Fault{}
}

// proceed waits for the latency, calls Before, and reports whether the request is to be
// executed or answered. If not, its connection is dropped.
func (f Fault) proceed(ctx context.Context, request Request) bool {
	f.wait(ctx)
	if f.Before != nil {
		f.Before(request)
	}
	return f.Drop != DropBeforeWrite && (f.Late || ctx.Err() == nil)
}

// wait returns after the latency. Unless Late is set, it returns early if the
// client cancels the request.
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

func (f Fault) callAfter(request Request) {
	if f.After != nil {
		f.After(request)
	}
}

func (f Fault) hasResponse() bool { return f.Status != 0 || f.Body != "" }

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
		maps.Copy(w.Header(), f.Header)
		failure(f.status(), f.status(), http.StatusText(f.status())).write(w)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	maps.Copy(w.Header(), f.Header)
	w.WriteHeader(f.status())
	_, _ = w.Write([]byte(f.Body)) // fails only if the client has disconnected
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
