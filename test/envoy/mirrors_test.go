package envoy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMirrorsReceiveCopies shows that a copy has the request's changed host and path.
func TestMirrorsReceiveCopies(t *testing.T) {
	b := start(t)
	for _, test := range []struct {
		request string
		mirrors []string
		// start and host are what arrives at the mirrors.
		start, host string
	}{
		{"POST mirrors.example.com/one?q=1", []string{"mirror"}, "POST /one?q=1 HTTP/1.1", "mirrors.example.com"},
		{"GET mirrors.example.com/two", []string{"mirror", "mirror-two"}, "GET /two HTTP/1.1", "mirrors.example.com"},
		{"GET mirrors.example.com/backend", []string{"mirror"}, "GET /backend HTTP/1.1", "mirrors.example.com"},
		{"GET mirrors.example.com/rewritten/x", []string{"mirror"}, "GET /new/x HTTP/1.1", "internal.example.org"},
	} {
		t.Run(test.request, func(t *testing.T) {
			r := parseRequest(test.request)
			if r.method == "POST" {
				r.body = "a body"
			}
			for _, name := range test.mirrors {
				b.backends.byName[name].takeAll()
			}
			o := send(t, b.open, r.text())
			if o.status != 200 || o.arrival.Backend != "one" || o.arrival.Body != r.body {
				t.Fatalf("status %d from %v, want 200 from one", o.status, o.arrival)
			}
			for _, name := range test.mirrors {
				checkCopy(t, b.backends.byName[name], test.start, test.host, o.arrival)
			}
		})
	}
}

// checkCopy waits for a copy, and compares it with the request that arrived at the backend.
func checkCopy(t *testing.T, mirror *backend, start, host string, request *arrival) {
	t.Helper()
	copies := mirror.await(t)
	if len(copies) != 1 || copies[0].Start != start || copies[0].Body != request.Body || !slices.Contains(copies[0].Lines, "host: "+host) {
		t.Fatalf("%s received %+v, want one request %q for %s", mirror.name, copies, start, host)
	}
	if diff := cmp.Diff(linesOfCopy(request.Lines), linesOfCopy(copies[0].Lines)); diff != "" {
		t.Errorf("%s received other headers (-want +got):\n%s", mirror.name, diff)
	}
}

// linesOfCopy returns the header lines in a form in which they can be compared: names in
// lower case, and without what Envoy adds to copies: the header x-envoy-internal and its
// own address.
func linesOfCopy(all []string) []string {
	var result []string
	for _, line := range without(all, "x-envoy-internal") {
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(name, "X-Forwarded-For") {
			value, _, _ = strings.Cut(value, ",")
		}
		result = append(result, strings.ToLower(name)+":"+value)
	}
	return slices.Sorted(slices.Values(result))
}

func TestMirrorsDoNotChangeTheResponse(t *testing.T) {
	run(t, []row{
		{"GET mirrors.example.com/unresolved", "200 one GET /unresolved"},
		{"GET mirrors.example.com/refuses", "200 one GET /refuses"},
		{"GET mirrors.example.com/none", "200 one GET /none"},
	})
}

func TestMirrorsReceiveAFraction(t *testing.T) {
	const requests = 500
	b := start(t)
	mirror := b.backends.byName["mirror"]
	for path, bounds := range map[string][2]int{"/some": {50, 160}, "/fraction": {180, 320}, "/none": {0, 0}} {
		mirror.takeAll()
		b.sendMany(t, "mirrors.example.com", path, requests)
		// A copy that arrives later is not among the next copies.
		b.sendMany(t, "mirrors.example.com", "/one", 1)
		count := 0
		for last := ""; last != "GET /one HTTP/1.1"; {
			for _, a := range mirror.await(t) {
				if last = a.Start; last == "GET "+path+" HTTP/1.1" {
					count++
				}
			}
		}
		if count < bounds[0] || count > bounds[1] {
			t.Errorf("%s: %d of %d requests were mirrored, want between %d and %d", path, count, requests, bounds[0], bounds[1])
		}
	}
}
