package dns

import "strings"

// certificate tells whether an edge certificate covers the hostname, and what to do if none
// does. A wildcard covers one level. Without a list of the certificates, the apex and one
// level below it are covered by Universal SSL.
func (s *situation) certificate(name string) (Certificate, string) {
	base := strings.TrimPrefix(name, "*.")
	wildcard := "*." + parent(name)
	hosts := s.Memory.hosts
	switch {
	case hosts.known && (hosts.hosts[name] || hosts.hosts[wildcard]):
		return CertificateCovers, ""
	case hosts.known && name == s.Zone:
		return CertificateMissing, "no edge certificate covers it. Order one for " + name + "."
	case hosts.known:
		return CertificateMissing, "no edge certificate covers it. Order one for " + wildcard + "."
	case base == s.Zone || name == base && parent(name) == s.Zone:
		return CertificateCovers, ""
	}
	return CertificateUnknown, ""
}
