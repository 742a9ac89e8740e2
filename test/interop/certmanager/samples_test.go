package certmanager

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The samples in the guide about cert-manager.
const (
	helmValues      = "cert-manager/helm/values.yaml"
	challengeSample = "cert-manager/acme/http01-listenerset.yaml"
)

var (
	certManagerSamples = []string{
		"cert-manager/00-issuers.yaml", "cert-manager/10-platform.yaml", "cert-manager/20-team-a.yaml", "cert-manager/30-team-b.yaml",
	}
	letsEncryptIssuers = []string{"cert-manager/acme/dns01.yaml", "cert-manager/acme/http01.yaml"}
)

// installSamples applies sample files. It deletes their objects after the spec, so that
// the controller in the next spec does not find them.
func installSamples(files ...string) {
	GinkgoHelper()
	DeferCleanup(func() {
		var all []client.Object
		for _, file := range files {
			all = append(all, readSample(file)...)
		}
		slices.Reverse(all)
		deleteAll(all...)
	})
	applySamples(files...)
}

func sampleGateway(name string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name}}
}

func sampleListenerSet(namespace, name string) *gatewayv1.ListenerSet {
	return &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

var _ = Describe("the samples for cert-manager", func() {
	It("are served with the certificates that the guide describes", func() {
		e := newSampleEnvironment()
		installSamples(certManagerSamples...)
		Eventually(gatewayConditions).WithArguments(sampleGateway("shared")).Should(HaveExactElements(setProgrammed, listenerProgrammed))
		Eventually(listenerSetConditions).WithArguments(sampleListenerSet("team-a", "team-a")).Should(HaveExactElements(setProgrammed, listenerProgrammed))
		Eventually(listenerSetConditions).WithArguments(sampleListenerSet("team-b", "team-b")).Should(HaveExactElements(setProgrammed, listenerProgrammed))
		Expect(signedBy("platform", "shared-tls")).To(Equal("ClusterIssuer internal-ca"))
		Expect(signedBy("team-a", "team-a-tls")).To(Equal("ClusterIssuer internal-ca"))
		Expect(get(certificate("team-b", "shop-tls")).Object["spec"]).To(HaveKeyWithValue("issuerRef", HaveKeyWithValue("name", "team-b-self-signed")))
		Eventually(e.answer).WithArguments("platform/shared", "team-a.example.com", "/").Should(Equal("web.team-a"))
		Eventually(e.answer).WithArguments("platform/shared", "shop.team-b.example.com", "/").Should(Equal("shop.team-b"))
	})

	It("contain valid issuers for Let's Encrypt", func(ctx SpecContext) {
		for _, file := range letsEncryptIssuers {
			for _, object := range readSample(file) {
				Expect(kube.Create(ctx, object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
			}
		}
	})

	// The spec does not contact an ACME server. It creates the route that
	// cert-manager's solver would create for the ListenerSet.
	It("serve an HTTP-01 challenge before the certificate exists", func() {
		e := newSampleEnvironment()
		installSamples(certManagerSamples[:3]...)
		installSamples(challengeSample)
		blog := sampleListenerSet("team-a", "blog")
		createRoute(blog, "blog", "blog.example.com")
		challenge, solver := route(blog, "cm-acme-http-solver", "blog.example.com")
		challenge.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
			Type: ptr.To(gatewayv1.PathMatchExact), Value: ptr.To("/.well-known/acme-challenge/token"),
		}}}
		challenge.Spec.Rules[0].BackendRefs[0].Weight = ptr.To[int32](1)
		challenge.Spec.Rules[0].BackendRefs[0].Port = ptr.To[int32](8089)
		solver.Spec.Ports[0].Port = 8089
		create(solver, challenge)

		Eventually(listenerSetConditions).WithArguments(blog).Should(HaveExactElements(setProgrammed, listenerProgrammed, certificateMissing))
		Eventually(e.answer).WithArguments("platform/shared", "blog.example.com", "/.well-known/acme-challenge/token").
			Should(Equal("cm-acme-http-solver.team-a"))

		By("removing the HTTP listener")
		update(blog, func(s *gatewayv1.ListenerSet) { s.Spec.Listeners = s.Spec.Listeners[1:] })
		Eventually(listenerSetConditions).WithArguments(blog).Should(HaveExactElements(setListenersInvalid, certificateMissing))
		Eventually(e.answer).WithArguments("platform/shared", "blog.example.com", "/.well-known/acme-challenge/token").Should(Equal("404"))
	})
})
