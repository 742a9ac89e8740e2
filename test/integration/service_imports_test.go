package integration

import (
	"fmt"
	"io"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// serviceImport returns a ServiceImport in a version.
func (env *environment) serviceImport(version, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion(multicluster.GroupName + "/" + version)
	object.SetKind(multicluster.KindServiceImport)
	object.SetNamespace(env.namespace)
	object.SetName(name)
	return object
}

// importedFrom creates the EndpointSlice of a ServiceImport from a source cluster, whose
// backend responds with the cluster's name.
func (env *environment) importedFrom(source, name string) *discoveryv1.EndpointSlice {
	GinkgoHelper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: env.objectMeta(name + "-" + source), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{env.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, source) }))},
		Ports:     []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](80)}},
	}
	slice.Labels = map[string]string{multicluster.LabelServiceName: name, "multicluster.kubernetes.io/source-cluster": source}
	env.create(slice)
	return slice
}

// crdClient returns a client for CRDs and for ServiceImports in every version.
func crdClient() client.Client {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

var _ = Describe("ServiceImports with the data plane Envoy", envoyRollouts, func() {
	It("are served from several clusters while their CRD is installed, without a restart", func(ctx SpecContext) {
		crds := crdClient()
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		env.serveWithEnvoy("*.example.com")
		route := env.route("imported", "shop", gatewayParent("shared"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"shop.example.com"}
		ref := &route.Spec.Rules[0].BackendRefs[0].BackendObjectReference
		ref.Group, ref.Kind = ptr.To[gatewayv1.Group](multicluster.GroupName), ptr.To[gatewayv1.Kind](multicluster.KindServiceImport)
		env.create(route)
		env.importedFrom("east", "shop")
		west := env.importedFrom("west", "shop")
		resolved := func() string {
			return formatCondition(routeConditions(route, "shared"), gatewayv1.RouteConditionResolvedRefs)
		}
		shop := func() string { return env.visit("shared", "shop.example.com", "/") }
		Eventually(resolved).Should(Equal("False InvalidKind"))
		Expect(shop()).To(Equal("500"))

		By("installing an old version")
		crd := cluster.ServiceImportCRD("v1alpha1")
		Expect(crds.Create(ctx, crd)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(crds.Delete(ctx, crd))).To(Succeed()) })
		installed := time.Now()
		Eventually(resolved).Should(Equal("False BackendNotFound"))
		AddReportEntry(fmt.Sprintf("measured: a new CRD is in effect after %s", time.Since(installed)))
		object := env.serviceImport("v1alpha1", "shop", map[string]any{
			"type": "Headless", "ports": []any{map[string]any{"name": "http", "protocol": "TCP", "port": int64(80)}},
		})
		Eventually(func() error { return crds.Create(ctx, object.DeepCopy()) }).Should(Succeed())
		Eventually(resolved).Should(Equal("True ResolvedRefs"))
		for _, source := range []string{"east", "west"} {
			Eventually(shop).Should(Equal(source))
		}

		By("writing addresses that no backend may have")
		addresses := west.Endpoints[0].Addresses
		write := func(ip ...string) {
			GinkgoHelper()
			update(west, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = ip })
		}
		write(env.connectorPods()[0].Status.PodIP)
		Eventually(resolved).Should(Equal("False BackendNotFound"))
		Eventually(shop).Should(Equal("500"))
		write(addresses...)
		Eventually(resolved).Should(Equal("True ResolvedRefs"))
		Eventually(shop).Should(Equal("west"))

		By("upgrading the CRD")
		Expect(crds.Get(ctx, client.ObjectKeyFromObject(crd), crd)).To(Succeed())
		crd.Spec = cluster.ServiceImportCRD("v1beta1", "v1alpha1").Spec
		crd.Spec.Versions[1].Served = false
		Expect(crds.Update(ctx, crd)).To(Succeed())
		newer := env.serviceImport("v1beta1", "shop", nil)
		Eventually(func() error { return crds.Get(ctx, client.ObjectKeyFromObject(newer), newer) }).Should(Succeed())
		Expect(unstructured.SetNestedStringSlice(newer.Object, addresses, "spec", "ips")).To(Succeed())
		Expect(unstructured.SetNestedField(newer.Object, "ClusterSetIP", "spec", "type")).To(Succeed())
		Eventually(func() error { return crds.Update(ctx, newer) }).Should(Succeed())
		Eventually(func() []string { // the address is the only endpoint
			var answers []string
			for range 6 {
				answers = append(answers, shop())
			}
			return answers
		}).Should(HaveEach("west"))
		Expect(unstructured.SetNestedStringSlice(newer.Object, []string{"127.0.0.1"}, "spec", "ips")).To(Succeed())
		Expect(crds.Update(ctx, newer)).To(Succeed())
		Eventually(resolved).Should(Equal("False BackendNotFound"))

		By("removing the CRD")
		Expect(crds.Delete(ctx, crd)).To(Succeed())
		Eventually(resolved).Should(Equal("False InvalidKind"))
	})
})

var _ = Describe("a Service with the data plane Envoy and a ClusterIP", envoyRollouts, func() {
	It("does not resolve while an EndpointSlice leads to a connector", func() {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		_, route := env.serveWithEnvoy("*.example.com")
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "one"}}
		resolved := func() string {
			return formatCondition(routeConditions(route, "shared"), gatewayv1.RouteConditionResolvedRefs)
		}
		addresses := latest(slice).Endpoints[0].Addresses
		service := latest(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "one"}})
		update(service, func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
		})
		Expect(resolved()).To(Equal("True ResolvedRefs"))
		update(slice, func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Addresses = []string{env.connectorPods()[0].Status.PodIP}
		})
		Eventually(resolved).Should(Equal("False BackendNotFound"))
		Eventually(env.visit).WithArguments("shared", "a.example.com", "/").Should(Equal("500"))
		update(slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = addresses })
		Eventually(resolved).Should(Equal("True ResolvedRefs"))
		Eventually(env.visit).WithArguments("shared", "a.example.com", "/").Should(Equal("one"))
	})
})
