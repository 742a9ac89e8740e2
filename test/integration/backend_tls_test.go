package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const backendHostname = "backend.example.com"

// backendAuthority is a certificate authority for backends and their clients.
type backendAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newBackendAuthority() *backendAuthority {
	GinkgoHelper()
	a := &backendAuthority{key: newTLSKey()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		Subject: pkix.Name{CommonName: "authority"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	Expect(err).NotTo(HaveOccurred())
	a.certificate, err = x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	return a
}

func newTLSKey() *ecdsa.PrivateKey {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	return key
}

// issue returns a certificate and its key as PEM.
func (a *backendAuthority) issue(name string) (chain, key []byte) {
	GinkgoHelper()
	private := newTLSKey()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, Subject: pkix.Name{CommonName: name},
	}, a.certificate, private.Public(), a.key)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	return certificatePEM(der), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (a *backendAuthority) pem() string { return string(certificatePEM(a.certificate.Raw)) }

// serveTLS starts a server with TLS on a new address, and returns its endpoint. It responds
// with the name in the client's certificate, and closes each connection after one response.
func (a *backendAuthority) serveTLS() discoveryv1.Endpoint {
	GinkgoHelper()
	listener, endpoint := listenBackend()
	chain, key := a.issue(backendHostname)
	pair, err := tls.X509KeyPair(chain, key)
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "no client"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = fmt.Fprint(w, name) // #nosec G705 -- no browser reads it
	})}
	server.SetKeepAlivesEnabled(false)
	go func() {
		_ = server.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}))
	}()
	DeferCleanup(server.Close)
	return endpoint
}

// policyCondition returns a condition in the policy's only status entry as "Status Reason".
func policyCondition(p *gatewayv1.BackendTLSPolicy, conditionType string) func() string {
	return func() string {
		if err := kube.Get(context.Background(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error()
		}
		if len(p.Status.Ancestors) != 1 {
			return fmt.Sprintf("%d entries", len(p.Status.Ancestors))
		}
		c := apimeta.FindStatusCondition(p.Status.Ancestors[0].Conditions, conditionType)
		if c == nil {
			return "no condition"
		}
		return string(c.Status) + " " + c.Reason
	}
}

func (env *environment) backendTLSPolicy(service string) *gatewayv1.BackendTLSPolicy {
	p := &gatewayv1.BackendTLSPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: service}}
	p.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: gatewayv1.ObjectName(service)}}}
	p.Spec.Validation.Hostname = backendHostname
	p.Spec.Validation.CACertificateRefs = []gatewayv1.LocalObjectReference{{Kind: "ConfigMap", Name: "authorities"}}
	return p
}

// load visits the hostname until the returned function is called, which returns the number
// of requests and the first response that is not allowed.
func (env *environment) load(host string, allowed func(string) bool) (stop func() (int64, string)) {
	var count atomic.Int64
	var failed atomic.Value
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
				if got := env.visit("shared", host, "/"); !allowed(got) {
					failed.CompareAndSwap(nil, got)
				}
				count.Add(1)
			}
		}
	}()
	return func() (int64, string) {
		close(done)
		<-stopped
		first, _ := failed.Load().(string)
		return count.Load(), first
	}
}

var _ = Describe("with a BackendTLSPolicy, the controller", withEnvoy, func() {
	It("verifies backends, and rotates the authorities and the client certificate without a failed request", func(ctx SpecContext) {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, _ := env.serveWithEnvoy("*.example.com")
		old, next := newBackendAuthority(), newBackendAuthority()
		policy := env.backendTLSPolicy("secure")
		env.create(policy)
		env.backendAt("secure", old.serveTLS())
		route := env.route("secure", "secure", gatewayParent("shared"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"secure.example.com"}
		env.create(route)
		Eventually(policyCondition(policy, "Accepted")).Should(Equal("False NoValidCACertificate"))
		Expect(policyCondition(policy, "ResolvedRefs")()).To(Equal("False InvalidCACertificateRef"))
		Eventually(env.visit).WithArguments("shared", "secure.example.com", "/").Should(Equal("500"))

		authorities := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "authorities"}, Data: map[string]string{"ca.crt": old.pem()}}
		env.create(authorities)
		Eventually(policyCondition(policy, "Accepted")).Should(Equal("True Accepted"))
		Eventually(env.visit).WithArguments("shared", "secure.example.com", "/").Should(Equal("no client"))

		stop := env.load("secure.example.com", func(got string) bool { return len(got) > 3 })
		update(authorities, func(c *corev1.ConfigMap) { c.Data["ca.crt"] = next.pem() + old.pem() })
		chain, key := old.issue("first")
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "client"}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
		}
		env.create(secret)
		update(g, func(g *gatewayv1.Gateway) {
			g.Spec.TLS = &gatewayv1.GatewayTLSConfig{Backend: &gatewayv1.GatewayBackendTLS{ClientCertificateRef: &gatewayv1.SecretObjectReference{Name: "client"}}}
		})
		Eventually(env.visit).WithArguments("shared", "secure.example.com", "/").Should(Equal("first"))
		Eventually(gatewayCondition(g, "ResolvedRefs")).Should(Equal("True ResolvedRefs"))
		for i := range 5 {
			name := fmt.Sprintf("client-%d", i)
			chain, key := old.issue(name)
			update(secret, func(s *corev1.Secret) { s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = chain, key })
			Eventually(env.visit).WithArguments("shared", "secure.example.com", "/").Should(Equal(name))
		}
		count, failed := stop()
		Expect(failed).To(BeEmpty())
		AddReportEntry(fmt.Sprintf("measured: %d requests during the rotations, none failed", count))

		for i := range 50 { // some status writes conflict with these changes
			update(policy, func(p *gatewayv1.BackendTLSPolicy) {
				p.Spec.Options = map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{"example.com/change": gatewayv1.AnnotationValue(strconv.Itoa(i))}
			})
		}
		Eventually(func() int64 {
			Expect(policyCondition(policy, "Accepted")()).To(Equal("True Accepted"))
			return policy.Generation - policy.Status.Ancestors[0].Conditions[0].ObservedGeneration
		}).Should(BeZero())

		update(authorities, func(c *corev1.ConfigMap) { c.Data["ca.crt"] = next.pem() })
		Eventually(env.visit).WithArguments("shared", "secure.example.com", "/").Should(Equal("503"))
		Expect(policyCondition(policy, "Accepted")()).To(Equal("True Accepted"))

		Expect(kube.Delete(ctx, secret)).To(Succeed())
		Eventually(gatewayCondition(g, "ResolvedRefs")).Should(Equal("False InvalidClientCertificateRef"))
		update(g, func(g *gatewayv1.Gateway) { g.Spec.TLS = nil })
		Eventually(gatewayCondition(g, "ResolvedRefs")).ShouldNot(ContainSubstring("Ref"))
		Expect(kube.Delete(ctx, route)).To(Succeed())
		Eventually(policyCondition(policy, "Accepted")).Should(Equal("0 entries"))
	})
})
