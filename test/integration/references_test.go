package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
)

var _ = Describe("the controller", func() {
	It("updates a listener after a change of its Secret", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		set := env.listenerSet("team", "team.example.com")
		set.Spec.Listeners[0].Port, set.Spec.Listeners[0].Protocol = 443, gatewayv1.HTTPSProtocolType
		set.Spec.Listeners[0].TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "cert"}}}
		env.create(env.service("web"), env.gateway("shared", "home.example.com"), set, env.route("web", "web", listenerSetParent("team")))
		resolved := func() string {
			for _, l := range latest(set).Status.Listeners {
				return formatCondition(l.Conditions, gatewayv1.ListenerEntryConditionResolvedRefs)
			}
			return "none"
		}
		Eventually(resolved).Should(Equal("False InvalidCertificateRef"))
		Expect(env.hostnames("shared")).To(BeEmpty())

		env.waitUntilIdle(ctx) // so that each change is the only reason for what follows
		secret := env.tlsSecret("cert")
		env.create(secret)
		Eventually(resolved).Should(Equal("True ResolvedRefs"))
		Eventually(env.get).WithArguments("shared", "team.example.com", "/").Should(Equal("web"))

		env.waitUntilIdle(ctx)
		update(secret, func(s *corev1.Secret) { s.Data[corev1.TLSCertKey] = []byte("not a certificate") })
		Eventually(resolved).Should(Equal("False InvalidCertificateRef"))
		env.waitUntilIdle(ctx)
		update(secret, func(s *corev1.Secret) { s.Data = env.tlsSecret("cert").Data })
		Eventually(resolved).Should(Equal("True ResolvedRefs"))
		env.waitUntilIdle(ctx)
		env.delete(secret)
		Eventually(resolved).Should(Equal("False InvalidCertificateRef"))
	})

	It("serves a backend in another namespace only while a ReferenceGrant exists", func() {
		env, other := newEnvironment(), newEnvironment()
		env.start()
		route := env.route("web", "web", gatewayParent("shared"))
		route.Spec.Rules[0].BackendRefs[0].Namespace = ptr.To(gatewayv1.Namespace(other.namespace))
		other.create(other.service("web"))
		env.create(env.gateway("shared", "home.example.com"), route)
		Eventually(env.get).WithArguments("shared", "home.example.com", "/").Should(Equal("500"))

		grant := &gatewayv1beta1.ReferenceGrant{ObjectMeta: other.objectMeta("web"), Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "HTTPRoute", Namespace: gatewayv1.Namespace(env.namespace)}},
			To:   []gatewayv1.ReferenceGrantTo{{Kind: "Service"}},
		}}
		other.create(grant)
		Eventually(env.get).WithArguments("shared", "home.example.com", "/").Should(Equal("web"))
		other.delete(grant)
		Eventually(env.get).WithArguments("shared", "home.example.com", "/").Should(Equal("500"))
	})

	It("serves GRPCRoutes over HTTP/2 with TLS", func() {
		env := newEnvironment()
		env.start()
		service := env.service("greeter")
		service.Spec.Ports[0].AppProtocol = ptr.To("https")
		route := &gatewayv1.GRPCRoute{ObjectMeta: env.objectMeta("greeter"), Spec: gatewayv1.GRPCRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{gatewayParent("shared")}},
			Rules: []gatewayv1.GRPCRouteRule{{
				Matches: []gatewayv1.GRPCRouteMatch{{Method: &gatewayv1.GRPCMethodMatch{Service: ptr.To("hello.Greeter"), Method: ptr.To("Hi")}}},
				BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: gatewayv1.BackendRef{
					BackendObjectReference: gatewayv1.BackendObjectReference{Name: "greeter", Port: ptr.To(int32(80))},
				}}},
			}},
		}}
		env.create(service, env.gateway("shared", "grpc.example.com"), route)
		Eventually(env.hostnames).WithArguments("shared").Should(ConsistOf("grpc.example.com"))
		rule := env.configuration("shared").Ingress[0]
		Expect(rule.Path).To(Equal(`^/hello\.Greeter/Hi$`))
		Expect(rule.Service).To(HavePrefix("https://greeter."))
		Expect(*rule.OriginRequest.HTTP2Origin).To(BeTrue())
		Eventually(func() int { return len(latest(route).Status.Parents) }).Should(Equal(1))
		Expect(formatCondition(route.Status.Parents[0].Conditions, gatewayv1.RouteConditionAccepted)).To(Equal("True Accepted"))
	})

	It("reports the start and the end of a hostname conflict once", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		first, second := env.listenerSet("a-first", "shop.example.com"), env.listenerSet("b-second", "shop.example.com")
		env.create(env.gateway("shared", "home.example.com"), first, second)
		Eventually(env.events).WithArguments(ctx, "b-second").Should(ContainElement("Warning HostnameConflict"))
		env.stop()
		env.start()
		env.waitUntilIdle(ctx)
		Expect(env.events(ctx, "b-second")).To(HaveExactElements("Warning HostnameConflict"))
		Expect(env.events(ctx, "a-first")).To(BeEmpty())
		env.delete(first)
		Eventually(env.events).WithArguments(ctx, "b-second").Should(ContainElement("Normal NoConflicts"))
	})
})

// events returns the type and reason of each event on the object.
func (env *environment) events(ctx context.Context, name string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(kube.List(ctx, &list, client.InNamespace(env.namespace))).To(Succeed())
	var found []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name {
			for range max(e.Count, 1) {
				found = append(found, e.Type+" "+e.Reason)
			}
		}
	}
	return found
}

// eventMessages returns the messages from the events on the object with this reason.
func (env *environment) eventMessages(ctx context.Context, name, reason string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(kube.List(ctx, &list, client.InNamespace(env.namespace))).To(Succeed())
	var found []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name && e.Reason == reason {
			found = append(found, e.Message)
		}
	}
	return found
}

// tlsSecret returns a Secret with a new self-signed certificate.
func (env *environment) tlsSecret(name string) *corev1.Secret {
	GinkgoHelper()
	chain, key, err := cert.GenerateSelfSignedCertKey("example.com", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	return &corev1.Secret{ObjectMeta: env.objectMeta(name), Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key,
	}}
}
