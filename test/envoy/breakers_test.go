package envoy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// holding returns a Service whose pods hold requests until the function is called.
func holding(t *testing.T, pods []*pod) (release func()) {
	t.Helper()
	released := make(chan struct{})
	for _, p := range pods {
		p.answerWith(func(http.ResponseWriter, *http.Request) { <-released })
		p.listen(t)
	}
	return func() { close(released) }
}

// hold sends requests that the pods hold, and returns their connections.
func hold(t *testing.T, address, service string, n int) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, request{method: "GET", target: "/", host: service + ".example.com"}.text()); err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
	}
	return conns
}

// awaitRequests waits until the pods have got n requests.
func awaitRequests(t *testing.T, pods []*pod, n int) {
	t.Helper()
	got := 0
	for range 500 {
		for _, p := range pods {
			got += p.take()
		}
		if got == n {
			return
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // polls the pods
	}
	t.Fatalf("the pods got %d requests, want %d", got, n)
}

func readStatus(t *testing.T, conn net.Conn) int {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(clientTimeout)); err != nil {
		t.Fatal(err)
	}
	o, err := readOutcome(bufio.NewReader(conn), "GET")
	if err != nil {
		t.Fatal(err)
	}
	return o.status
}

// TestCircuitBreakerOfRequests shows that the limit holds for one Service, for all its
// pods together, and ends with the requests.
func TestCircuitBreakerOfRequests(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"busy": 2, "other": 1})
	release := holding(t, d["busy"])
	d["other"][0].listen(t)
	address := d.serve(t, "connector: {envoy: {circuitBreakers: {requests: 3}}}")
	conns := hold(t, address, "busy", 3)
	awaitRequests(t, d["busy"], 3)
	for range 3 {
		if o := ask(t, address, "busy"); o.status != 503 || !strings.Contains(o.body, "overflow") {
			t.Errorf("status %d above the limit, want 503 with overflow; body: %s", o.status, o.body)
		}
	}
	visit(t, address, "other", 10, 200)
	awaitRequests(t, d["busy"], 0)
	release()
	for _, conn := range conns {
		if status := readStatus(t, conn); status != 200 {
			t.Errorf("status %d for a request within the limit, want 200", status)
		}
	}
	visit(t, address, "busy", 10, 200)
}

// TestCircuitBreakersOfConnections shows that requests wait above the limit on
// connections, up to the limit on pending requests. Each of Envoy's two threads can have
// one connection.
func TestCircuitBreakersOfConnections(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"busy": 1})
	release := holding(t, d["busy"])
	address := d.serve(t, "connector: {envoy: {circuitBreakers: {connections: 1, pendingRequests: 2}}}")
	const n = 20
	conns := hold(t, address, "busy", n)
	time.Sleep(500 * time.Millisecond) //nolint:forbidigo // more requests would arrive meanwhile
	if got := d["busy"][0].take(); got < 1 || got > 2 {
		t.Errorf("%d requests arrived at the same time, want 1 for each thread", got)
	}
	release()
	counts := map[int]int{}
	for _, conn := range conns {
		counts[readStatus(t, conn)]++
	}
	if served := counts[200]; served < 2 || served > 4 || counts[503] != n-served {
		t.Errorf("statuses %v, want 200 for the connections and 2 waiting requests, and 503 for the others", counts)
	}
}

// TestCircuitBreakersByDefault shows that Envoy's own defaults, 1,024, do not apply.
func TestCircuitBreakersByDefault(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"busy": 1})
	release := holding(t, d["busy"])
	address := d.serve(t, "connector: {}")
	const n = 1100
	conns := hold(t, address, "busy", n)
	awaitRequests(t, d["busy"], n)
	release()
	for _, conn := range conns {
		if status := readStatus(t, conn); status != 200 {
			t.Fatalf("status %d, want 200", status)
		}
	}
}
