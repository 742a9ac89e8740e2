package gateway

import "github.com/tunnel-gateway/tunnel-gateway/internal/dns"

// DNSHostname is a hostname for which a DNS record is created or kept.
type DNSHostname struct {
	dns.Hostname
	// Owner is the Gateway or the ListenerSet that declares the claiming listener.
	Owner Owner
}

// DNSHostnames returns the hostnames for which DNS records are created or kept, sorted by
// name: the effective hostnames of routes on listeners that claim a hostname, with one
// entry for each hostname.
func (r *Result) DNSHostnames() []DNSHostname { return nil }

// DNS is what the statuses report about DNS records.
type DNS struct {
	// Known is false until every zone has been read and decided about. The conditions in
	// the status then remain unchanged.
	Known bool
	// Findings are by hostname.
	Findings dns.Findings
}
