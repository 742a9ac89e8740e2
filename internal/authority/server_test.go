package authority

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// certificateIn returns the client certificate in an Envoy's files.
func certificateIn(t *testing.T, files map[string][]byte) *tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(files[envoy.CertificateFile], files[envoy.KeyFile])
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// connect connects to a server with the Authority's configuration. It returns what the
// server says about the client.
func connect(t *testing.T, a *Authority, certificate *tls.Certificate, bundle []byte, options ...func(*tls.Config)) (Identity, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // closing a listener loses no data
	type result struct {
		identity Identity
		err      error
	}
	results := make(chan result, 1)
	go func() {
		raw, err := listener.Accept()
		if err != nil {
			results <- result{err: err}
			return
		}
		defer raw.Close() //nolint:errcheck // closing a connection loses no data
		connection := tls.Server(raw, a.ServerConfig())
		if err := connection.HandshakeContext(t.Context()); err != nil {
			results <- result{err: err}
			return
		}
		identity, err := PeerIdentity(connection.ConnectionState())
		results <- result{identity: identity, err: err}
	}()
	raw, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close() //nolint:errcheck // closing a connection loses no data
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: envoy.ServerName, Time: a.o.Now, NextProtos: []string{"h2"}}
	config.RootCAs.AppendCertsFromPEM(bundle)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if certificate == nil {
			return &tls.Certificate{}, nil
		}
		return certificate, nil // even if the server does not ask for its authority
	}
	for _, option := range options {
		option(config)
	}
	if err := tls.Client(raw, config).HandshakeContext(t.Context()); err != nil {
		_ = raw.Close()
		<-results
		return Identity{}, err
	}
	r := <-results
	return r.identity, r.err
}

func TestServerAcceptsOnlyCertificatesOfTunnels(t *testing.T) {
	c := newCluster(t)
	a := c.authority()
	own, other := c.tunnel("shared"), c.tunnel("other")
	c.write(a, own)
	c.write(a, other)
	otherAuthority, err := newSigner(c.now)
	if err != nil {
		t.Fatal(err)
	}
	active, identity := c.authorities().active, a.identityOf(own)
	// issue issues a certificate that differs from an Envoy's.
	issue := func(edit func(*x509.Certificate)) *tls.Certificate {
		template := &x509.Certificate{URIs: []*url.URL{identity.uri()}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		edit(template)
		issued, err := active.issue(template, c.now)
		if err != nil {
			t.Fatal(err)
		}
		return pairOf(issued)
	}
	uri := func(text string) *url.URL {
		parsed, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	fromOther, err := otherAuthority.issueClient(identity, c.now)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := active.issueClient(identity, c.now.Add(-lifetime-time.Second))
	if err != nil {
		t.Fatal(err)
	}
	otherCluster, otherIdentity := identity, a.identityOf(other)
	otherCluster.ClusterID = "prod-us"
	for name, test := range map[string]struct {
		certificate *tls.Certificate
		want        Identity
		// wantError is a part of the error; "" if the server accepts the certificate.
		wantError string
	}{
		"of the Tunnel":             {certificate: certificateIn(t, c.files(own)), want: identity},
		"of another Gateway":        {certificate: certificateIn(t, c.files(other)), want: otherIdentity},
		"none":                      {wantError: "didn't provide a certificate"},
		"of another authority":      {certificate: pairOf(fromOther), wantError: "unknown authority"},
		"expired":                   {certificate: pairOf(expired), wantError: "expired"},
		"of the authority itself":   {certificate: pairOf(active), wantError: "exactly one URI"},
		"of another cluster ID":     {certificate: issue(func(c *x509.Certificate) { c.URIs = []*url.URL{otherCluster.uri()} }), wantError: `cluster ID "prod-us"`},
		"for servers":               {certificate: issue(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), wantError: "incompatible key usage"},
		"with two URIs":             {certificate: issue(func(c *x509.Certificate) { c.URIs = append(c.URIs, otherIdentity.uri()) }), wantError: "exactly one URI"},
		"without a URI":             {certificate: issue(func(c *x509.Certificate) { c.URIs = nil }), wantError: "exactly one URI"},
		"with a DNS name":           {certificate: issue(func(c *x509.Certificate) { c.DNSNames = []string{envoy.ServerName} }), wantError: "exactly one URI"},
		"with another scheme":       {certificate: issue(func(c *x509.Certificate) { c.URIs[0].Scheme = "https" }), wantError: "does not identify a Tunnel"},
		"with a query":              {certificate: issue(func(c *x509.Certificate) { c.URIs[0].RawQuery = "x" }), wantError: "does not identify a Tunnel"},
		"with an escaped slash":     {certificate: issue(func(c *x509.Certificate) { c.URIs[0] = uri(identity.uri().String() + "%2Fx") }), wantError: "does not identify a Tunnel"},
		"with a longer path":        {certificate: issue(func(c *x509.Certificate) { c.URIs[0].Path += "/x" }), wantError: "does not identify a Tunnel"},
		"without a UID":             {certificate: issue(func(c *x509.Certificate) { c.URIs[0].Path = "/gateway/infra/shared/tunnel/" }), wantError: "does not identify a Tunnel"},
		"for something else's path": {certificate: issue(func(c *x509.Certificate) { c.URIs[0].Path = "/service/infra/shared/tunnel/x" }), wantError: "does not identify a Tunnel"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := connect(t, a, test.certificate, c.files(own)[envoy.CAFile])
			wantIdentity(t, got, err, test.want, test.wantError)
		})
	}
}

// wantIdentity checks a client's identity, or the error.
func wantIdentity(t *testing.T, got Identity, err error, want Identity, wantError string) {
	t.Helper()
	switch {
	case wantError == "" && err != nil:
		t.Errorf("the server refuses the certificate: %v", err)
	case wantError != "" && (err == nil || !strings.Contains(err.Error(), wantError)):
		t.Errorf("the error is %v, want %q", err, wantError)
	case got != want:
		t.Errorf("the identity is %s, want %s", got, want)
	}
}

func pairOf(s *signer) *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{s.certificate.Raw}, PrivateKey: s.key}
}

func TestServerRequiresTLS13AndHasOneName(t *testing.T) {
	c := newCluster(t)
	a, tunnel := c.authority(), c.tunnel("shared")
	c.write(a, tunnel)
	files := c.files(tunnel)
	for name, option := range map[string]func(*tls.Config){
		"TLS 1.2":      func(config *tls.Config) { config.MaxVersion = tls.VersionTLS12 },
		"another name": func(config *tls.Config) { config.ServerName = "localhost" },
		"other roots":  func(config *tls.Config) { config.RootCAs = x509.NewCertPool() },
	} {
		if _, err := connect(t, a, certificateIn(t, files), files[envoy.CAFile], option); err == nil {
			t.Errorf("a client with %s can connect", name)
		}
	}
	c.wantAccepted(a, tunnel)
}

// The controller's certificate is renewed in memory, and is not issued for each connection.
func TestServerCertificateIsRenewed(t *testing.T) {
	c := newCluster(t)
	a, tunnel := c.authority(), c.tunnel("shared")
	c.write(a, tunnel)
	presented := func() string {
		config, err := a.ServerConfig().GetConfigForClient(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return config.Certificates[0].Leaf.SerialNumber.String()
	}
	first := presented()
	c.now = c.now.Add(59 * day)
	if presented() != first {
		t.Error("the certificate changes after 59 days")
	}
	c.now = c.now.Add(2 * day)
	if presented() == first {
		t.Error("the certificate does not change after 61 days")
	}
}

func TestPeerIdentityRequiresAVerifiedCertificate(t *testing.T) {
	c := newCluster(t)
	a, tunnel := c.authority(), c.tunnel("shared")
	c.write(a, tunnel)
	leaf := certificateIn(t, c.files(tunnel)).Leaf
	if i, err := PeerIdentity(tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}); err == nil {
		t.Errorf("a certificate that was not verified has the identity %s", i)
	}
}

// A server without the Secret fails the handshake. It recovers with the API server.
func TestServerWithoutAuthorityRefusesConnections(t *testing.T) {
	c := newCluster(t)
	a, tunnel := c.authority(), c.tunnel("shared")
	c.write(a, tunnel)
	restarted := c.authority()
	c.failReads = true
	files := c.files(tunnel)
	if _, err := connect(t, restarted, certificateIn(t, files), files[envoy.CAFile]); err == nil {
		t.Error("a server without an authority accepts a connection")
	}
	c.failReads = false
	c.wantAccepted(restarted, tunnel)
	c.failReads = true // the authority is now in memory
	c.wantAccepted(restarted, tunnel)
	if err := restarted.Write(context.Background(), tunnel); err == nil {
		t.Error("a Secret that cannot be read is written")
	}
}
