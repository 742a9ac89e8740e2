package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/url"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// identity is what an Envoy's Secret contains to identify the Envoy.
type identity struct {
	certificates []tls.Certificate
	authorities  *x509.CertPool
}

// identityOf returns the identity that the Gateway's Envoys share.
func (env *environment) identityOf(g *gatewayv1.Gateway) identity {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: env.objectMeta(connector.IdentitySecretName(env.tunnelObject(g)))}
	secret.Namespace = env.controllerNamespace
	// The controller writes it after the Tunnel.
	Eventually(func() error { return kube.Get(context.Background(), client.ObjectKeyFromObject(secret), secret) }).Should(Succeed())
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	Expect(err).NotTo(HaveOccurred())
	pool := x509.NewCertPool()
	Expect(pool.AppendCertsFromPEM(secret.Data["ca.crt"])).To(BeTrue())
	return identity{[]tls.Certificate{pair}, pool}
}

// forged returns a certificate with the same names as the identity's certificate, from an
// authority with the same names as the controller's.
func (i identity) forged() tls.Certificate {
	GinkgoHelper()
	original, err := x509.ParseCertificate(i.certificates[0].Certificate[0])
	Expect(err).NotTo(HaveOccurred())
	sign := func(template, issuer *x509.Certificate, key *ecdsa.PrivateKey, signer *ecdsa.PrivateKey) []byte {
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
		raw, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
		Expect(err).NotTo(HaveOccurred())
		return raw
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	authority := &x509.Certificate{
		RawSubject: original.RawIssuer, SubjectKeyId: original.AuthorityKeyId, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	chain := sign(authority, authority, authorityKey, authorityKey)
	leaf := sign(&x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, URIs: original.URIs,
	}, authority, key, authorityKey)
	return tls.Certificate{Certificate: [][]byte{leaf, chain}, PrivateKey: key}
}

// signedByClient returns a certificate with the URI, signed with the identity's key
// instead of an authority.
func (i identity) signedByClient(uri *url.URL) tls.Certificate {
	GinkgoHelper()
	issuer, err := x509.ParseCertificate(i.certificates[0].Certificate[0])
	Expect(err).NotTo(HaveOccurred())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, URIs: []*url.URL{uri},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), i.certificates[0].PrivateKey)
	Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{raw, issuer.Raw}, PrivateKey: key}
}

// expired returns an expired certificate from the controller's authority that is
// otherwise like the identity's.
func (env *environment) expired(i identity) tls.Certificate {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: env.objectMeta("tunnel-gateway-xds-ca")}
	secret.Namespace = env.controllerNamespace
	latest(secret)
	authority, err := tls.X509KeyPair(secret.Data["ca.crt"], secret.Data["ca.key"])
	Expect(err).NotTo(HaveOccurred())
	issuer, err := x509.ParseCertificate(authority.Certificate[0])
	Expect(err).NotTo(HaveOccurred())
	template, err := x509.ParseCertificate(i.certificates[0].Certificate[0])
	Expect(err).NotTo(HaveOccurred())
	template.NotAfter = time.Now().Add(-time.Second)
	key, ok := i.certificates[0].PrivateKey.(*ecdsa.PrivateKey)
	Expect(ok).To(BeTrue())
	raw, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), authority.PrivateKey)
	Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// discover asks the controller for all clusters, their endpoints and the routes, as the node
// with the ID, and returns all that the controller sends within the time.
func discover(i identity, nodeID string, duration time.Duration) string {
	GinkgoHelper()
	config := &tls.Config{Certificates: i.certificates, RootCAs: i.authorities, ServerName: envoy.ServerName, MinVersion: tls.VersionTLS13}
	connection, err := grpc.NewClient(xdsAddress, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	Expect(err).NotTo(HaveOccurred())
	defer connection.Close() //nolint:errcheck // the test reads everything before
	ctx, cancel := context.WithTimeout(context.Background(), duration)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(ctx)
	if err != nil {
		return ""
	}
	for _, request := range []*discoveryv3.DeltaDiscoveryRequest{
		{TypeUrl: clusterType, Node: &corev3.Node{Id: nodeID, Cluster: nodeID}},
		{TypeUrl: "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", ResourceNamesSubscribe: []string{"open", "protected"}},
	} {
		if err := stream.Send(request); err != nil {
			break // Recv returns the reason
		}
	}
	var received strings.Builder
	for {
		response, err := stream.Recv()
		if err != nil {
			return received.String()
		}
		received.WriteString(response.String())
		requests := []*discoveryv3.DeltaDiscoveryRequest{{TypeUrl: response.TypeUrl, ResponseNonce: response.Nonce}}
		if response.TypeUrl == clusterType {
			requests = append(requests, requestEndpoints(response))
		}
		for _, request := range requests {
			if err := stream.Send(request); err != nil {
				return received.String()
			}
		}
	}
}

const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// requestEndpoints returns a request for the endpoints of the clusters, without which the routes
// wait.
func requestEndpoints(clusters *discoveryv3.DeltaDiscoveryResponse) *discoveryv3.DeltaDiscoveryRequest {
	request := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"}
	for _, cluster := range clusters.Resources {
		request.ResourceNamesSubscribe = append(request.ResourceNamesSubscribe, cluster.Name)
	}
	return request
}

var _ = Describe("the xDS server of the controller", withEnvoy, func() {
	const wait = time.Second

	It("sends an Envoy only its own Gateway's routes", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		one, _ := env.serveWithEnvoy("a.example.com")
		other := env.gateway("other", "secret.example.org")
		env.create(other, env.route("other", "two", gatewayParent("other")))
		Eventually(programmed(other)).Should(Equal("True Programmed"))
		Eventually(dataPlaneReady(other)).Should(Equal("True Ready"))

		for _, nodeID := range []string{"connector", env.namespace + "/other", env.tunnelObject(other).Name, string(env.tunnelObject(other).UID)} {
			received := discover(env.identityOf(one), nodeID, wait)
			Expect(received).To(ContainSubstring("a.example.com"))
			Expect(received).NotTo(Or(ContainSubstring("secret.example.org"), ContainSubstring(".two.")))
		}
		Expect(discover(env.identityOf(other), "connector", wait)).To(ContainSubstring("secret.example.org"))
	})

	It("accepts Envoys after the Secrets of the certificates were deleted", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, _ := env.serveWithEnvoy("a.example.com")
		before := env.identityOf(g)
		for _, name := range []string{connector.IdentitySecretName(env.tunnelObject(g)), "tunnel-gateway-xds-ca"} {
			deleted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: env.controllerNamespace, Name: name}}
			uid := latest(deleted).UID
			env.delete(deleted)
			Eventually(func() bool { return exists(deleted) && deleted.UID != uid }).Should(BeTrue(), name)
		}
		Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))
		Expect(discover(before, "connector", wait)).To(ContainSubstring("a.example.com"), "the authority is the same")

		pods := env.connectorPods()
		env.delete(&pods[0], &pods[1])
		Eventually(func() bool {
			running := env.connectorPods()
			return len(running) == 2 && isPodReady(&running[0]) && isPodReady(&running[1]) && running[0].UID != pods[0].UID && running[1].UID != pods[0].UID
		}).Should(BeTrue())
		Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))
	})

	It("sends nothing without a valid certificate of an existing Tunnel", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, _ := env.serveWithEnvoy("a.example.com")
		valid := env.identityOf(g)
		Expect(discover(valid, "connector", wait)).To(ContainSubstring("a.example.com"))
		Expect(discover(identity{nil, valid.authorities}, "connector", wait)).To(BeEmpty())
		original, err := x509.ParseCertificate(valid.certificates[0].Certificate[0])
		Expect(err).NotTo(HaveOccurred())
		for _, certificate := range []tls.Certificate{valid.forged(), valid.signedByClient(original.URIs[0]), env.expired(valid)} {
			Expect(discover(identity{[]tls.Certificate{certificate}, valid.authorities}, "connector", wait)).To(BeEmpty())
		}

		// A stream that is open ends with the Tunnel.
		open := make(chan string, 1)
		go func() {
			defer GinkgoRecover()
			open <- discover(valid, "connector", time.Minute)
		}()
		Consistently(open, wait).ShouldNot(Receive())

		// The Tunnel is deleted by mistake: the controller refuses its certificate, and
		// accepts the new Tunnel's certificate.
		old := env.tunnelObject(g)
		env.delete(old)
		Eventually(func() bool {
			current := env.tunnelObject(g)
			return current != nil && current.UID != old.UID
		}).Should(BeTrue())
		Eventually(open).Should(Receive(ContainSubstring("a.example.com")))
		Eventually(discover).WithArguments(valid, "connector", wait).Should(BeEmpty())
		Eventually(env.visit).WithArguments("shared", "a.example.com", "/").Should(Equal("one"))
		Eventually(func() string { return discover(env.identityOf(g), "connector", wait) }).Should(ContainSubstring("a.example.com"))
		Expect(discover(valid, "connector", wait)).To(BeEmpty())
	})
})
