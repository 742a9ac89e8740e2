package envoy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// authorities issue certificates for backends.
type authorities struct {
	// file has the certificate from the authority that Envoy trusts.
	file               string
	trusted, untrusted authority
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthorities(dir string) (*authorities, error) {
	a := &authorities{file: filepath.Join(dir, "ca.pem")}
	for _, issuer := range []*authority{&a.trusted, &a.untrusted} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		template := certificateTemplate("authority")
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			return nil, err
		}
		if issuer.certificate, err = x509.ParseCertificate(der); err != nil {
			return nil, err
		}
		issuer.key = key
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.trusted.certificate.Raw})
	return a, os.WriteFile(a.file, content, 0o600)
}

func certificateTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

// serverConfig returns a backend's TLS settings. The backend's name decides what is wrong
// with its certificate.
func (a *authorities) serverConfig(name string, http2 bool) *tls.Config {
	issuer, dnsName := a.trusted, name+".default.svc.cluster.local"
	switch name {
	case "untrusted":
		issuer = a.untrusted
	case "othername":
		dnsName = "backend.example.com"
	}
	c := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		template := certificateTemplate(name)
		template.DNSNames = []string{dnsName}
		der, err := x509.CreateCertificate(rand.Reader, template, issuer.certificate, key.Public(), issuer.key)
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
	}}
	if http2 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	return c
}
