package cli

import (
	"net"
	"net/netip"
	"slices"
)

// podAddresses returns all addresses of the pod that has the address ip. In a dual-stack
// cluster, a pod has one for each IP version. Outside a cluster, it returns none.
func podAddresses(ip netip.Addr) []netip.Addr {
	if !ip.IsValid() {
		return nil
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return []netip.Addr{ip}
	}
	for i := range interfaces {
		if all := addressesOf(&interfaces[i]); slices.Contains(all, ip.Unmap()) {
			return all
		}
	}
	return []netip.Addr{ip}
}

// addressesOf returns the addresses of a network interface, or none if it cannot read them.
func addressesOf(i *net.Interface) []netip.Addr {
	found, _ := i.Addrs()
	var all []netip.Addr
	for _, address := range found {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			all = append(all, prefix.Addr().Unmap())
		}
	}
	return all
}
