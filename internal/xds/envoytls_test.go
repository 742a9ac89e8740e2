package xds_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

const backendName = "backend.example.com"

func (c *ca) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.certificate.Raw}))
}

// tlsBackend starts a backend whose certificate has the DNS name and the URI. It responds
// with the name in the client's certificate, which clients needs to have signed, and closes
// each connection after one response.
func tlsBackend(t *testing.T, authority, clients *ca) routing.Backend {
	t.Helper()
	identity, err := url.Parse("spiffe://team/backend")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.TLS.ServerName, r.TLS.PeerCertificates[0].Subject.CommonName) // #nosec G705 -- no browser reads it
	}))
	server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients.pool(),
		Certificates: []tls.Certificate{authority.issue(t, time.Hour, x509.Certificate{DNSNames: []string{backendName}, URIs: []*url.URL{identity}})},
	}
	server.Config.SetKeepAlivesEnabled(false)
	server.StartTLS()
	t.Cleanup(server.Close)
	port := int32(server.Listener.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port
	return routing.Backend{
		Service: types.NamespacedName{Namespace: "team", Name: "secure"}, Protocol: routing.ProtocolHTTPS,
		Port: port, ServicePort: port, ClusterIP: "127.0.0.1", Addressing: routing.AddressClusterIP,
	}
}

// withPolicy returns the backend with a policy. Without names, the certificate needs the
// hostname.
func withPolicy(b routing.Backend, authorities, hostname string, names ...routing.CertificateName) routing.Backend {
	if len(names) == 0 {
		names = []routing.CertificateName{{Value: hostname}}
	}
	b.TLS = routing.NewBackendTLS(routing.BackendTLS{Hostname: hostname, Names: names, Authorities: authorities}, authorities)
	return b
}

// secured returns a publication with a client certificate.
func secured(sequence int64, b routing.Backend, secret *tlsv3.Secret) xds.Publication {
	p := rendered(sequence, b)
	table := tableFor(b)
	table.ClientCertificate = &routing.ClientCertificate{Fingerprint: "any"}
	p.Resources, p.Secrets = envoy.Render(table), []*tlsv3.Secret{secret}
	return p
}

func (c *ca) clientSecret(t *testing.T, name string) *tlsv3.Secret {
	t.Helper()
	certificate := c.issue(t, time.Hour, x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return envoy.ClientCertificate(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

// Rotating the client certificate and the certificate authorities under load loses no
// request.
func TestEnvoyRotatesCertificatesForBackends(t *testing.T) {
	s := newSidecar(t)
	authority, other, clients := newCA(t), newCA(t), newCA(t)
	b := tlsBackend(t, authority, clients)
	s.publish(t, secured(1, withPolicy(b, authority.pem(), backendName), clients.clientSecret(t, "one")))
	s.awaitAnswer(t, "200 "+backendName+" one")
	s.awaitAcknowledged(t, 1)

	check := s.load(t)
	const rotations = 20
	for i := range rotations {
		name, authorities := fmt.Sprintf("client-%d", i), authority.pem()
		if i%2 == 1 {
			authorities = other.pem() + authority.pem()
		}
		sequence := int64(i + 2)
		s.publish(t, secured(sequence, withPolicy(b, authorities, backendName), clients.clientSecret(t, name)))
		s.awaitAnswer(t, "200 "+backendName+" "+name)
		s.awaitAcknowledged(t, sequence)
	}
	check()
	if got := s.State(shared); got.Rejected != "" || !got.Complete {
		t.Errorf("the state is %+v", got)
	}
}

// Envoy verifies the authority and the names that a policy requires, and asks for its
// hostname.
func TestEnvoyVerifiesBackendsByPolicy(t *testing.T) {
	s := newSidecar(t)
	authority, other := newCA(t), newCA(t)
	secret := authority.clientSecret(t, "gateway")
	b := tlsBackend(t, authority, authority)
	for i, tt := range []struct {
		name, authorities, hostname string
		names                       []routing.CertificateName
		want                        string
	}{
		{"the right authority and hostname", authority.pem(), backendName, nil, "200 " + backendName + " gateway"},
		{"another authority", other.pem(), backendName, nil, "503 "},
		{"another hostname", authority.pem(), "other.example.com", nil, "503 "},
		{"a DNS name", authority.pem(), "sni.example.com", []routing.CertificateName{{Value: backendName}}, "200 sni.example.com gateway"},
		{"a URI", authority.pem(), "uri.example.com", []routing.CertificateName{{Value: "x.example.com"}, {URI: true, Value: "spiffe://team/backend"}}, "200 uri.example.com gateway"},
		{"another URI", authority.pem(), backendName, []routing.CertificateName{{URI: true, Value: "spiffe://team/other"}}, "503 "},
		{"the authorities in the image", "", backendName, nil, "503 "},
	} {
		sequence := int64(i + 1)
		s.publish(t, secured(sequence, withPolicy(b, tt.authorities, tt.hostname, tt.names...), secret))
		s.awaitAcknowledged(t, sequence)
		got := ""
		await(t, tt.name, func() bool { got, _ = s.get(); return strings.HasPrefix(got, tt.want) })
	}
}

// A secret that Envoy rejects is reported, and the last one stays in effect.
func TestEnvoyRejectsASecret(t *testing.T) {
	s := newSidecar(t)
	authority := newCA(t)
	b := withPolicy(tlsBackend(t, authority, authority), authority.pem(), backendName)
	s.publish(t, secured(1, b, authority.clientSecret(t, "one")))
	s.awaitAnswer(t, "200 "+backendName+" one")
	check := s.load(t)
	s.publish(t, secured(2, b, envoy.ClientCertificate([]byte("none"), []byte("none"))))
	await(t, "rejection", func() bool { return s.State(shared).Rejected != "" })
	if got := s.State(shared); got.Complete || strings.Contains(got.Rejected, "PRIVATE") {
		t.Errorf("the state is %+v", got)
	}
	check()
	s.publish(t, secured(3, b, authority.clientSecret(t, "three")))
	s.awaitAnswer(t, "200 "+backendName+" three")
	s.awaitAcknowledged(t, 3)
}
