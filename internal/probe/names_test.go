package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// resolver is a resolver with one answer.
type resolver struct {
	addresses []string
	canonical string
	err       error
}

func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, a := range r.addresses {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, r.err
}

func (r resolver) LookupCNAME(context.Context, string) (string, error) {
	if r.canonical == "" {
		return "", errors.New("not supported")
	}
	return r.canonical, nil
}

func TestNamesAreResolved(t *testing.T) {
	for name, test := range map[string]struct {
		resolver  resolver
		want      []string
		canonical string
		failure   Failure
	}{
		"sorted without duplicates": {resolver: resolver{addresses: []string{"104.16.0.2", "::ffff:104.16.0.1", "104.16.0.2"}}, want: []string{"104.16.0.1", "104.16.0.2"}},
		"with a canonical name":     {resolver: resolver{addresses: []string{"2606:4700::1"}, canonical: "A.example.COM."}, want: []string{"2606:4700::1"}, canonical: "a.example.com"},
		"no such host":              {resolver: resolver{err: &net.DNSError{IsNotFound: true}}, failure: NoSuchHost},
		"a timeout":                 {resolver: resolver{err: &net.DNSError{IsTimeout: true}}, failure: Timeout},
		"a deadline":                {resolver: resolver{err: context.DeadlineExceeded}, failure: Timeout},
		"another error":             {resolver: resolver{err: errors.New("SERVFAIL")}, failure: Other},
	} {
		got := Resolve(t.Context(), Network{Resolver: test.resolver}, "www.example.com")
		addresses := []string{}
		for _, a := range got.Addresses {
			addresses = append(addresses, a.String())
		}
		if diff := cmp.Diff(test.want, addresses, cmpopts.EquateEmpty()); diff != "" || got.Canonical != test.canonical || got.Failure != test.failure {
			t.Errorf("%s: %+v, addresses (-want +got):\n%s", name, got, diff)
		}
		if (got.Err != nil) != (test.failure != "") {
			t.Errorf("%s: error %v", name, got.Err)
		}
	}
}

func TestAddressesOfCloudflare(t *testing.T) {
	for address, want := range map[string]bool{
		"104.16.0.1": true, "104.31.255.255": false, "104.27.255.255": true, "172.67.1.1": true, "188.114.97.3": true, "2606:4700:3030::1": true,
		"192.0.2.1": false, "10.0.0.1": false, "2001:db8::1": false, "fd10:aec2:5dae::": false,
	} {
		if got := IsCloudflare(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t, want %t", address, got, want)
		}
	}
	if !IsTunnel(netip.MustParseAddr("fd10:aec2:5dae::")) || IsTunnel(netip.MustParseAddr("fd10::1")) {
		t.Error("the address of tunnels is not recognized")
	}
	names := Names{Addresses: []netip.Addr{netip.MustParseAddr("104.16.0.1"), netip.MustParseAddr("192.0.2.1")}}
	if got := names.Outside(); len(got) != 1 || got[0].String() != "192.0.2.1" {
		t.Errorf("outside of Cloudflare: %v", got)
	}
}
