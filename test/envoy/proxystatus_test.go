package envoy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// forged is what a backend sends to look like Envoy.
const forged = "tunnel-gateway; error=forged"

// proxyStatusOf returns the values of Proxy-Status among header or trailer lines.
func proxyStatusOf(lines []string) []string {
	var values []string
	for _, line := range lines {
		if nameOf(line) == envoy.HeaderProxyStatus {
			_, value, _ := strings.Cut(line, ":")
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

// wantErrorType checks that a response comes from Envoy, with this type of error.
func wantErrorType(t *testing.T, o outcome, status int, errorType string) {
	t.Helper()
	want := []string{"tunnel-gateway; error=" + errorType}
	if got := proxyStatusOf(o.headers); o.status != status || !slices.Equal(got, want) || o.arrival != nil {
		t.Errorf("status %d with Proxy-Status %q, want %d with %q; body: %.200s", o.status, got, status, want, o.body)
	}
}

func TestProxyStatus(t *testing.T) {
	b := start(t)
	b.backends.byName["wakes"].takeAll() // its next request times out
	const grpc = "\nContent-Type: application/grpc"
	for _, row := range []struct {
		request   string
		status    int
		errorType string
	}{
		{"GET failures.example.com/request", 504, "http_response_timeout"},
		{"GET retries.example.com/timeout-without-codes", 504, "http_response_timeout"},
		{"GET timeout.origin.example.com/silent", 503, "connection_timeout"},
		{"GET a.example.com/protocols/untrusted", 503, "tls_certificate_error"},
		{"GET a.example.com/protocols/othername", 503, "tls_certificate_error"},
		{"GET proxy-status.example.com/plaintext", 503, "tls_protocol_error"},
		{"GET failures.example.com/refuses", 503, "connection_refused"},
		{"GET failures.example.com/resets", 503, "connection_terminated"},
		{"GET retries.example.com/reset-with-codes", 503, "connection_terminated"},
		{"GET failures.example.com/without-pods", 503, "destination_unavailable"},
		{"GET hosts.example.com/", 404, "destination_not_found"},
		{"GET own.hosts.example.com/x", 404, "destination_not_found"},
		{"GET admin.example.com/", 404, "destination_not_found"},
		{"GET weights.example.com/none", 500, "proxy_configuration_error"},
		{"GET weights.example.com/all-unresolved", 500, "proxy_configuration_error"},
		{"GET redirects.example.com/full", 302, "proxy_internal_response"},
		{"GET messages.example.com/%00", 400, "http_request_error"},
		{"GET messages.example.com/\nContent-Length: x", 400, "http_request_error"},
		{"GET messages.example.com/\nX-Large: " + strings.Repeat("x", 130<<10), 431, "http_request_error"},
		{"GET messages.example.com/\nUpgrade: unknown\nConnection: upgrade", 403, "http_request_denied"},
		{"GET messages.example.com/\nRespond-Many: 1000 headers of 1 bytes", 502, "http_protocol_error"},
		{"POST calls.grpc.example.com/test.Echoes/Unary" + grpc, 200, "destination_not_found"},
		{"POST failures.grpc.example.com/test.WithoutPods/Call" + grpc, 200, "destination_unavailable"},
		{"POST failures.grpc.example.com/test.Unresolved/Call" + grpc, 200, "proxy_configuration_error"},
		{"POST failures.grpc.example.com/test.WithoutWeight/Call" + grpc, 200, "proxy_configuration_error"},
		// The filters of these routes claim another type.
		{"GET proxy-status.example.com/claims-and-fails", 503, "connection_refused"},
		{"GET proxy-status.example.com/claims-and-redirects", 302, "proxy_internal_response"},
	} {
		t.Run(strings.Join(lines(row.request), ", ")[:min(len(row.request), 70)], func(t *testing.T) {
			wantErrorType(t, send(t, b.open, parseRequest(row.request).text()), row.status, row.errorType)
		})
	}
	t.Run("on the listener for Access", func(t *testing.T) {
		wantErrorType(t, send(t, b.protected, parseRequest("GET ADMIN.example.com/").text()), 403, "http_request_denied")
		wantErrorType(t, send(t, b.protected, parseRequest("GET public.staff.example.com/").text()), 404, "destination_not_found")
	})
}

func TestProxyStatusAboveACircuitBreaker(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"full": 1})
	release := holding(t, d["full"])
	defer release()
	address := d.serve(t, "connector: {envoy: {circuitBreakers: {requests: 1}}}")
	hold(t, address, "full", 1)
	awaitRequests(t, d["full"], 1)
	wantErrorType(t, ask(t, address, "full"), 503, "connection_limit_reached")
}

// TestBackendsCannotForgeProxyStatus sends requests that arrive at a backend, which adds the
// field, or whose route does.
func TestBackendsCannotForgeProxyStatus(t *testing.T) {
	b := start(t)
	const respond = "\nRespond: Proxy-Status: " + forged
	for _, row := range []struct {
		request string
		status  int
	}{
		{"/backend" + respond, 200},
		{"/backend" + respond + "\nRespond: proxy-status: other", 200},
		{"/backend\nRespond-Status: 404 Missing" + respond, 404},
		{"/backend\nRespond-Status: 503 Busy" + respond, 503},
		{"/backend\nRespond-Trailer: X-Checksum: 1\nRespond-Trailer: Proxy-Status: " + forged, 200},
		{"/claims", 200},
		{"/claims-for-backend" + respond, 200},
	} {
		t.Run(strings.Join(lines(row.request), ", "), func(t *testing.T) {
			wantNoProxyStatus(t, send(t, b.open, parseRequest("GET proxy-status.example.com"+row.request).text()), row.status)
		})
	}
	t.Run("the response to the last retry", func(t *testing.T) {
		b.backends.byName["recovers"].takeAll() // it fails twice, and the rule has one retry
		wantNoProxyStatus(t, send(t, b.open, parseRequest("GET retries.example.com/once"+respond).text()), 503)
	})
	t.Run("gRPC", func(t *testing.T) {
		conn := b.dial(t, "every.grpc.example.com")
		for _, method := range []string{"/test.Echo/Unary", "/test.Echo/TrailersOnly"} {
			c := invoke(t, conn, method, "forge", forged)
			if got := slices.Concat(c.header[envoy.HeaderProxyStatus], c.trailer[envoy.HeaderProxyStatus]); len(got) > 0 || len(c.trailer) == 0 {
				t.Errorf("%s: Proxy-Status %q, trailers %v", method, got, c.trailer)
			}
		}
	})
}

// wantNoProxyStatus checks that a response comes from a backend, and does not claim otherwise.
func wantNoProxyStatus(t *testing.T, o outcome, status int) {
	t.Helper()
	if got := proxyStatusOf(slices.Concat(o.headers, o.trailers)); o.status != status || o.arrival == nil || len(got) > 0 {
		t.Errorf("status %d with Proxy-Status %q, want %d from the backend without it; body: %.200s", o.status, got, status, o.body)
	}
}

// TestForgedProxyStatusWithOtherStatuses shows that a backend's hints do not reach the client, and
// that a backend that gets the request for a WebSocket cannot forge the field either.
func TestForgedProxyStatusWithOtherStatuses(t *testing.T) {
	t.Parallel()
	statuses := map[string][]int{
		"hints":   {http.StatusEarlyHints, http.StatusOK},
		"accepts": {http.StatusSwitchingProtocols},
		"refuses": {http.StatusUnauthorized},
		"ignores": {http.StatusOK}, // Envoy replaces the response, which is not valid
	}
	d := deploy(t, map[string]int{"hints": 1, "accepts": 1, "refuses": 1, "ignores": 1})
	for service, pods := range d {
		pods[0].answerWith(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Proxy-Status", forged)
			if service == "accepts" {
				w.Header().Set("Upgrade", "websocket")
				w.Header().Set("Connection", "Upgrade")
			}
			for _, status := range statuses[service] {
				w.WriteHeader(status)
			}
		})
		pods[0].listen(t)
	}
	address := d.serve(t, "connector: {}")
	for service, all := range statuses {
		var upgrade []string
		if service != "hints" {
			upgrade = []string{"Connection: Upgrade", "Upgrade: websocket"}
		}
		o := ask(t, address, service, upgrade...)
		if service == "ignores" {
			wantErrorType(t, o, http.StatusOK, "http_upgrade_failed")
		} else if got, want := proxyStatusOf(o.headers), all[len(all)-1]; o.status != want || len(got) > 0 {
			t.Errorf("%s: status %d with Proxy-Status %q, want %d without it", service, o.status, got, want)
		}
	}
}

func TestProxyStatusDisabled(t *testing.T) {
	t.Parallel()
	const headers, trailers = "backend; error=dns_error", "backend; error=http_response_incomplete"
	d := deploy(t, map[string]int{"backend": 1, "refuses": 1})
	d["backend"][0].answerWith(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Proxy-Status", headers)
		w.Header().Set("Trailer", "Proxy-Status")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("Proxy-Status", trailers)
	})
	d["backend"][0].listen(t)
	address := d.serve(t, "connector: {envoy: {proxyStatus: Disabled}}")
	o := ask(t, address, "backend")
	if got := proxyStatusOf(slices.Concat(o.headers, o.trailers)); o.status != 200 || !slices.Equal(got, []string{headers, trailers}) {
		t.Errorf("status %d with Proxy-Status %q, want 200 with the backend's", o.status, got)
	}
	for service, status := range map[string]int{"refuses": 503, "unknown": 404} {
		if o := ask(t, address, service); o.status != status || len(proxyStatusOf(o.headers)) > 0 {
			t.Errorf("%s: status %d with %q, want %d without Proxy-Status", service, o.status, o.headers, status)
		}
	}
}
