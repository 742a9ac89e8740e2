package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// rate is in requests per second.
	rate = 20
	// timeout ends a request without an answer, and a WebSocket or a stream without a message.
	timeout = 10 * time.Second
	// reopenDelay is the time before a client opens a broken WebSocket or stream again.
	reopenDelay = 200 * time.Millisecond
)

// Options describe the load.
type Options struct {
	// Address is where the server listens, as host:port.
	Address string
	// Host is the host in all requests.
	Host string
	// TLS makes the clients use TLS with this configuration. Nil means no TLS.
	TLS *tls.Config
	// Dial connects to Address. Nil selects a plain [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// The load has Connections WebSockets, and as many streams.
	Connections int
}

// Load is a load that runs until Stop.
type Load struct {
	o         Options
	transport *http.Transport
	ctx       context.Context // canceled when no request may begin
	stop      context.CancelFunc
	clients   sync.WaitGroup
	started   time.Time

	mu       sync.Mutex
	inFlight int
	open     int // WebSockets and streams that have exchanged a message
	result   Result
}

// Result describes what happened to the load.
type Result struct {
	// Duration is how long the load has run.
	Duration time.Duration
	// Requests counts all requests that open no WebSocket and no stream.
	Requests int
	// Failed counts the requests that did not get their whole response with status 200.
	Failed int
	// Unopened counts the failed attempts to open a WebSocket or a stream.
	Unopened int
	// Messages counts the messages on WebSockets and streams.
	Messages int
	// Broken counts the WebSockets and streams that ended while they were in use.
	Broken int
	// Failures describe each failure, with the time since the start.
	Failures []string
}

// String returns the counts.
func (r Result) String() string {
	return fmt.Sprintf("%d of %d requests failed, %d WebSockets and streams broke, %d could not be opened, %d messages, in %s",
		r.Failed, r.Requests, r.Broken, r.Unopened, r.Messages, r.Duration.Round(100*time.Millisecond))
}

// Start starts a load. The caller stops it.
func Start(o Options) *Load {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	l := &Load{o: o, started: time.Now(), transport: &http.Transport{
		MaxIdleConnsPerHost: 100, DisableCompression: true, DialContext: o.Dial, TLSClientConfig: o.TLS,
	}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.clients.Go(l.send)
	for range o.Connections {
		l.clients.Go(func() { l.keepOpen("WebSocket", l.useWebSocket) })
		l.clients.Go(func() { l.keepOpen("stream", l.useStream) })
	}
	return l
}

// InFlight counts the requests without a complete response, and the open WebSockets and
// streams.
func (l *Load) InFlight() (requests, open int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight, l.open
}

// Sent counts the requests so far.
func (l *Load) Sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.result.Requests
}

// Stop sends no further requests, waits for the responses, and returns what happened. It
// ends the WebSockets and streams.
func (l *Load) Stop() Result {
	l.stop()
	l.clients.Wait()
	l.transport.CloseIdleConnections()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.result.Duration = time.Since(l.started)
	return l.result
}

// send sends the requests at the rate. After a delay in this process, it catches up.
func (l *Load) send() {
	var requests sync.WaitGroup
	defer requests.Wait()
	for i := 0; ; i++ {
		if !l.pause(time.Until(l.started.Add(time.Duration(i) * time.Second / rate))) {
			return
		}
		path, method := kind(i)
		requests.Go(func() { l.request(method, path) })
	}
}

// kind returns a request's path and method. A quarter of the requests are slow. Every
// other slow request has an even number, so that a server that distributes requests in
// turn sends slow requests to all backends. A third of the requests are POSTs, which no
// client retries.
func kind(i int) (path, method string) {
	path, method = fastPath, http.MethodGet
	if i%8 == 0 || i%8 == 5 {
		path = slowPath
	}
	if i%3 == 0 {
		method = http.MethodPost
	}
	return path, method
}

// pause waits for the duration. It returns false if the load stops.
func (l *Load) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return l.ctx.Err() == nil
	case <-l.ctx.Done():
		return false
	}
}

// count changes the counts.
func (l *Load) count(change func(*Result)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.result)
}

// fail records a failure.
func (l *Load) fail(counter func(*Result) *int, what string, err error) {
	at := time.Since(l.started)
	l.count(func(r *Result) {
		*counter(r)++
		r.Failures = append(r.Failures, fmt.Sprintf("%.2fs %s: %v", at.Seconds(), what, err))
	})
}

func failed(r *Result) *int   { return &r.Failed }
func unopened(r *Result) *int { return &r.Unopened }
func broken(r *Result) *int   { return &r.Broken }

// request sends one request and checks its answer.
func (l *Load) request(method, path string) {
	l.mu.Lock()
	l.inFlight++
	l.result.Requests++
	l.mu.Unlock()
	err := l.exchange(method, path)
	if err != nil {
		l.fail(failed, method+" "+path, err)
	}
	l.mu.Lock()
	l.inFlight--
	l.mu.Unlock()
}

func (l *Load) exchange(method, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout) // requests in flight continue after Stop
	defer cancel()
	body := ""
	if method == http.MethodPost {
		body = "posted"
	}
	response, err := l.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && string(text) != path+" "+body {
		err = fmt.Errorf("unexpected answer %.100q", text)
	}
	return err
}

// do sends a request and returns the answer with status 200.
func (l *Load) do(ctx context.Context, method, path, body string) (*http.Response, error) {
	scheme := "http"
	if l.o.TLS != nil {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, method, scheme+"://"+l.o.Address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Host = l.o.Host
	response, err := l.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200)) // a partial text is enough
		_ = response.Body.Close()
		return nil, fmt.Errorf("status %d: %s", response.StatusCode, strings.TrimSpace(string(text)))
	}
	return response, nil
}
