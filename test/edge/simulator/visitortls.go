package simulator

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// edgeAuthority signs the edge's certificates.
type edgeAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newEdgeAuthority() edgeAuthority {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"Simulated Trust Services"}, CommonName: "E1"},
		NotBefore: time.Now().Add(-365 * 24 * time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return edgeAuthority{must(x509.ParseCertificate(der)), key}
}

// must returns the value. Keys and certificates of fixed templates cannot fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic("simulator: " + err.Error())
	}
	return value
}

// VisitorCAs returns the authority that signs the certificates of [Server.ListenVisitors].
func (s *Server) VisitorCAs() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.authority().certificate)
	return pool
}

// VisitorCAPEM returns the authority in [Server.VisitorCAs] as a file contains it.
func (s *Server) VisitorCAPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.authority().certificate.Raw})
}

// ListenVisitors serves [Server.Visitors] with TLS on l, over HTTP/1.1 and HTTP/2, until the
// server is closed. It does not block. It presents the certificates in the zones' active
// packs, and ends the handshake for a name that none of them covers.
func (s *Server) ListenVisitors(l net.Listener) {
	server := &http.Server{
		Handler: s.Visitors(), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{GetCertificate: s.edgeCertificate, MinVersion: tls.VersionTLS12},
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, server)
	s.mu.Unlock()
	s.serving.Go(func() { _ = server.ServeTLS(l, "", "") }) // ends when the server is closed
}

// edgeCertificate returns the edge's certificate for the name that the client asks for.
func (s *Server) edgeCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if covers("*"+teamDomain, hello.ServerName) {
		return s.authority().sign(zones.CertificatePack{Hosts: []string{"*" + teamDomain}})
	}
	for _, z := range s.options.Zones.Zones() {
		for _, p := range z.CertificatePacks {
			if z.Status == zones.Active && p.Status == "active" && slices.ContainsFunc(p.Hosts, func(h string) bool { return covers(h, hello.ServerName) }) {
				return s.authority().sign(p)
			}
		}
	}
	return nil, fmt.Errorf("no certificate for %q", hello.ServerName)
}

// covers reports whether a certificate's host covers the name. A wildcard covers one level.
func covers(host, name string) bool {
	if suffix, ok := strings.CutPrefix(host, "*."); ok {
		_, parent, _ := strings.Cut(name, ".")
		return parent == suffix
	}
	return host == name
}

// sign returns a certificate for the hosts of a pack.
func (a edgeAuthority) sign(p zones.CertificatePack) (*tls.Certificate, error) {
	expires := p.Expires
	if expires.IsZero() {
		expires = time.Now().Add(90 * 24 * time.Hour)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: p.Hosts[0]}, DNSNames: p.Hosts,
		NotBefore: expires.Add(-91 * 24 * time.Hour), NotAfter: expires,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
