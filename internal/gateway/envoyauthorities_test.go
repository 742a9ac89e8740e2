package gateway_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// selfSigned returns a certificate with the key, in DER.
func selfSigned(t *testing.T, key crypto.Signer, change func(*x509.Certificate)) []byte {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: goldenTime, NotAfter: goldenTime.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true,
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func block(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// withClientCertificate replaces the names of the files with a client certificate by files
// that exist.
func withClientCertificate(t *testing.T, configuration []byte) []byte {
	t.Helper()
	if !bytes.Contains(configuration, []byte(envoy.ClientKeyFile)) {
		return configuration
	}
	key := newKey(t)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		envoy.ClientCertificateFile: block(selfSigned(t, key, func(*x509.Certificate) {})),
		envoy.ClientKeyFile:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	} {
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		configuration = bytes.ReplaceAll(configuration, []byte(name), []byte(file))
	}
	return configuration
}

// The real Envoy accepts every bundle that passes the inspection, with any text of a tenant
// into the ConfigMap.
func TestEnvoyAcceptsEveryInspectedBundle(t *testing.T) {
	p256, valid := newKey(t), func(*x509.Certificate) {}
	p224, _ := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	p521, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	large, _ := rsa.GenerateKey(rand.Reader, 2048)
	der := selfSigned(t, p256, valid)
	broken := bytes.Clone(der)
	broken[len(broken)-1] ^= 0xff // another signature
	critical := selfSigned(t, p256, func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{0xff}}}
	})
	bundles := map[string]bundle{
		"one certificate":               {string(block(der)), true},
		"the same certificate twice":    {string(block(der)) + string(block(der)), true},
		"P-224":                         {string(block(selfSigned(t, p224, valid))), true},
		"P-521":                         {string(block(selfSigned(t, p521, valid))), true},
		"Ed25519":                       {string(block(selfSigned(t, ed, valid))), true},
		"RSA":                           {string(block(selfSigned(t, large, valid))), true},
		"a wrong signature":             {string(block(broken)), true},
		"no authority":                  {string(block(selfSigned(t, p256, func(c *x509.Certificate) { c.IsCA = false }))), true},
		"an expired certificate":        {string(block(selfSigned(t, p256, func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Unix(0, 0), time.Unix(1, 0) }))), true},
		"a year after 9998":             {string(block(selfSigned(t, p256, func(c *x509.Certificate) { c.NotAfter = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }))), true},
		"a long serial number":          {string(block(selfSigned(t, p256, func(c *x509.Certificate) { c.SerialNumber = new(big.Int).Lsh(big.NewInt(1), 158) }))), true},
		"an unknown critical extension": {string(block(critical)), true},
		"Unicode, quotes and NUL":       {string(block(selfSigned(t, p256, func(c *x509.Certificate) { c.Subject.CommonName = "\u2028'\"%{\x00" }))), true},
		"text and percent signs around": {"%REQ(x)%\n" + string(block(der)) + "\x00{{ end }}", true},
		"a broken block first":          {string(block([]byte("none"))) + string(block(der)), true},
		"an encrypted block first":      {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nbm9uZQ==\n-----END RSA PRIVATE KEY-----\n" + string(block(der)), true},
		"a revocation list first":       {"-----BEGIN X509 CRL-----\nbm9uZQ==\n-----END X509 CRL-----\n" + string(block(der)), true},
		"only a broken block":           {string(block([]byte("none"))), false},
		"bytes after the certificate":   {string(block(append(bytes.Clone(der), 0))), false},
		"nothing":                       {"", false},
		"more than the limit":           {strings.Repeat(string(block(der)), 600), false},
		"as many as the limit permits":  {strings.Repeat(string(block(der)), (256<<10)/len(block(der))), true},
	}
	wantInspected(t, bundles)
}

// bundle is the content of a ConfigMap. usable reports whether a policy may use it.
type bundle struct {
	text   string
	usable bool
}

// wantInspected checks the inspection of the bundles, and that Envoy accepts what passes it.
func wantInspected(t *testing.T, bundles map[string]bundle) {
	t.Helper()
	tables := map[string]*envoy.Resources{}
	for name, tt := range bundles {
		found := gateway.InspectCABundle(&corev1.ConfigMap{Data: map[string]string{"ca.crt": tt.text}})
		if usable := found.Problem == ""; usable != tt.usable {
			t.Errorf("%s: the problem is %q, usable: %t", name, found.Problem, tt.usable)
		}
		if found.Problem == "" {
			tables[name] = resourcesWith(fmt.Sprintf("b%d", len(tables)), routing.BackendTLS{
				Hostname: "a.example.com", Authorities: found.Certificates, Names: []routing.CertificateName{{Value: "*.%(.example.com"}, {URI: true, Value: "spiffe://%\u2028\x00"}},
			})
		}
	}
	wantEnvoyAccepts(t, tables)
}

// resourcesWith returns the resources for a Service with a policy.
func resourcesWith(service string, tls routing.BackendTLS) *envoy.Resources {
	backend := routing.Backend{Service: types.NamespacedName{Namespace: "shop", Name: service}, Protocol: routing.ProtocolHTTPS, Port: 443, ServicePort: 443, ClusterIP: "127.0.0.1"}
	backend.TLS = routing.NewBackendTLS(tls, tls.Authorities)
	return envoy.Render(&routing.Table{Groups: []routing.Group{{Hostname: service + ".example.com", Entries: []*routing.Entry{{
		Hostname: service + ".example.com", Match: &routing.Match{}, Source: routing.Source{Route: &routing.Route{Kind: routing.KindHTTPRoute}},
		Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: backend, Weight: 1}}}},
	}}}}})
}
