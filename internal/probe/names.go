package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Names is what a resolver says about a host.
type Names struct {
	// Addresses are sorted and without duplicates.
	Addresses []netip.Addr
	// Canonical is the name at the end of the CNAME records, in lower case and without a dot
	// at its end. It is empty if the resolver does not say.
	Canonical string
	Failure   Failure
	// Err is the resolver's error if there is a failure.
	Err error
}

// Resolve looks the host up.
func Resolve(ctx context.Context, n Network, host string) Names {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	addresses, err := n.resolver().LookupNetIP(ctx, "ip", host)
	if err != nil {
		return Names{Failure: lookupFailure(err), Err: err}
	}
	for i, a := range addresses {
		addresses[i] = a.Unmap().WithZone("")
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	names := Names{Addresses: slices.Compact(addresses)}
	// Not every resolver tells the name, and the addresses are what matters.
	if canonical, err := n.resolver().LookupCNAME(ctx, host); err == nil {
		names.Canonical = strings.TrimSuffix(strings.ToLower(canonical), ".")
	}
	return names
}

func lookupFailure(err error) Failure {
	dnsError, ok := errors.AsType[*net.DNSError](err)
	switch {
	case ok && dnsError.IsNotFound:
		return NoSuchHost
	case isTimeout(err):
		return Timeout
	}
	return Other
}

// Outside returns the addresses that are not Cloudflare's.
func (n Names) Outside() []netip.Addr {
	return slices.DeleteFunc(slices.Clone(n.Addresses), IsCloudflare)
}
