package routing_test

import (
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// No notation of an address hides what it is.
func TestRefusedAddresses(t *testing.T) {
	isReserved := func(ip string) bool { return ip == "10.244.0.9" || ip == "fd00::9" }
	const (
		loopback, linkLocal, multicast = "a loopback address", "a link-local address", "a multicast address"
		unspecified, reserved          = "the unspecified address", "the address of a connector or of the controller"
	)
	for text, want := range map[string]string{
		"10.0.0.1": "", "8.8.8.8": "", "fd00::1": "", "2001:db8::1": "", "::ffff:10.0.0.1": "", "128.0.0.1": "",
		"127.0.0.1": loopback, "127.255.255.254": loopback, "::1": loopback, "::ffff:127.0.0.1": loopback, "0:0:0:0:0:ffff:7f00:1": loopback, "127.000.000.001": loopback,
		"169.254.169.254": linkLocal, "fe80::1": linkLocal, "febf::1": linkLocal, "::ffff:169.254.169.254": linkLocal, "::FFFF:A9FE:A9FE": linkLocal,
		"224.0.0.1": multicast, "239.1.2.3": multicast, "ff02::1": multicast, "ff0e::1": multicast, "::ffff:224.0.0.1": multicast,
		"0.0.0.0": unspecified, "::": unspecified, "::ffff:0.0.0.0": unspecified, "000.000.000.000": unspecified,
		"10.244.0.9": reserved, "::ffff:10.244.0.9": reserved, "010.244.000.009": reserved, "fd00:0::9": reserved,
		"localhost": "not an IP address", "": "not an IP address", "fe80::1%eth0": "not an IP address", "2130706433": "not an IP address", "0x7f.1": "not an IP address",
	} {
		if got := routing.RefusedAddress(routing.CanonicalIP(text), isReserved); got != want {
			t.Errorf("RefusedAddress(%q) = %q, want %q", text, got, want)
		}
	}
}
