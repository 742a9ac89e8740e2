package cli

import (
	"net"
	"net/netip"
	"slices"
	"testing"
)

// Each address of a network interface leads to all of them.
func TestAddressesOfThePod(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for i := range interfaces {
		all := addressesOf(&interfaces[i])
		most = max(most, len(all))
		for _, ip := range all {
			if got := podAddresses(ip); !slices.Equal(got, all) {
				t.Errorf("the pod with %s has the addresses %s, want %s", ip, got, all)
			}
		}
	}
	if most == 0 {
		t.Error("no network interface has an address")
	}
	unknown := netip.MustParseAddr("2001:db8::1")
	if got := podAddresses(unknown); !slices.Equal(got, []netip.Addr{unknown}) {
		t.Errorf("the addresses are %s, want %s", got, unknown)
	}
	if got := podAddresses(netip.Addr{}); got != nil {
		t.Errorf("outside a cluster, the addresses are %s", got)
	}
}
