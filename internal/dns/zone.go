package dns

import (
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// InZone reports whether the hostname is the zone's name or below it.
func InZone(hostname, zone string) bool {
	return hostname == zone || strings.HasSuffix(hostname, "."+zone)
}

// ZoneOf returns the name of the zone to which the hostname belongs: the longest name that
// the settings list. It returns false if there is none.
func ZoneOf(s settings.DNS, hostname string) (string, bool) {
	longest := ""
	for _, zone := range s.Zones {
		if InZone(hostname, zone.Name) && len(zone.Name) > len(longest) {
			longest = zone.Name
		}
	}
	return longest, longest != ""
}

// Excludes reports whether the settings exclude the hostname.
func Excludes(s settings.DNS, hostname string) bool {
	return newExclusion(s).Permits(hostname)
}

// newExclusion returns the set of excluded hostnames. A wildcard includes the hostnames
// below it, like in the annotation that permits hostnames.
func newExclusion(s settings.DNS) hostnames.Permission {
	return hostnames.ParsePermission(strings.Join(s.Exclude, ","))
}
