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

// The samples of the guide about cert-manager.
const (
	helmValues      = "cert-manager/helm/values.yaml"
	challengeSample = "cert-manager/acme/http01-listenerset.yaml"
)

var (
	certManagerSamples = []string{
		"cert-manager/00-issuers.yaml", "cert-manager/10-platform.yaml", "cert-manager/20-team-a.yaml", "cert-manager/30-team-b.yaml",
	}
	issuersOfLetsEncrypt = []string{"cert-manager/acme/dns01.yaml", "cert-manager/acme/http01.yaml"}
)

// install applies the files of the samples, and removes their objects after the
// spec: the controller of the next one would find them.
func install(files ...string) {
	GinkgoHelper()
	DeferCleanup(func() {
		var all []client.Object
		for _, file := range files {
			all = append(all, read(file)...)
		}
		slices.Reverse(all)
		remove(all...)
	})
	apply(files...)
}

func gateway(name string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name}}
}

func set(namespace, name string) *gatewayv1.ListenerSet {
	return &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

var _ = Describe("the samples for cert-manager", func() {
	It("are served with the certificates that the guide says", func() {
		w := sampleWorld()
		install(certManagerSamples...)
		Eventually(gatewaySays).WithArguments(gateway("shared")).Should(HaveExactElements(setServes, serves))
		Eventually(setSays).WithArguments(set("team-a", "team-a")).Should(HaveExactElements(setServes, serves))
		Eventually(setSays).WithArguments(set("team-b", "team-b")).Should(HaveExactElements(setServes, serves))
		Expect(signedBy("platform", "shared-tls")).To(Equal("ClusterIssuer internal-ca"))
		Expect(signedBy("team-a", "team-a-tls")).To(Equal("ClusterIssuer internal-ca"))
		Expect(fresh(certificate("team-b", "shop-tls")).Object["spec"]).To(HaveKeyWithValue("issuerRef", HaveKeyWithValue("name", "team-b-self-signed")))
		Eventually(w.get).WithArguments("platform/shared", "team-a.example.com", "/").Should(Equal("web.team-a"))
		Eventually(w.get).WithArguments("platform/shared", "shop.team-b.example.com", "/").Should(Equal("shop.team-b"))
	})

	It("name issuers of Let's Encrypt that the API server takes", func(ctx SpecContext) {
		for _, file := range issuersOfLetsEncrypt {
			for _, object := range read(file) {
				Expect(kube.Create(ctx, object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
			}
		}
	})

	// No ACME server is asked here: what is tried is the route that the solver
	// makes, as the ListenerSet's owner would see it.
	It("let an HTTP-01 challenge through before there is a certificate", func() {
		w := sampleWorld()
		install(certManagerSamples[:3]...)
		install(challengeSample)
		blog := set("team-a", "blog")
		createRoute(blog, "blog", "blog.example.com")
		challenge, solver := route(blog, "cm-acme-http-solver", "blog.example.com")
		challenge.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
			Type: ptr.To(gatewayv1.PathMatchExact), Value: ptr.To("/.well-known/acme-challenge/token"),
		}}}
		challenge.Spec.Rules[0].BackendRefs[0].Weight = ptr.To[int32](1)
		challenge.Spec.Rules[0].BackendRefs[0].Port = ptr.To[int32](8089)
		solver.Spec.Ports[0].Port = 8089
		create(solver, challenge)

		Eventually(setSays).WithArguments(blog).Should(HaveExactElements(setServes, serves, waits))
		Eventually(w.get).WithArguments("platform/shared", "blog.example.com", "/.well-known/acme-challenge/token").
			Should(Equal("cm-acme-http-solver.team-a"))

		By("taking the HTTP listener away")
		change(blog, func(s *gatewayv1.ListenerSet) { s.Spec.Listeners = s.Spec.Listeners[1:] })
		Eventually(setSays).WithArguments(blog).Should(HaveExactElements(setInvalid, waits))
		Eventually(w.get).WithArguments("platform/shared", "blog.example.com", "/.well-known/acme-challenge/token").Should(Equal("404"))
	})
})
