package envoy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRequestsArriveUnchanged compares all header lines, with their order and their case.
func TestRequestsArriveUnchanged(t *testing.T) {
	b := start(t)
	sent := []string{
		"Host: Messages.example.com:8443", "User-Agent: curl/8", "ACCEPT: */*", "x-lower: 1", "X_Underscore: 1",
		"Cookie: a=1", "Cookie: b=2", "X-Repeated: 1", "x-repeated: 2", "Via: 1.1 proxy", "X-Empty: ", "X-Text: é",
		"CF-Connecting-IP: 203.0.113.7", "Cf-Ray: 1", "CDN-Loop: cloudflare; loops=1", "X-Request-Id: visitor",
		"X-Forwarded-For: 198.51.100.1, 203.0.113.7", "X-Forwarded-Proto: https", "Traceparent: 00-1-2-01", "Accept-Encoding: gzip",
		"Expect: 200-ok", "Range: bytes=0-1", "TE: trailers", "Authorization: Bearer x", "Content-Type: text/plain", "Content-Length: 4",
	}
	o := send(t, b.open, "POST /a%2Fb/?q=a%20b+c HTTP/1.1\r\n"+strings.Join(sent, "\r\n")+"\r\n\r\nbody")
	if o.arrival == nil {
		t.Fatalf("status %d: %s", o.status, o.body)
	}
	want := slices.Clone(sent)
	want[slices.Index(want, "x-repeated: 2")] = "X-Repeated: 2" // all lines for a header get the spelling of the first one
	if diff := cmp.Diff(want, o.arrival.Lines); diff != "" {
		t.Errorf("header lines (-want +got):\n%s", diff)
	}
	if o.arrival.Start != "POST /a%2Fb/?q=a%20b+c HTTP/1.1" || o.arrival.Body != "body" {
		t.Errorf("%q arrived with the body %q", o.arrival.Start, o.arrival.Body)
	}
}

// TestResponsesReturnUnchanged compares all header lines, with their order and their case.
func TestResponsesReturnUnchanged(t *testing.T) {
	run(t, []row{
		{
			"GET messages.example.com/\nRespond: Server: nginx\nRespond: X-Upper: 1\nRespond: x-lower: 1\nRespond: Set-Cookie: a=1\nRespond: Set-Cookie: b=2\nRespond: Via: 1.1 x",
			"200 one GET /\n< Server: nginx\n< X-Upper: 1\n< x-lower: 1\n< Set-Cookie: a=1\n< Set-Cookie: b=2\n< Via: 1.1 x",
		},
		{"GET messages.example.com/\nRespond: X-Envoy-Upstream-Service-Time: 1", "200 one GET /\n< X-Envoy-Upstream-Service-Time: 1"},
		{"GET messages.example.com/\nRespond-Status: 404 Missing", "404 one GET /"},
		{"GET messages.example.com/\nRespond-Status: 503 Busy", "503 one GET /"},
		{"GET messages.example.com/\nRespond-Status: 599 Other", "599 one GET /"},
		{"GET messages.example.com/\nRespond-Status: 301 Moved\nRespond: Location: http://messages.example.com/x", "301 one GET /\n< Location: http://messages.example.com/x"},
		{"HEAD messages.example.com/", "200"},
	})
}

func TestFramingOfMessages(t *testing.T) {
	b := start(t)
	const host = "Host: messages.example.com\r\n"
	t.Run("a response keeps its Content-Length", func(t *testing.T) {
		o := send(t, b.open, "GET / HTTP/1.1\r\n"+host+"\r\n")
		if want := fmt.Sprintf("Content-Length: %d", len(o.body)); !slices.Contains(o.headers, want) {
			t.Errorf("headers %q, want %q", o.headers, want)
		}
	})
	t.Run("a HEAD response keeps its Content-Length", func(t *testing.T) {
		o := send(t, b.open, "HEAD / HTTP/1.1\r\n"+host+"\r\n")
		if !slices.ContainsFunc(o.headers, func(line string) bool { return strings.HasPrefix(line, "Content-Length: ") }) {
			t.Errorf("headers %q, want a Content-Length", o.headers)
		}
	})
	for _, path := range []string{"/", "/h2c"} {
		t.Run("a request with trailers arrives at "+path, func(t *testing.T) {
			o := send(t, b.open, "POST "+path+" HTTP/1.1\r\n"+host+"Transfer-Encoding: chunked\r\nTrailer: X-Checksum\r\n\r\n"+chunked("body", "X-Checksum: 1"))
			if o.arrival == nil || o.arrival.Body != "body" || !slices.Equal(o.arrival.Trailers, []string{"X-Checksum: 1"}) {
				t.Errorf("arrived: %+v", o.arrival)
			}
		})
	}
	t.Run("a response with trailers returns", func(t *testing.T) {
		o := send(t, b.open, "GET / HTTP/1.1\r\n"+host+"TE: trailers\r\nRespond-Trailer: X-Checksum: 1\r\n\r\n")
		if !slices.Equal(o.trailers, []string{"X-Checksum: 1"}) {
			t.Errorf("trailers %q", o.trailers)
		}
	})
	t.Run("a large body", func(t *testing.T) {
		body := strings.Repeat("x", 4<<20)
		o := send(t, b.open, fmt.Sprintf("POST / HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", host, len(body), body))
		if o.arrival == nil || len(o.arrival.Body) != len(body) {
			t.Errorf("status %d, a part of the body arrived", o.status)
		}
	})
}

// TestVisitorsCannotControlEnvoy sends the headers by which Envoy's own clients control it.
func TestVisitorsCannotControlEnvoy(t *testing.T) {
	run(t, []row{
		{
			`GET messages.example.com/
			X-Envoy-Upstream-Rq-Timeout-Ms: 1
			x-envoy-max-retries: 3
			X-ENVOY-Retry-On: 5xx
			x-envoy-original-path: /other
			x-envoy-decorator-operation: x
			x-envoy-internal: true
			x-envoy-external-address: 192.0.2.1
			x-envoy-upstream-alt-stat-name: x
			x-envoy-force-trace: true
			x-envoy-anything: 1
			X-Kept: 1`,
			"200 one GET /\n> X-Kept: 1",
		},
		{"GET messages.example.com/slow/../\nx-envoy-original-path: /slow", "200 one GET /\n>"},
	})
	b := start(t)
	resets := b.backends.byName["resets"]
	resets.takeAll()
	o := send(t, b.open, parseRequest("GET messages.example.com/resets\nx-envoy-retry-on: reset,5xx\nx-envoy-max-retries: 5").text())
	if n := len(resets.await(t)); n != 1 || o.status != 503 {
		t.Errorf("the backend received %d requests, and the client the status %d; want 1 and 503", n, o.status)
	}
}

// TestSchemeOfVisitors compares the X-Forwarded-Proto lines that arrive with the lines
// that were sent, on both listeners. Cloudflare's edge always writes one line, and a
// request without it counts as https.
func TestSchemeOfVisitors(t *testing.T) {
	b := start(t)
	schemeLines := func(lines []string) []string {
		return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
			return !strings.HasPrefix(strings.ToLower(line), "x-forwarded-proto:")
		})
	}
	for _, test := range []struct{ sent, want []string }{
		{nil, []string{"x-forwarded-proto: https"}},
		{[]string{"X-Forwarded-Proto: https"}, []string{"X-Forwarded-Proto: https"}},
		{[]string{"X-Forwarded-Proto: http"}, []string{"X-Forwarded-Proto: http"}},
		{[]string{"x-forwarded-proto: HTTP"}, []string{"x-forwarded-proto: HTTP"}},
		{[]string{"X-Forwarded-Proto: ftp"}, []string{"X-Forwarded-Proto: ftp"}},
		{[]string{"X-Forwarded-Proto: http", "X-Forwarded-Proto: https"}, []string{"X-Forwarded-Proto: http,https"}},
	} {
		for _, listener := range []struct{ address, host string }{{b.open, "messages.example.com"}, {b.protected, "admin.example.com"}} {
			lines := slices.Concat([]string{"GET / HTTP/1.1", "Host: " + listener.host, "X-Forwarded-For: 203.0.113.7"}, test.sent)
			o := send(t, listener.address, strings.Join(lines, "\r\n")+"\r\n\r\n")
			if o.arrival == nil {
				t.Errorf("%s, sent %q: status %d", listener.host, test.sent, o.status)
				continue
			}
			if diff := cmp.Diff(test.want, schemeLines(o.arrival.Lines)); diff != "" {
				t.Errorf("%s, sent %q: header lines (-want +got):\n%s", listener.host, test.sent, diff)
			}
		}
	}
}

// TestLimitsOfHeaders shows what Envoy refuses: 1,001 headers, and more than 128 KiB.
func TestLimitsOfHeaders(t *testing.T) {
	b := start(t)
	const own = 3 // Host and the connector's headers
	headers := func(n, size int) string {
		lines := make([]string, n)
		for i := range lines {
			lines[i] = fmt.Sprintf("X-%d: %s", i, strings.Repeat("x", size))
		}
		return strings.Join(lines, "\n")
	}
	for _, test := range []struct {
		name, headers string
		status        int
	}{
		{"1,000 headers", headers(1000-own, 1), 200},
		{"1,001 headers", headers(1001-own, 1), 431},
		{"100 KiB", headers(10, 10<<10), 200},
		{"a header of 120 KiB", headers(1, 120<<10), 200},
		{"130 KiB", headers(13, 10<<10), 431},
	} {
		t.Run(test.name, func(t *testing.T) {
			if o := send(t, b.open, parseRequest("GET messages.example.com/\n"+test.headers).text()); o.status != test.status {
				t.Errorf("status %d, want %d", o.status, test.status)
			}
		})
	}
	for many, status := range map[string]int{
		"999 headers of 1 bytes": 200, "1000 headers of 1 bytes": 502, "12 headers of 10240 bytes": 200, "13 headers of 10240 bytes": 502,
	} {
		t.Run("a response with "+many, func(t *testing.T) {
			if o := send(t, b.open, parseRequest("GET messages.example.com/\nRespond-Many: "+many).text()); o.status != status {
				t.Errorf("status %d, want %d", o.status, status)
			}
		})
	}
}
