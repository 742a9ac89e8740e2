package dns

import (
	"iter"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The types of records that answer for addresses, and delegations.
const (
	typeCNAME = "CNAME"
	typeNS    = "NS"
)

// isAddress reports whether a record of the type prevents a CNAME record with its name.
func isAddress(recordType string) bool {
	return recordType == typeCNAME || recordType == "A" || recordType == "AAAA"
}

// target returns a CNAME record's target in the form of [provider.TunnelID.Hostname].
func target(r provider.Record) string {
	return strings.ToLower(strings.TrimSuffix(r.Content, "."))
}

// LeadsDirectly reports whether the record is a CNAME record whose target is the hostname,
// which has the form of [provider.TunnelID.Hostname].
func LeadsDirectly(r provider.Record, hostname string) bool {
	return r.Type == typeCNAME && target(r) == hostname
}

// parent returns the name without its first label.
func parent(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	return rest
}

// upwards yields the name and the names above it, without the zone's name.
func upwards(name, zone string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := name; n != zone && InZone(n, zone); n = parent(n) {
			if !yield(n) {
				return
			}
		}
	}
}

// isTunnel reports whether a record with this target leads to a tunnel.
func isTunnel(target string) bool { return strings.HasSuffix(target, tunnelSuffix) }

// tunnelSuffix ends the public hostname of every tunnel.
var tunnelSuffix = provider.TunnelID("").Hostname()

// isWildcard reports whether the hostname is a wildcard.
func isWildcard(name string) bool { return strings.HasPrefix(name, "*.") }

// maxLabel is the maximum length of a label. (Source: RFC 1035, section 2.3.4)
const maxLabel = 63

// canBeLookedUp reports whether a hostname that the CRDs accept can have a DNS record: no
// label is too long.
func canBeLookedUp(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if len(label) > maxLabel {
			return false
		}
	}
	return true
}
