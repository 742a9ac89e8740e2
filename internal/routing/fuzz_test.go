package routing_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// validHostname is the CRD pattern for hostnames, or an empty hostname.
var validHostname = regexp.MustCompile(`^((\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`)

func FuzzIntersect(f *testing.F) {
	f.Add("*.example.com", "a.b.example.com")
	f.Add("*.example.com", "*.b.example.com")
	f.Add("*.example.com", "example.com")
	f.Add("*.example.com", "notexample.com")
	f.Add("*.example.com", "*.notexample.com")
	f.Add("*.com", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		got, ok := routing.Intersect(a, b)
		if !validHostname.MatchString(a) || !validHostname.MatchString(b) {
			return
		}
		if reverse, reverseOK := routing.Intersect(b, a); reverse != got || reverseOK != ok {
			t.Errorf("routing.Intersect(%q, %q) = %q, %t, but with swapped arguments %q, %t", a, b, got, ok, reverse, reverseOK)
		}
		if ok && got != a && got != b {
			t.Errorf("routing.Intersect(%q, %q) = %q, want one of the arguments", a, b, got)
		}
		for _, host := range append(hostsAround(a), hostsAround(b)...) {
			want := matchesByLabel(a, host) && matchesByLabel(b, host)
			if matches := ok && matchesByLabel(got, host); matches != want {
				t.Errorf("routing.Intersect(%q, %q) = %q, %t: it matches host %q: %t, but both arguments match it: %t", a, b, got, ok, host, matches, want)
			}
		}
	})
}

func hostsAround(hostname string) []string {
	name := strings.TrimPrefix(hostname, "*.")
	return []string{name, "x." + name, "x.y." + name, "x" + name}
}

// matchesByLabel reports whether the hostname matches the host. It compares label
// by label, from the right.
func matchesByLabel(hostname, host string) bool {
	if hostname == "" || hostname == host {
		return true
	}
	labels, names := strings.Split(hostname, "."), strings.Split(host, ".")
	if labels[0] != "*" || len(names) < len(labels) {
		return false
	}
	rest := labels[1:]
	return strings.Join(names[len(names)-len(rest):], ".") == strings.Join(rest, ".")
}
