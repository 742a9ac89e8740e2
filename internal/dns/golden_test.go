package dns_test

import (
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// A zone matches whole labels, and the longest zone name counts.
func TestZoneOf(t *testing.T) {
	s := settings.DNS{Zones: []v1alpha1.DNSZone{{Name: "example.com"}, {Name: "team.example.com"}}}
	for hostname, want := range map[string]string{
		"example.com": "example.com", "*.example.com": "example.com", "www.example.com": "example.com", "notexample.com": "", "com": "",
		"team.example.com": "team.example.com", "*.team.example.com": "team.example.com", "a.b.team.example.com": "team.example.com",
	} {
		if got, ok := dns.ZoneOf(s, hostname); got != want || ok != (want != "") {
			t.Errorf("the zone of %s is %q, want %q", hostname, got, want)
		}
	}
}

// Cases are still missing for Published, Pending, RecordConflict, HeldByAnotherGateway,
// NotProxied, NoZone, HostnameNotPermitted, Forbidden, QuotaExceeded,
// ZoneSettingsConflict, Covered, NotCovered and NotChecked.
