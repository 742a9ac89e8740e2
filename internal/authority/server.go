package authority

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// ServerConfig returns the TLS configuration for the server to which the Envoys
// connect. It accepts only client certificates for Tunnels with this cluster ID. It
// does not check that the Tunnel exists: see [PeerIdentity].
func (a *Authority) ServerConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			s, err := a.existing(hello.Context())
			if err != nil {
				return nil, err
			}
			certificate, err := a.serverCertificate(s)
			if err != nil {
				return nil, err
			}
			return a.configFor(s, certificate), nil
		},
	}
}

// configFor returns the configuration for one connection.
func (a *Authority) configFor(s *authorities, certificate *signer) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2"},
		Time:       a.o.Now,
		Certificates: []tls.Certificate{{
			Certificate: [][]byte{certificate.certificate.Raw}, PrivateKey: certificate.key, Leaf: certificate.certificate,
		}},
		ClientAuth: tls.RequireAndVerifyClientCert, // requires the extended key usage for clients
		ClientCAs:  s.pool(),
		// A resumed session would keep a certificate that is no longer accepted.
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			i, err := PeerIdentity(state)
			if err == nil && i.ClusterID != a.o.ClusterID {
				err = fmt.Errorf("the client certificate is for the cluster ID %q", i.ClusterID)
			}
			return err
		},
	}
}

// serverCertificate returns the controller's certificate. It issues one if there is none
// from the active authority, or if it is due for renewal.
func (a *Authority) serverCertificate(s *authorities) (*signer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.o.Now()
	if a.server != nil && !isDue(a.server.certificate, now) && isFrom(a.server.certificate, s.active.certificate) {
		return a.server, nil
	}
	issued, err := s.active.issueServer(now)
	if err != nil {
		return nil, err
	}
	a.server = issued
	return issued, nil
}

// isFrom reports whether the authority has signed the certificate.
func isFrom(c, authority *x509.Certificate) bool { return c.CheckSignatureFrom(authority) == nil }
