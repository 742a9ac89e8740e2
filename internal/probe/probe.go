// Package probe observes a hostname as a visitor does: the addresses in DNS, the
// certificate that the edge presents, and the answer to one request. It knows nothing about
// clusters and changes nothing.
package probe

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"time"
)

// Network is how the package reaches the internet. The zero value is the system's network.
type Network struct {
	// Resolver resolves names. Nil selects [net.DefaultResolver].
	Resolver Resolver
	// Dial connects to "host:port", where host is the name in the URL. Nil selects a
	// [net.Dialer]. Environment variables for proxies have no effect.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// RootCAs are the authorities that sign certificates. Nil selects the system's.
	RootCAs *x509.CertPool
}

// Resolver resolves names. [*net.Resolver] implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupCNAME(ctx context.Context, host string) (string, error)
}

func (n Network) resolver() Resolver {
	if n.Resolver == nil {
		return net.DefaultResolver
	}
	return n.Resolver
}

func (n Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	if n.Dial == nil {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return n.Dial(ctx, network, address)
}

// Limits within the context's.
const (
	lookupLimit    = 10 * time.Second
	connectLimit   = 10 * time.Second
	handshakeLimit = 10 * time.Second
)

// Failure is why a probe has no result.
type Failure string

// The failures.
const (
	NoFailure Failure = ""
	// NoSuchHost means that the resolver knows no address of the name.
	NoSuchHost Failure = "no such host"
	// Timeout means that there was no answer in time.
	Timeout Failure = "timeout"
	// Refused means that the address refused the connection.
	Refused Failure = "connection refused"
	// Handshake means that the server ended the TLS handshake. Cloudflare does so for a
	// name without a certificate.
	Handshake Failure = "TLS handshake failure"
	// Untrusted means that the certificate is not valid for the name; see
	// [Presented.Problem].
	Untrusted Failure = "certificate not valid"
	// Other is every other failure.
	Other Failure = "failed"
)

// isTimeout reports whether err means that there was no answer in time.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
}
