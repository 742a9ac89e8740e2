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
	It("updates a listener within a second after a change of its Secret", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		set := w.listenerSet("team", "team.example.com")
		set.Spec.Listeners[0].Port, set.Spec.Listeners[0].Protocol = 443, gatewayv1.HTTPSProtocolType
		set.Spec.Listeners[0].TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "cert"}}}
		w.create(w.service("web"), w.gateway("shared", "home.example.com"), set, w.route("web", "web", toSet("team")))
		resolved := func() string {
			for _, l := range fresh(set).Status.Listeners {
				return say(l.Conditions, gatewayv1.ListenerEntryConditionResolvedRefs)
			}
			return "none"
		}
		Eventually(resolved).Should(Equal("False InvalidCertificateRef"))
		Expect(w.hostnames("shared")).To(BeEmpty())

		w.settle(ctx) // writes in quick succession are delayed by up to a second
		secret := w.tlsSecret("cert")
		w.create(secret)
		Eventually(resolved, soonEnough).Should(Equal("True ResolvedRefs"))
		Eventually(w.get, soonEnough).WithArguments("shared", "team.example.com", "/").Should(Equal("web"))

		w.settle(ctx)
		change(secret, func(s *corev1.Secret) { s.Data[corev1.TLSCertKey] = []byte("not a certificate") })
		Eventually(resolved, soonEnough).Should(Equal("False InvalidCertificateRef"))
		w.settle(ctx)
		change(secret, func(s *corev1.Secret) { s.Data = w.tlsSecret("cert").Data })
		Eventually(resolved, soonEnough).Should(Equal("True ResolvedRefs"))
		w.settle(ctx)
		w.delete(secret)
		Eventually(resolved, soonEnough).Should(Equal("False InvalidCertificateRef"))
	})

	It("serves a backend in another namespace only while a ReferenceGrant exists", func() {
		w, other := newWorld(), newWorld()
		w.start()
		route := w.route("web", "web", toGateway("shared"))
		route.Spec.Rules[0].BackendRefs[0].Namespace = ptr.To(gatewayv1.Namespace(other.namespace))
		other.create(other.service("web"))
		w.create(w.gateway("shared", "home.example.com"), route)
		Eventually(w.get).WithArguments("shared", "home.example.com", "/").Should(Equal("500"))

		grant := &gatewayv1beta1.ReferenceGrant{ObjectMeta: other.meta("web"), Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "HTTPRoute", Namespace: gatewayv1.Namespace(w.namespace)}},
			To:   []gatewayv1.ReferenceGrantTo{{Kind: "Service"}},
		}}
		other.create(grant)
		Eventually(w.get, soonEnough).WithArguments("shared", "home.example.com", "/").Should(Equal("web"))
		other.delete(grant)
		Eventually(w.get, soonEnough).WithArguments("shared", "home.example.com", "/").Should(Equal("500"))
	})

	It("serves GRPCRoutes over HTTP/2 with TLS", func() {
		w := newWorld()
		w.start()
		service := w.service("greeter")
		service.Spec.Ports[0].AppProtocol = ptr.To("https")
		route := &gatewayv1.GRPCRoute{ObjectMeta: w.meta("greeter"), Spec: gatewayv1.GRPCRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{toGateway("shared")}},
			Rules: []gatewayv1.GRPCRouteRule{{
				Matches: []gatewayv1.GRPCRouteMatch{{Method: &gatewayv1.GRPCMethodMatch{Service: ptr.To("hello.Greeter"), Method: ptr.To("Hi")}}},
				BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: gatewayv1.BackendRef{
					BackendObjectReference: gatewayv1.BackendObjectReference{Name: "greeter", Port: ptr.To(int32(80))},
				}}},
			}},
		}}
		w.create(service, w.gateway("shared", "grpc.example.com"), route)
		Eventually(w.hostnames).WithArguments("shared").Should(ConsistOf("grpc.example.com"))
		rule := w.document("shared").Ingress[0]
		Expect(rule.Path).To(Equal(`^/hello\.Greeter/Hi$`))
		Expect(rule.Service).To(HavePrefix("https://greeter."))
		Expect(*rule.OriginRequest.HTTP2Origin).To(BeTrue())
		Eventually(func() int { return len(fresh(route).Status.Parents) }).Should(Equal(1))
		Expect(say(route.Status.Parents[0].Conditions, gatewayv1.RouteConditionAccepted)).To(Equal("True Accepted"))
	})

	It("reports the start and the end of a conflict in one event each, on the object without precedence", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		first, second := w.listenerSet("a-first", "shop.example.com"), w.listenerSet("b-second", "shop.example.com")
		w.create(w.gateway("shared", "home.example.com"), first, second)
		Eventually(w.events).WithArguments(ctx, "b-second").Should(ContainElement("Warning HostnameConflict"))
		w.stop()
		w.start()
		w.settle(ctx)
		Expect(w.events(ctx, "b-second")).To(HaveExactElements("Warning HostnameConflict"))
		Expect(w.events(ctx, "a-first")).To(BeEmpty())
		w.delete(first)
		Eventually(w.events).WithArguments(ctx, "b-second").Should(ContainElement("Normal NoConflicts"))
	})
})

// events returns the type and reason of each event on the object, sorted.
func (w *world) events(ctx context.Context, name string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(kube.List(ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
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

// eventMessages returns the messages of the events on the object with this reason.
func (w *world) notes(ctx context.Context, name, reason string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(kube.List(ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
	var found []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name && e.Reason == reason {
			found = append(found, e.Message)
		}
	}
	return found
}

// tlsSecret returns a Secret with a new self-signed certificate.
func (w *world) tlsSecret(name string) *corev1.Secret {
	GinkgoHelper()
	chain, key, err := cert.GenerateSelfSignedCertKey("example.com", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	return &corev1.Secret{ObjectMeta: w.meta(name), Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key,
	}}
}
