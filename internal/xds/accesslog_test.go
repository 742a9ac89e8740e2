package xds_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// line is a line of the access log.
type line map[string]any

// lines returns the lines of the access log. Each has to be one JSON object.
func (s *sidecar) lines(t *testing.T) []line {
	t.Helper()
	content, err := os.ReadFile(s.stdout)
	if err != nil {
		t.Fatal(err)
	}
	end := strings.LastIndexByte(string(content), '\n') + 1 // the rest is being written
	var all []line
	for text := range strings.Lines(string(content[:end])) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("a line is not a JSON object: %v: %q", err, text)
		}
		all = append(all, l)
	}
	return all
}

// raw sends the bytes on a connection of its own, and reads the response.
func raw(t *testing.T, address, request string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// logged returns a publication with an access log. Both listeners serve the hostname.
func logged(sequence int64, table *routing.Table, a v1alpha1.AccessLog) xds.Publication {
	return publicationWithLog(sequence, table, &a)
}

// publicationWithLog returns a publication with an access log, or without one.
func publicationWithLog(sequence int64, table *routing.Table, a *v1alpha1.AccessLog) xds.Publication {
	table.Telemetry.AccessLog = a
	both := envoy.Transition{Placements: map[string]envoy.Placement{hostname: {Open: envoy.Served, Protected: envoy.Served}}}
	return xds.Publication{
		Gateway: shared, Tunnel: sharedTunnel, Sequence: sequence, Resources: envoy.RenderTransition(table, both, nil), Assignments: envoy.Assignments{},
		Listeners: envoy.Listeners(envoy.ReadyOptions{Metrics: true}, table.Telemetry),
	}
}

// fields are the keys of every line with the defaults.
var fields = []string{
	"attempts", "backend", "backend_ms", "bytes_received", "bytes_sent", "cf_ray", "details", "duration_ms", "first_byte_ms", "flags", "grpc_status",
	"host", "method", "path", "pod", "protocol", "route", "status", "time", "traceparent", "visitor",
}

// awaitLines waits until the log has so many lines.
func (s *sidecar) awaitLines(t *testing.T, count int) []line {
	t.Helper()
	await(t, fmt.Sprintf("%d lines", count), func() bool { return len(s.lines(t)) >= count })
	all := s.lines(t)
	if len(all) != count {
		t.Fatalf("%d lines, want %d: %v", len(all), count, all)
	}
	return all
}

// loggingSidecar returns an Envoy that logs, and the table whose backend has the handler.
func loggingSidecar(t *testing.T, a v1alpha1.AccessLog, handler http.HandlerFunc) (*sidecar, *routing.Table) {
	t.Helper()
	s := newSidecar(t)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	table := tableFor(backendAt(t, "web", server))
	s.publish(t, logged(1, table, a))
	await(t, "port for probes", func() bool { return listens(s.ready) })
	return s, table
}

// A line has exactly what the request was, although the route has replaced its path and its
// host. Numbers are numbers.
func TestAccessLogDescribesARequest(t *testing.T) {
	s := newSidecar(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/internal/cart" || r.Host != "internal.example.com" {
			t.Errorf("the backend got %s %s", r.Host, r.URL)
		}
		if r.Header.Get("X-Envoy-Attempt-Count") != "" || r.Header.Get("X-Envoy-Original-Path") != "" {
			t.Errorf("the backend got %v", r.Header)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "sold")
	}))
	defer server.Close()
	table := tableFor(backendAt(t, "web", server))
	table.Groups[0].Entries[0].Action.Forward.Filters = &routing.Filters{Rewrite: routing.Rewrite{
		Hostname: "internal.example.com", Path: &routing.PathChange{Prefix: true, Value: "/internal"},
	}}
	s.publish(t, logged(1, table, v1alpha1.AccessLog{}))
	await(t, "port for probes", func() bool { return listens(s.ready) })
	raw(t, s.open, "POST /app/cart?token=secret HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: 3\r\nX-Forwarded-For: 198.51.100.1, 192.0.2.7\r\n"+
		"x-envoy-original-path: /forged\r\nCF-Ray: 8f1-FRA\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\nabc")
	got := s.awaitLines(t, 1)[0]
	for _, name := range []string{"duration_ms", "backend_ms", "first_byte_ms"} {
		if ms, ok := got[name].(float64); !ok || ms < 0 {
			t.Errorf("%s is %v", name, got[name])
		}
		delete(got, name)
	}
	if at, err := time.Parse(time.RFC3339, fmt.Sprint(got["time"])); err != nil || time.Since(at) > time.Hour {
		t.Errorf("time is %v", got["time"])
	}
	delete(got, "time")
	want := line{
		"attempts": 1., "backend": "team/web:" + portOf(server), "bytes_received": 3., "bytes_sent": 4., "cf_ray": "8f1-FRA", "details": "via_upstream",
		"flags": "-", "grpc_status": nil, "host": "app.example.com", "method": "POST", "path": "/app/cart", "pod": "127.0.0.1:" + portOf(server),
		"protocol": "HTTP/1.1", "route": "HTTPRoute team/app rule 0", "status": 201., "visitor": "192.0.2.7",
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the line differs (-want +got):\n%s", diff)
	}
}

// A line for a request that failed has the reason, the attempts and the gRPC status, in words
// that are Envoy's own.
func TestAccessLogDescribesAFailure(t *testing.T) {
	s, table := loggingSidecar(t, v1alpha1.AccessLog{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	table.Groups[0].Entries[0].Action.Forward.Retry = &routing.Retry{Codes: []int{503}, Attempts: 2}
	s.publish(t, logged(2, table, v1alpha1.AccessLog{}))
	s.awaitAcknowledged(t, 2)
	raw(t, s.open, "GET /app HTTP/1.1\r\nHost: app.example.com\r\n\r\n")
	raw(t, s.open, "GET /missing HTTP/1.1\r\nHost: app.example.com\r\n\r\n")
	raw(t, s.open, "POST /missing HTTP/1.1\r\nHost: app.example.com\r\nContent-Type: application/grpc\r\n\r\n")
	raw(t, s.protected, "GET /app HTTP/1.1\r\nHost: APP.example.com\r\n\r\n")
	all := s.awaitLines(t, 4)
	for i, want := range []line{
		{"attempts": 3., "flags": "URX", "details": "via_upstream", "grpc_status": nil, "status": 503., "route": "HTTPRoute team/app rule 0"},
		{"attempts": 0., "flags": "NR", "details": "route_not_found", "grpc_status": nil, "status": 404., "route": nil},
		{"attempts": 0., "flags": "NR", "details": "route_not_found", "grpc_status": "12", "status": 200., "route": nil},
		{"attempts": 0., "flags": "-", "details": "rbac_access_denied_matched_policy[not-canonical]", "status": 403., "host": "APP.example.com", "path": "/app"},
	} {
		for name, value := range want {
			if all[i][name] != value {
				t.Errorf("line %d: %s is %v, want %v", i, name, all[i][name], value)
			}
		}
	}
}

// The gRPC status in a line comes from the response and is cut to a limit. Envoy never infers
// it from the request's Content-Type.
func TestAccessLogHasTheStatusOfACall(t *testing.T) {
	s, _ := loggingSidecar(t, v1alpha1.AccessLog{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/app/header":
			w.Header().Set("Grpc-Status", "14")
		case "/app/trailer":
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = io.WriteString(w, "message")
			w.Header().Set("Grpc-Status", "13")
		case "/app/long":
			w.Header().Set("Grpc-Status", strings.Repeat("1", 5000))
		}
	})
	paths := []string{"/app/header", "/app/trailer", "/app/long", "/app/website"}
	for _, path := range paths {
		raw(t, s.open, "POST "+path+" HTTP/1.1\r\nHost: app.example.com\r\nTE: trailers\r\nContent-Type: application/grpc\r\n\r\n")
	}
	all := s.awaitLines(t, len(paths))
	for i, want := range []any{"14", "13", strings.Repeat("1", 128), nil} {
		if got := all[i]["grpc_status"]; got != want {
			t.Errorf("%s: grpc_status is %v, want %v", paths[i], got, want)
		}
	}
}

// Neither headers, queries, bodies nor trailers are logged, except for the fields that name
// them. The canary is in every one of them.
func TestAccessLogHasNoSecrets(t *testing.T) {
	const canary = "CaNaRy"
	s, _ := loggingSidecar(t, v1alpha1.AccessLog{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for _, name := range canaryHeaders {
			w.Header().Set(name, canary)
		}
		w.Header().Set("Trailer", "X-Trailer, Grpc-Message")
		w.Header().Set("Set-Cookie", "session="+canary)
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, canary)
		w.Header().Set("X-Trailer", canary)
		w.Header().Set("Grpc-Message", canary)
	})
	var headers strings.Builder
	for _, name := range canaryHeaders {
		fmt.Fprintf(&headers, "%s: %s\r\n", name, canary)
	}
	chunked := "Transfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n\r\n6\r\n" + canary + "\r\n0\r\nX-Trailer: " + canary + "\r\n\r\n"
	requests := []string{
		"POST /app?token=" + canary + " HTTP/1.1\r\nHost: app.example.com\r\n" + headers.String() + chunked,
		"POST /missing?" + canary + "#" + canary + " HTTP/1.1\r\nHost: app.example.com\r\n" + headers.String() + chunked,
		"GET http://user:" + canary + "@app.example.com/app HTTP/1.1\r\nHost: app.example.com\r\n\r\n",
		"GET /app HTTP/1.1\r\nHost: app.example.com\r\nContent-Length: " + canary + "\r\n\r\n",
		"GET /app HTTP/1.1\r\nHost: app.example.com\r\n" + canary + "\r\n\r\n",
		"GET /app HTTP/1.1\r\nHost: app.example.com\r\nX: " + canary + "\x00\r\n\r\n",
		"GET /app HTTP/1.1\r\nHost: app.example.com\r\nTransfer-Encoding: " + canary + "\r\n\r\n",
		"GET /app HTTP/" + canary + "\r\nHost: app.example.com\r\n\r\n",
		canary + "\r\n\r\n",
	}
	for _, address := range []string{s.open, s.protected} {
		for _, request := range requests {
			raw(t, address, request)
		}
	}
	for _, l := range s.awaitLines(t, 2*len(requests)) {
		if text := fmt.Sprint(l); strings.Contains(strings.ToLower(text), strings.ToLower(canary)) {
			t.Errorf("a line has the secret: %s", text)
		}
	}
}

// canaryHeaders are headers that contain secrets, or that Envoy interprets.
var canaryHeaders = []string{
	"Authorization", "Proxy-Authorization", "Cookie", "Cookie2", "X-Api-Key", "X-Auth-Token", "X-Amz-Security-Token", "X-Csrf-Token",
	"CF-Access-Client-Id", "CF-Access-Client-Secret", "CF-Access-Token", "Cf-Access-Jwt-Assertion", "Cf-Access-Authenticated-User-Email", "CF-Authorization",
	"Referer", "User-Agent", "Origin", "From", "Forwarded", "Via", "X-Forwarded-Host", "X-Forwarded-User", "X-Real-Ip", "True-Client-Ip", "X-Request-Id",
	"Tracestate", "Baggage", "B3", "X-B3-TraceId", "X-Envoy-Original-Path", "X-Envoy-Original-Host", "X-Envoy-Decorator-Operation", "X-Envoy-Retry-On",
	"Location", "Content-Disposition", "Www-Authenticate", "Server", "Content-Language", "Grpc-Message", "Grpc-Status-Details-Bin", "X-Secret",
}

// A visitor can neither end a line nor add a field, and every text has a limit.
func TestVisitorsCannotForgeTheAccessLog(t *testing.T) {
	s, _ := loggingSidecar(t, v1alpha1.AccessLog{}, func(http.ResponseWriter, *http.Request) {})
	long := strings.Repeat("x", 5000)
	send := func(path, host, header string) {
		raw(t, s.open, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n"+header+"\r\n")
	}
	hostile := []string{`","status":200,"x":"`, `\u0022}{"a":1}`, "a\tb", "\xff\xfe\xc3", "\xed\xa0\x80", `%REQ(COOKIE)%`, "\xe2\x80\xa8", `\`, `"`, "", long}
	for _, value := range hostile {
		send("/app", "app.example.com", "CF-Ray: "+value+"\r\nCF-Ray: second\r\ntraceparent: "+value+"\r\ntraceparent: second\r\n")
	}
	send(`/app","x":"%0a%0d%22%00a`, "app.example.com", "")
	send(`/app/%0a%0d%22%5c%ff"\`, "app.example.com", "")
	send("/app/"+long, "app.example.com", "")
	send("/app", long+".example.com", "")
	send("/app", `a"b.example.com`, "")
	send("/app", "app.example.com\r\nHost: other.example.com", "")
	raw(t, s.open, "X"+long+" /app HTTP/1.1\r\nHost: app.example.com\r\n\r\n")
	all := s.awaitLines(t, len(hostile)+7)
	for _, l := range all {
		if got := slices.Sorted(maps.Keys(l)); !slices.Equal(got, fields) {
			t.Errorf("the fields are %v", got)
		}
		for name, limit := range map[string]int{"host": 1024, "path": 1024, "method": 128, "cf_ray": 128, "traceparent": 128, "details": 128, "flags": 128} {
			if text, ok := l[name].(string); ok && len(text) > limit {
				t.Errorf("%s has %d bytes: %q", name, len(text), text)
			}
		}
	}
	if got := all[len(hostile)+2]["path"]; got != "/app/"+long[:1019] {
		t.Errorf("the long path is %q", got)
	}
	if got := all[0]["cf_ray"]; got != hostile[0] {
		t.Errorf("the first header is %q, want %q", got, hostile[0])
	}
}

// The settings decide what a line has.
func TestAccessLogSettings(t *testing.T) {
	yes := true
	address := func(v v1alpha1.VisitorAddress) v1alpha1.AccessLog { return v1alpha1.AccessLog{VisitorAddress: &v} }
	s, table := loggingSidecar(t, v1alpha1.AccessLog{}, func(http.ResponseWriter, *http.Request) {})
	for i, c := range []struct {
		settings v1alpha1.AccessLog
		from     string
		want     line
	}{
		{v1alpha1.AccessLog{}, "192.0.2.7", line{"visitor": "192.0.2.7", "path": "/app"}},
		{v1alpha1.AccessLog{Query: &yes}, "2001:db8:1:2::3", line{"visitor": "2001:db8:1:2::3", "path": "/app?a=b"}},
		{address(v1alpha1.VisitorAddressPrefix), "192.0.2.7", line{"visitor": "192.0.2.0/24", "path": "/app"}},
		{address(v1alpha1.VisitorAddressPrefix), "2001:db8:1:2::3", line{"visitor": "2001:d00::/24", "path": "/app"}},
		{address(v1alpha1.VisitorAddressNone), "192.0.2.7", line{"visitor": nil, "path": "/app"}},
	} {
		sequence := int64(i + 2)
		s.publish(t, logged(sequence, table, c.settings))
		s.awaitAcknowledged(t, sequence)
		get(t, s.open, "/app?a=b", c.from)
		got := s.awaitLines(t, i+1)[i]
		if _, has := got["visitor"]; got["visitor"] != c.want["visitor"] || has != (c.want["visitor"] != nil) || got["path"] != c.want["path"] {
			t.Errorf("case %d: got %v, want %v", i, got, c.want)
		}
	}
}

// get sends a request from an address. Envoy has to answer it.
func get(t *testing.T, listener, path, from string) {
	t.Helper()
	raw(t, listener, "GET "+path+" HTTP/1.1\r\nHost: app.example.com\r\nX-Forwarded-For: "+from+"\r\n\r\n")
}

// Without sampled requests, only failures are logged, and not even these if they are sampled too.
func TestAccessLogSampling(t *testing.T) {
	none, sampledErrors := int32(0), v1alpha1.LoggedErrorsSampled
	s, table := loggingSidecar(t, v1alpha1.AccessLog{SamplingPercent: &none}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/app/500":
			w.WriteHeader(http.StatusInternalServerError)
		case "/app/reset":
			panic(http.ErrAbortHandler)
		}
	})
	paths := []string{"/app", "/app/500", "/missing", "/app/reset", "/app"}
	for _, path := range paths {
		get(t, s.open, path, "192.0.2.7")
	}
	failures := s.awaitLines(t, 2)
	if failures[0]["path"] != "/app/500" || failures[1]["path"] != "/app/reset" || failures[1]["flags"] != "UC" {
		t.Errorf("got %v", failures)
	}
	s.publish(t, logged(2, table, v1alpha1.AccessLog{SamplingPercent: &none, Errors: &sampledErrors}))
	s.awaitAcknowledged(t, 2)
	for _, path := range paths {
		get(t, s.open, path, "192.0.2.7")
	}
	s.publish(t, logged(3, table, v1alpha1.AccessLog{}))
	s.awaitAcknowledged(t, 3)
	get(t, s.open, "/app/last", "192.0.2.7")
	if last := s.awaitLines(t, 3)[2]; last["path"] != "/app/last" {
		t.Errorf("got %v", last)
	}
}

// A WebSocket is logged when it ends, like every request.
func TestAccessLogHasAWebSocketAtItsEnd(t *testing.T) {
	s, _ := loggingSidecar(t, v1alpha1.AccessLog{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close() //nolint:errcheck // a test
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, conn)
	})
	conn, err := net.Dial("tcp", s.open)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	_, _ = io.WriteString(conn, "GET /app/socket HTTP/1.1\r\nHost: app.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
	answer := make([]byte, 512)
	if n, err := conn.Read(answer); err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 101") {
		t.Fatalf("got %q, %v", answer[:n], err)
	}
	get(t, s.open, "/app/while", "192.0.2.7")
	if got := s.awaitLines(t, 1)[0]["path"]; got != "/app/while" {
		t.Errorf("the first line is for %v", got)
	}
	_ = conn.Close()
	if got := s.awaitLines(t, 2)[1]; got["path"] != "/app/socket" || got["status"] != 101. || got["bytes_received"] != 5. {
		t.Errorf("got %v", got)
	}
}
