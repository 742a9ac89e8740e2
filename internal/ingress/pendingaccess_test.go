package ingress_test

import (
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
)

func TestPendingAccess(t *testing.T) {
	const hostnames = "a.example.com b.example.com *.example.org"
	for name, c := range map[string]struct{ desired, current, want string }{
		"nothing":        {"a.example.com", "a.example.com", ""},
		"added":          {"a.example.com b.example.com", "a.example.com", "b.example.com"},
		"removed":        {"a.example.com", "a.example.com *.example.org", "*.example.org"},
		"other hostname": {"a.example.com", "b.example.com", "a.example.com b.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			desired, current := ingress.EnvoyConfiguration(tableOf(hostnames, c.desired)), ingress.EnvoyConfiguration(tableOf(hostnames, c.current))
			if got := strings.Join(ingress.PendingAccess(*desired, *current), " "); got != c.want {
				t.Errorf("Access of %q is pending, want %q", got, c.want)
			}
		})
	}
}
