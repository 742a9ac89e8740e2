package envoy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// counted are requests with the same labels.
type counted struct {
	// labels are those of the route and the backend, and outcome the others.
	labels, outcome string
	requests        int
	// answered is how many of them a backend answered.
	answered int
	retries  int
	// sent and received count the bytes of the bodies.
	sent, received int
}

// lines returns what the requests add to the metrics.
func (c counted) lines() []string {
	lines := []string{
		fmt.Sprintf("requests_total{%s %s} %d", c.labels, c.outcome, c.requests),
		fmt.Sprintf("request_duration_milliseconds{%s} %d", c.labels, c.requests),
	}
	for name, value := range map[string]int{
		"backend_duration_milliseconds": c.answered, "retries_total": c.retries, "request_bytes_total": c.sent, "response_bytes_total": c.received,
	} {
		if value > 0 {
			lines = append(lines, fmt.Sprintf("%s{%s} %d", name, c.labels, value))
		}
	}
	return lines
}

const (
	webRoute = "HTTPRoute default/web 0 a.example.com default/one:80"
	notFound = "code=4xx flags=NR"
)

// Envoy counts requests for the route, the hostname of its entry and the backend, by the class
// of the status, which a backend cannot make up.
func TestMetricsCountByRouteAndStatus(t *testing.T) {
	m := startMetrics(t)
	for _, test := range []struct{ host, status, labels, code string }{
		{"a.example.com", "200 OK", webRoute, "2xx"},
		{"A.example.com:443", "200 OK", webRoute, "2xx"},
		{"x.b.example.com", "200 OK", "HTTPRoute default/web 0 *.b.example.com default/one:80", "2xx"},
		{"y.x.b.example.com", "200 OK", "HTTPRoute default/web 0 *.b.example.com default/one:80", "2xx"},
		{"a.example.com", "302 Found", webRoute, "3xx"},
		{"a.example.com", "404 Not Found", webRoute, "4xx"},
		{"a.example.com", "500 Internal Server Error", webRoute, "5xx"},
		{"a.example.com", "599 Unknown", webRoute, "5xx"},
		{"a.example.com", "600 Unknown", webRoute, "other"},
		{"a.example.com", "999 Unknown", webRoute, "other"},
		{"above.example.com", "200 OK", "other", "2xx"},
	} {
		t.Run(test.host+" "+test.status, func(t *testing.T) {
			c := counted{labels: test.labels, outcome: "code=" + test.code + " flags=-", requests: 3, answered: 3, sent: 3 * len("hello")}
			before := m.settled(t)
			for range c.requests {
				r := request{method: "POST", target: "/", host: test.host, lines: []string{"Respond-Status: " + test.status}, body: "hello"}
				c.received += len(send(t, m.open, r.text()).body)
			}
			m.wantAddedSince(t, before, c.lines()...)
		})
	}
}

// Requests that Envoy answers itself have its flags. Without a response of a backend, there is
// no duration of it.
func TestMetricsCountWhatEnvoyAnswers(t *testing.T) {
	m := startMetrics(t)
	rule := func(n int, backend string) string {
		return strings.TrimSpace(fmt.Sprintf("HTTPRoute default/failures %d failures.example.com %s", n, backend))
	}
	for path, want := range map[string]counted{
		"/refuses":      {labels: rule(0, "default/refuses:80"), outcome: "code=5xx flags=URX,UF", retries: 1},
		"/resets":       {labels: rule(1, "default/resets:80"), outcome: "code=5xx flags=UC"},
		"/slow":         {labels: rule(2, "default/slow:80"), outcome: "code=5xx flags=UT"},
		"/without-pods": {labels: rule(3, "default/without-pods:80"), outcome: "code=5xx flags=UH"},
		"/missing":      {labels: rule(4, ""), outcome: "code=5xx flags=-"},
		"/moved":        {labels: rule(6, ""), outcome: "code=3xx flags=-"},
		"/unknown":      {labels: "other", outcome: notFound},
	} {
		t.Run(path, func(t *testing.T) {
			want.requests = 2
			want.retries *= 2
			before := m.settled(t)
			for range want.requests {
				want.received += len(send(t, m.open, request{method: "GET", target: path, host: "failures.example.com"}.text()).body)
			}
			m.wantAddedSince(t, before, want.lines()...)
		})
	}
	t.Run("unknown host", func(t *testing.T) {
		before := m.settled(t)
		send(t, m.open, request{method: "GET", target: "/", host: "unknown.example.org"}.text())
		send(t, m.protected, request{method: "GET", target: "/", host: "a.example.com"}.text())
		m.wantAddedSince(t, before, counted{labels: "other", outcome: notFound, requests: 2}.lines()...)
	})
}

// Every retry counts, and the request counts once.
func TestMetricsCountRetries(t *testing.T) {
	m := startMetrics(t)
	for path, want := range map[string]counted{
		"/recovers": {labels: "HTTPRoute default/retries 0 retries.example.com default/recovers:80", outcome: "code=2xx flags=-", retries: 2},
		"/fails":    {labels: "HTTPRoute default/retries 1 retries.example.com default/fails:80", outcome: "code=5xx flags=URX", retries: 10},
	} {
		t.Run(path, func(t *testing.T) {
			backend := m.backends.byName[strings.TrimPrefix(path, "/")]
			want.requests, want.answered = 1, 1
			backend.takeAll()
			before := m.settled(t)
			want.received = len(send(t, m.open, request{method: "GET", target: path, host: "retries.example.com"}.text()).body)
			m.wantAddedSince(t, before, want.lines()...)
			if got := len(backend.takeAll()) - 1; got != want.retries {
				t.Errorf("the backend got %d retries, want %d", got, want.retries)
			}
		})
	}
}

// Requests to a rule with weights count for the backend that Envoy chose. A backend that does
// not exist has no label.
func TestMetricsCountByBackend(t *testing.T) {
	m := startMetrics(t)
	const requests = 60
	byBackend := map[string]*counted{}
	for _, backend := range []string{"one", "two", ""} {
		c := &counted{labels: "HTTPRoute default/weights 0 weights.example.com", outcome: "code=5xx flags=NC"}
		if backend != "" {
			c.labels, c.outcome = c.labels+" default/"+backend+":80", "code=2xx flags=-"
		}
		byBackend[backend] = c
	}
	before := m.settled(t)
	for range requests {
		o, backend := send(t, m.open, request{method: "GET", target: "/", host: "weights.example.com"}.text()), ""
		if o.arrival != nil {
			backend = o.arrival.Backend
			byBackend[backend].answered++
		}
		byBackend[backend].requests++
		byBackend[backend].received += len(o.body)
	}
	var want []string
	for backend, c := range byBackend {
		if c.requests == 0 {
			t.Fatalf("backend %q got none of %d requests", backend, requests)
		}
		want = append(want, c.lines()...)
	}
	m.wantAddedSince(t, before, want...)
}

// A copy for a mirror is no request.
func TestMetricsDoNotCountMirrors(t *testing.T) {
	m := startMetrics(t)
	c := counted{labels: "HTTPRoute default/mirrored 0 mirrored.example.com default/one:80", outcome: "code=2xx flags=-", requests: 1, answered: 1}
	mirror := m.backends.byName["mirror"]
	mirror.takeAll()
	before := m.settled(t)
	c.received = len(send(t, m.open, request{method: "GET", target: "/", host: "mirrored.example.com"}.text()).body)
	if copies := len(mirror.await(t)); copies != 1 {
		t.Errorf("the mirror got %d copies, want 1", copies)
	}
	m.wantAddedSince(t, before, c.lines()...)
}

// gRPC calls have their status as a label, and a backend cannot make up values.
func TestMetricsCountGRPCStatuses(t *testing.T) {
	m := startMetrics(t)
	conn := m.dial(t, "calls.example.com")
	for method, status := range map[string]string{"Unary": "OK", "FailAfterBody": "DataLoss", "TrailersOnly": "PermissionDenied"} {
		t.Run(status, func(t *testing.T) {
			before := m.settled(t)
			for range 2 {
				invoke(t, conn, "/test.Echo/"+method)
			}
			name := "requests_total{HTTPRoute default/calls 0 calls.example.com default/grpc:80 code=2xx flags=- grpc_status=" + status + "}"
			m.wantOnly(t, before, "requests_total{", strings.Replace(name, "HTTPRoute", "GRPCRoute", 1)+" 2")
		})
	}
	t.Run("made up", func(t *testing.T) {
		before := m.settled(t)
		for _, status := range []string{"4711", "17", "-1", "nonsense", "1e3", "16"} {
			lines := []string{"Content-Type: application/grpc", "Respond: content-type: application/grpc", "Respond: grpc-status: " + status}
			send(t, m.open, request{method: "POST", target: "/", host: "a.example.com", lines: lines}.text())
		}
		m.wantOnly(t, before, "requests_total{", "requests_total{"+webRoute+" code=2xx flags=- grpc_status=Unauthenticated} 1",
			"requests_total{"+webRoute+" code=2xx flags=- grpc_status=other} 5")
	})
}

// A visitor cannot make up a gRPC status by a request to a website, or by leaving a stream.
func TestMetricsCountNoGRPCStatusOfOtherResponses(t *testing.T) {
	m := startMetrics(t)
	const asGRPC = "Content-Type: application/grpc"
	for status, code := range map[string]string{"200 OK": "2xx", "400 Bad Request": "4xx", "404 Not Found": "4xx", "429 Too Many Requests": "4xx"} {
		t.Run(status, func(t *testing.T) {
			before := m.settled(t)
			lines := []string{asGRPC, "Respond-Status: " + status, "Respond: content-type: text/html"}
			send(t, m.open, request{method: "POST", target: "/", host: "a.example.com", lines: lines}.text())
			m.wantOnly(t, before, "requests_total{", "requests_total{"+webRoute+" code="+code+" flags=-} 1")
		})
	}
	t.Run("stream that the visitor leaves", func(t *testing.T) {
		before := m.settled(t)
		conn := m.write(t, request{method: "GET", target: "/", host: "a.example.com", lines: []string{asGRPC, "Connection: Upgrade", "Upgrade: websocket"}})
		if status := readStatus(t, conn); status != 101 {
			t.Fatalf("status %d, want 101", status)
		}
		_ = conn.Close()
		m.wantOnly(t, before, "requests_total{", "requests_total{"+webRoute+" code=1xx flags=DC} 1")
	})
	t.Run("status from Envoy", func(t *testing.T) {
		before := m.settled(t)
		send(t, m.open, request{method: "POST", target: "/without-pods", host: "failures.example.com", lines: []string{asGRPC}}.text())
		m.wantOnly(t, before, "requests_total{",
			"requests_total{HTTPRoute default/failures 3 failures.example.com default/without-pods:80 code=2xx flags=UH grpc_status=Unavailable} 1")
	})
}

// Requests are in flight until they end. Above the limit of a circuit breaker, they have its
// flag.
func TestMetricsCountRequestsInFlight(t *testing.T) {
	m := startMetrics(t)
	const labels = "HTTPRoute default/failures 5 failures.example.com default/busy:80"
	backend, released := m.backends.byName["busy"], make(chan struct{})
	backend.takeAll()
	backend.waitBeforeAnswer(func(int) { <-released })
	before := m.settled(t)
	conns := make([]net.Conn, 2)
	for i := range conns {
		conns[i] = m.write(t, request{method: "GET", target: "/busy", host: "failures.example.com"})
	}
	eventually(t, "the backend has both requests", func() bool { return backend.count() == len(conns) })
	m.wantAddedSince(t, before, "requests_in_flight{"+labels+"} 2")
	overflow := counted{labels: labels, outcome: "code=5xx flags=UO", requests: 1}
	overflow.received = len(send(t, m.open, request{method: "GET", target: "/busy", host: "failures.example.com"}.text()).body)
	m.wantAddedSince(t, before, append(overflow.lines(), "requests_in_flight{"+labels+"} 2")...)
	close(released)
	for _, conn := range conns {
		readStatus(t, conn)
	}
	m.wantOnly(t, before, "requests_", "requests_total{"+labels+" code=2xx flags=-} 2", "requests_total{"+labels+" code=5xx flags=UO} 1")
}

// A visitor who leaves before the response has no class of a status.
func TestMetricsCountVisitorsWhoLeave(t *testing.T) {
	m := startMetrics(t)
	const labels = "HTTPRoute default/failures 7 failures.example.com default/slow:80"
	before := m.settled(t)
	conn := m.write(t, request{method: "GET", target: "/endless", host: "failures.example.com"})
	m.wantAddedSince(t, before, "requests_in_flight{"+labels+"} 1")
	_ = conn.Close()
	m.wantAddedSince(t, before, counted{labels: labels, outcome: "code=other flags=DC", requests: 1}.lines()...)
}

// A WebSocket is in flight until it ends, and its bytes count then.
func TestMetricsCountWebSockets(t *testing.T) {
	m := startMetrics(t)
	before := m.settled(t)
	conn := m.write(t, request{method: "GET", target: "/", host: "a.example.com", lines: []string{"Connection: Upgrade", "Upgrade: websocket"}})
	if status := readStatus(t, conn); status != 101 {
		t.Fatalf("status %d, want 101", status)
	}
	if _, err := io.WriteString(conn, "message"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, len("message"))); err != nil {
		t.Fatal(err)
	}
	m.wantAddedSince(t, before, "requests_in_flight{"+webRoute+"} 1")
	_ = conn.Close()
	c := counted{labels: webRoute, outcome: "code=1xx flags=DC", requests: 1, answered: 1, sent: len("message"), received: len("message")}
	m.wantAddedSince(t, before, c.lines()...)
}

// write sends a request without reading the response.
func (m *metricsBed) write(t *testing.T, r request) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", m.open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, r.text()); err != nil {
		t.Fatal(err)
	}
	return conn
}
