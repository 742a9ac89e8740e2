package routing

import netutils "k8s.io/utils/net"

// CanonicalIP returns the canonical form of an IP address, or an empty string when the text
// is not an IP address. The API server also accepts other forms, such as IPv4 addresses with
// leading zeros, which Envoy rejects, and IPv4 addresses in the form of IPv6.
func CanonicalIP(text string) string {
	ip := netutils.ParseIPSloppy(text)
	if ip == nil {
		return ""
	}
	return ip.String()
}
