package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// network returns how check reaches the host: as every visitor does, unless --connect-to or
// --ca-file is set.
func (o *checkOptions) network() (probe.Network, error) {
	var n probe.Network
	if o.connectTo != "" {
		n.Dial = connectTo(o.connectTo)
	}
	if o.caFile == "" {
		return n, nil
	}
	text, err := os.ReadFile(o.caFile)
	if err != nil {
		return n, fmt.Errorf("--ca-file: %w", err)
	}
	n.RootCAs = x509.NewCertPool()
	if !n.RootCAs.AppendCertsFromPEM(text) {
		return n, fmt.Errorf("--ca-file: %w", errors.New(o.caFile+" contains no certificate in PEM"))
	}
	return n, nil
}

// isAddress reports whether text is an IP address, with or without a port.
func isAddress(text string) bool {
	_, withoutPort := netip.ParseAddr(text)
	_, withPort := netip.ParseAddrPort(text)
	return withoutPort == nil || withPort == nil
}

// connectTo returns a function that connects to the address. Without a port in the address,
// it connects to the port for which it is called.
func connectTo(address string) func(ctx context.Context, network, original string) (net.Conn, error) {
	return func(ctx context.Context, network, original string) (net.Conn, error) {
		target := address
		if _, err := netip.ParseAddr(address); err == nil {
			_, port, err := net.SplitHostPort(original)
			if err != nil {
				return nil, err
			}
			target = net.JoinHostPort(address, port)
		}
		return (&net.Dialer{}).DialContext(ctx, network, target)
	}
}
