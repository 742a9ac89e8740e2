package routing

import (
	"math"
	"net/netip"

	netutils "k8s.io/utils/net"
)

// CanonicalIP returns the canonical form of an IP address, or an empty string when the text
// is not an IP address. The API server also accepts other forms, such as IPv4 addresses with
// leading zeros, which Envoy rejects, and IPv4 addresses in the form of IPv6.
func CanonicalIP(text string) string {
	if address, err := netip.ParseAddr(text); err == nil && address.Is4() {
		return text // ParseAddr accepts only the canonical form of IPv4 addresses
	}
	ip := netutils.ParseIPSloppy(text)
	if ip == nil {
		return ""
	}
	return ip.String()
}

// RefusedAddress says what a canonical IP address is if no backend may have it, such as "a
// loopback address", or returns "". Tenants can write the addresses of backends, so without
// this check they could reach the ports that a connector pod opens for itself or for other
// tenants, and the metadata service of a node. isReserved reports the addresses of
// connectors and of the controller.
func RefusedAddress(ip string, isReserved func(ip string) bool) string {
	address, err := netip.ParseAddr(ip)
	switch address = address.Unmap(); {
	case err != nil:
		return "not an IP address"
	case address.IsUnspecified():
		return "the unspecified address"
	case address.IsLoopback():
		return "a loopback address"
	case address.IsLinkLocalUnicast():
		return "a link-local address"
	case address.IsMulticast():
		return "a multicast address"
	case isReserved(ip):
		return "the address of a connector or of the controller"
	default:
		return ""
	}
}

// IsPort reports whether the number can be the port of a backend. The API server does not
// check the numbers in EndpointSlices and ServiceImports, and one invalid number makes a data
// plane reject the routes of all tenants.
func IsPort(number int32) bool {
	return number > 0 && number <= math.MaxUint16
}
