package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

const day = 24 * time.Hour

// authoritySecret returns the Secret with the certificate authorities.
func (env *environment) authoritySecret() *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: env.objectMeta("tunnel-gateway-xds-ca")}
	secret.Namespace = env.controllerNamespace
	return latest(secret)
}

// certificateSecret returns the Secret with the Envoys' certificate.
func (env *faultEnvironment) certificateSecret() *corev1.Secret {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: env.objectMeta(connector.IdentitySecretName(env.tunnelObject(env.gateway)))}
	secret.Namespace = env.controllerNamespace
	return latest(secret)
}

// expireCertificate replaces the Envoys' certificate with a certificate that is due for
// renewal, as if 80 days had passed, and returns when the controller has renewed it.
func (env *faultEnvironment) expireCertificate() {
	GinkgoHelper()
	authority, secret := env.authoritySecret(), env.certificateSecret()
	issuer, err := tls.X509KeyPair(authority.Data["ca.crt"], authority.Data["ca.key"])
	Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	Expect(err).NotTo(HaveOccurred())
	template := *pair.Leaf
	template.NotBefore, template.NotAfter = template.NotBefore.Add(-80*day), template.NotAfter.Add(-80*day)
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	Expect(ok).To(BeTrue())
	raw, err := x509.CreateCertificate(rand.Reader, &template, issuer.Leaf, key.Public(), issuer.PrivateKey)
	Expect(err).NotTo(HaveOccurred())
	update(secret, func(s *corev1.Secret) { s.Data["tls.crt"] = pemOf("CERTIFICATE", raw) })
	Eventually(func() bool {
		current := env.certificateSecret()
		renewed, err := tls.X509KeyPair(current.Data["tls.crt"], current.Data["tls.key"])
		return err == nil && time.Until(renewed.Leaf.NotAfter) > 80*day
	}).Should(BeTrue())
}

// replaceAuthority makes the certificate authority due for replacement, and follows the
// replacement until its end. A leader reads the authorities when it starts, so the leader changes
// after each step.
func (env *faultEnvironment) replaceAuthority() {
	GinkgoHelper()
	before := env.authoritySecret()

	By("adding a successor, as the controller does a year before the end")
	certificate, key := newAuthority()
	update(before, func(s *corev1.Secret) { s.Data["next.crt"], s.Data["next.key"] = certificate, key })
	env.changeLeader()
	Eventually(func() int { return countCertificates(env.certificateSecret().Data["ca.crt"]) }).Should(Equal(2))
	Expect(env.authoritySecret().Data["ca.crt"]).To(Equal(before.Data["ca.crt"]), "the successor signs nothing yet")

	By("waiting until all bundles have contained it for a day")
	update(env.authoritySecret(), func(s *corev1.Secret) {
		s.Data["next-distributed-since"] = []byte(time.Now().Add(-25 * time.Hour).UTC().Format(time.RFC3339))
	})
	env.changeLeader()
	Eventually(func() []byte { return env.authoritySecret().Data["ca.crt"] }).Should(Equal(certificate))

	By("renewing the certificate of the Envoys")
	env.expireCertificate()
	pair, err := tls.X509KeyPair(certificate, key)
	Expect(err).NotTo(HaveOccurred())
	Expect(env.identityOf(env.gateway).certificates[0].Leaf.CheckSignatureFrom(pair.Leaf)).To(Succeed())

	By("removing the replaced authority, which no certificate needs")
	update(env.authoritySecret(), func(s *corev1.Secret) {
		s.Data["previous-until"] = []byte(time.Now().Add(-day).UTC().Format(time.RFC3339))
	})
	env.changeLeader()
	Eventually(func() int { return countCertificates(env.certificateSecret().Data["ca.crt"]) }).Should(Equal(1))
	env.changeLeader() // the Envoys connect with the new certificates only
}

// newAuthority returns a certificate authority's certificate and key.
func newAuthority() (certificate, key []byte) {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "successor"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(3 * 365 * day),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	return pemOf("CERTIFICATE", raw), pemOf("PRIVATE KEY", encoded)
}

func pemOf(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

// countCertificates counts the certificates in the PEM text.
func countCertificates(text []byte) int {
	count := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		count++
	}
	return count
}
