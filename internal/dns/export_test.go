package dns

import "github.com/tunnel-gateway/tunnel-gateway/provider"

// MarkForTest returns the comment of a record that the installation manages.
func MarkForTest(o Options, zone provider.ZoneID, name, target string) string {
	return o.mark(zone, name, target)
}
