package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

const (
	day = 24 * time.Hour

	// authorityLifetime is how long a certificate authority is valid.
	authorityLifetime = 3 * 365 * day
	// successorLead is how long before an authority ends its successor is created.
	successorLead = 365 * day
	// distribution is how long all bundles must have contained a successor before it
	// signs.
	distribution = day
	// lifetime is how long a certificate is valid. It is renewed when a third of the
	// time remains.
	lifetime = 90 * day
	// clockSkew is how long before its creation a certificate begins, because clocks
	// differ.
	clockSkew = time.Hour

	certificateType = "CERTIFICATE"
	privateKeyType  = "PRIVATE KEY"
)

// signer is a certificate authority with its private key.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newSigner creates a certificate authority. Its subject is random, so that two
// authorities in one bundle differ in it.
func newSigner(now time.Time) (*signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create the key of a certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: envoy.ServerName + " CA", SerialNumber: rand.Text()},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityLifetime),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	return sign(template, key, &signer{certificate: template, key: key})
}

// sign issues a certificate for the key.
func sign(template *x509.Certificate, key *ecdsa.PrivateKey, issuer *signer) (*signer, error) {
	text, err := x509.CreateCertificate(rand.Reader, template, issuer.certificate, key.Public(), issuer.key)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("parse an issued certificate: %w", err)
	}
	return &signer{certificate: certificate, key: key}, nil
}

// issueServer issues a certificate for the controller.
func (s *signer) issueServer(now time.Time) (*signer, error) {
	return s.issue(&x509.Certificate{
		Subject:  pkix.Name{CommonName: envoy.ServerName},
		DNSNames: []string{envoy.ServerName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, now)
}

// issueClient issues a certificate for a Tunnel's Envoys.
func (s *signer) issueClient(i Identity, now time.Time) (*signer, error) {
	return s.issue(&x509.Certificate{URIs: []*url.URL{i.uri()}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, now)
}

// issue issues a certificate with a new key. The certificate ends with its authority.
func (s *signer) issue(template *x509.Certificate, now time.Time) (*signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create the key of a certificate: %w", err)
	}
	template.NotBefore, template.NotAfter = now.Add(-clockSkew), now.Add(lifetime)
	if end := s.certificate.NotAfter; template.NotAfter.After(end) {
		template.NotAfter = end
	}
	template.KeyUsage, template.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true
	return sign(template, key, s)
}

// isValid reports whether the certificate is valid at the time.
func isValid(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && !now.After(c.NotAfter)
}

// isDue reports whether a certificate must be renewed. A certificate that ends with its
// authority is shorter than the others, so that the remaining time is relative.
func isDue(c *x509.Certificate, now time.Time) bool {
	renewal := c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3)
	return !isValid(c, now) || !now.Before(renewal)
}

// encode returns the certificate and the private key as PEM.
func (s *signer) encode() (certificate, key []byte, err error) {
	text, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a private key: %w", err)
	}
	return encodeCertificates(s.certificate), pem.EncodeToMemory(&pem.Block{Type: privateKeyType, Bytes: text}), nil
}

func encodeCertificates(certificates ...*x509.Certificate) []byte {
	var text []byte
	for _, c := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: c.Raw})...)
	}
	return text
}

// parseSigner returns a certificate authority and its key. Its errors contain no part
// of the key.
func parseSigner(certificate, key []byte) (*signer, error) {
	certificates, err := parseAuthorities(certificate)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(key)
	if len(certificates) != 1 || block == nil || block.Type != privateKeyType || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("must contain exactly one certificate and one private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the private key cannot be parsed")
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() || !private.PublicKey.Equal(certificates[0].PublicKey.(crypto.PublicKey)) {
		return nil, errors.New("the private key does not match the certificate")
	}
	return &signer{certificate: certificates[0], key: private}, nil
}

// parseAuthorities returns the authorities' certificates in the PEM text.
func parseAuthorities(text []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for len(bytes.TrimSpace(text)) > 0 {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil || block.Type != certificateType {
			return nil, errors.New("must contain only PEM-encoded certificates")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse a certificate: %w", err)
		}
		if !c.IsCA || !c.BasicConstraintsValid || c.CheckSignatureFrom(c) != nil {
			return nil, errors.New("the certificate does not belong to a certificate authority")
		}
		certificates = append(certificates, c)
	}
	return slices.Clip(certificates), nil
}
