package simulator

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// Resolver is a visitor's resolver. It has the methods of [net.Resolver] with the same names,
// and looks names up in [Options.Zones].
type Resolver struct{ zones *zones.Database }

// Resolver returns a visitor's resolver.
func (s *Server) Resolver() *Resolver { return &Resolver{s.options.Zones} }

// edgeAddresses are in Cloudflare's published ranges.
var edgeAddresses = []netip.Addr{netip.MustParseAddr("104.16.0.1"), netip.MustParseAddr("2606:4700::6810:1")}

// tunnelAddress is the address of every name below cfargotunnel.com in the public DNS. It
// leads nowhere. (Source: public reports.)
var tunnelAddress = netip.MustParseAddr("fd10:aec2:5dae::")

// LookupNetIP returns the addresses of a host.
func (r *Resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	addresses, _ := r.lookup(host)
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addresses, nil
}

// LookupCNAME returns the name at the end of the host's CNAME records that visitors see.
func (r *Resolver) LookupCNAME(_ context.Context, host string) (string, error) {
	addresses, name := r.lookup(host)
	if len(addresses) == 0 {
		return "", &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return name + ".", nil
}

// lookup returns the addresses of a host and the name that has them.
func (r *Resolver) lookup(host string) ([]netip.Addr, string) {
	answer := r.zones.Lookup(host)
	for _, step := range answer.Steps {
		if step.Proxied() {
			return edgeAddresses, step.Name
		}
	}
	switch {
	case answer.Outcome != zones.Found:
		return nil, ""
	case strings.HasSuffix(answer.Target, tunnelDomain):
		return []netip.Addr{tunnelAddress}, answer.Target
	case answer.Target != "":
		return nil, "" // the simulator has no addresses outside of its zones
	}
	last := answer.Steps[len(answer.Steps)-1]
	var addresses []netip.Addr
	for _, record := range last.Records {
		if a, err := netip.ParseAddr(record.Content); err == nil {
			addresses = append(addresses, a)
		}
	}
	return addresses, last.Name
}
