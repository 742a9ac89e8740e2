package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"
	"time"
)

// Presented is the certificate that a server presents.
type Presented struct {
	// Names are the certificate's DNS names. Wildcards cover one level.
	Names []string
	// Issuer names the authority that signed the certificate.
	Issuer string
	// NotAfter is when the certificate expires.
	NotAfter time.Time
	// Problem is what is wrong with a certificate that is [Untrusted].
	Problem Problem
	Failure Failure
	// Err is the error if there is a failure.
	Err error
}

// Problem is why a certificate is not valid.
type Problem string

// The problems.
const (
	// WrongName means that the certificate is for other names.
	WrongName Problem = "wrong name"
	// Expired means that the certificate has expired, or is not valid yet.
	Expired Problem = "expired"
	// UnknownAuthority means that no trusted authority signed the certificate.
	UnknownAuthority Problem = "unknown authority"
	// Invalid is every other problem.
	Invalid Problem = "invalid"
)

// Certificate connects to the host and returns the certificate that it presents for its
// name. It sends no request.
func Certificate(ctx context.Context, n Network, host, port string) Presented {
	connection, err := n.dial(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return Presented{Failure: connectFailure(err), Err: err}
	}
	defer func() { _ = connection.Close() }() // nothing was sent that could be lost
	client := tls.Client(connection, &tls.Config{
		ServerName: host,
		// The certificate is verified below: a certificate that is not valid is a result.
		InsecureSkipVerify: true, // #nosec G402 -- no data is sent
		MinVersion:         tls.VersionTLS12,
	})
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	if err := client.HandshakeContext(ctx); err != nil {
		return Presented{Failure: handshakeFailure(err), Err: err}
	}
	return n.verify(host, client.ConnectionState().PeerCertificates)
}

// verify describes and verifies a chain of certificates. The first one is the host's.
func (n Network) verify(host string, chain []*x509.Certificate) Presented {
	leaf := chain[0] // a server presents at least one
	p := Presented{Names: leaf.DNSNames, Issuer: issuer(leaf), NotAfter: leaf.NotAfter}
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: n.RootCAs, Intermediates: intermediates})
	if err != nil {
		p.Failure, p.Problem, p.Err = Untrusted, problemOf(err), err
	}
	return p
}

func issuer(c *x509.Certificate) string {
	if len(c.Issuer.Organization) > 0 {
		return strings.TrimSpace(c.Issuer.Organization[0] + " " + c.Issuer.CommonName)
	}
	return c.Issuer.CommonName
}

func problemOf(err error) Problem {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return WrongName
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return UnknownAuthority
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return Expired
	}
	return Invalid
}

// connectFailure is why a connection without TLS failed.
func connectFailure(err error) Failure {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case isTimeout(err):
		return Timeout
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return lookupFailure(err)
	}
	return Other
}

// handshakeFailure is why a TLS handshake failed after a connection.
func handshakeFailure(err error) Failure {
	if isTimeout(err) {
		return Timeout
	}
	return Handshake
}
