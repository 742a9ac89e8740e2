package integration

import (
	"context"
	"fmt"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
)

var _ = Describe("the permission for hostnames", users, func() {
	var env *environment
	get := func(host string) string { return env.get("shared", host, "/") }

	BeforeEach(func() {
		env = newEnvironment()
		env.create(env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{
			Connector: &v1alpha1.Connector{Enabled: ptr.To(false)},
			Hostnames: &v1alpha1.Hostnames{From: ptr.To(v1alpha1.HostnamesFromNamespaceAnnotation)},
		}))
		env.useClassSettings("defaults")
		env.create(env.gateway("shared", "own.example.com"))
		env.start()
	})

	It("takes precedence over age, and withdraws a hostname quickly", func() {
		const hostname = "shop.team-b.example.com"
		a := env.team("a", ptr.To("*.team-a.example.com"), hostname)
		// The name decides between ListenerSets that are created in the same second.
		b := env.team("b", ptr.To("*.team-b.example.com"), hostname)
		Eventually(get).WithArguments(hostname).Should(Equal("b"))
		Eventually(listenerCondition(a, gatewayv1.ListenerEntryConditionAccepted)).Should(HaveField("Reason", "HostnameNotPermitted"))
		Expect(listenerCondition(a, gatewayv1.ListenerEntryConditionAccepted)().Message).NotTo(ContainSubstring(b.Namespace))

		By("removing a permission")
		permit(b.Namespace, nil)
		Eventually(get).WithArguments(hostname).Should(Equal("404"))
		Eventually(listenerCondition(b, gatewayv1.ListenerEntryConditionAccepted)).Should(HaveField("Reason", "HostnameNotPermitted"))

		By("permitting the hostname to the other team")
		permit(a.Namespace, ptr.To(hostname))
		Eventually(get).WithArguments(hostname).Should(Equal("a"))

		By("restoring the permission, and ending the claim")
		permit(b.Namespace, ptr.To("*.team-b.example.com"))
		Eventually(listenerCondition(b, gatewayv1.ListenerEntryConditionAccepted)).Should(HaveField("Reason", "HostnameConflict"))
		update(a, func(s *gatewayv1.ListenerSet) {
			s.Spec.Listeners[0].Hostname = ptr.To(gatewayv1.Hostname("other.example.com"))
		})
		Eventually(get).WithArguments(hostname).Should(Equal("b"))
	})

	It("reports entries of the annotation that are not valid", func(ctx SpecContext) {
		set := env.team("a", ptr.To("team-a.example.com, 192.0.2.1"), "team-a.example.com")
		Eventually(func() []string {
			var list corev1.EventList
			Expect(kube.List(ctx, &list, client.InNamespace(set.Namespace))).To(Succeed())
			var found []string
			for _, e := range list.Items {
				if e.Reason == "InvalidHostnameEntry" {
					found = append(found, e.InvolvedObject.Kind+" "+e.Message)
				}
			}
			return found
		}).Should(ConsistOf(
			And(HavePrefix("ListenerSet "), ContainSubstring(`"192.0.2.1"`)), And(HavePrefix("HTTPRoute "), ContainSubstring(`"192.0.2.1"`))))
	})

	// The same cases also test the chart's admission policy.
	It("decides every case of the table", func() {
		content, err := os.ReadFile("../../internal/hostnames/testdata/permissions.yaml")
		Expect(err).NotTo(HaveOccurred())
		var vectors []struct {
			Annotation       *string
			Hostname, Result string
		}
		Expect(yaml.Unmarshal(content, &vectors)).To(Succeed())
		Expect(len(vectors)).To(BeNumerically(">", 50))
		sets := make([]*gatewayv1.ListenerSet, len(vectors))
		for i, v := range vectors {
			sets[i] = env.team(fmt.Sprint(i), v.Annotation, v.Hostname)
		}
		for i, v := range vectors {
			// An earlier case's hostname has a claim, so a permitted hostname can
			// conflict.
			want := HaveField("Reason", v.Result)
			if v.Result == "Accepted" {
				want = HaveField("Reason", BeElementOf("Accepted", "HostnameConflict"))
			}
			Eventually(listenerCondition(sets[i], gatewayv1.ListenerEntryConditionAccepted)).Should(want, "annotation %v, hostname %q", ptr.Deref(v.Annotation, "absent"), v.Hostname)
		}
	})
})

// team creates a namespace with the annotation, unless it is nil. In it, team creates a
// ListenerSet of the Gateway "shared" for the hostname, and a route and a Service with
// the name. It returns the ListenerSet.
func (env *environment) team(name string, annotation *string, hostname string) *gatewayv1.ListenerSet {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.namespace + "-" + name}}
	set, service, route := env.listenerSet("web", hostname), env.service(name), env.route("web", name, listenerSetParent("web"))
	set.Spec.ParentRef.Namespace = ptr.To(gatewayv1.Namespace(env.namespace))
	if hostname == "" {
		set.Spec.Listeners[0].Hostname = nil
	}
	if annotation != nil {
		namespace.Annotations = map[string]string{hostnames.Annotation: *annotation}
	}
	for _, object := range []client.Object{set, service, route} {
		object.SetNamespace(namespace.Name)
	}
	for _, object := range []client.Object{namespace, set, service, route} {
		Expect(kube.Create(context.Background(), object)).To(Succeed())
	}
	// A namespace can remain after the spec, and plan warns of invalid annotations in
	// every namespace.
	DeferCleanup(func() {
		permit(namespace.Name, nil)
		env.delete(set, service, route, namespace)
	})
	return set
}

// permit sets the namespace's annotation, or removes it if it is nil.
func permit(namespace string, annotation *string) {
	GinkgoHelper()
	update(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) {
		delete(n.Annotations, hostnames.Annotation)
		if annotation != nil {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, hostnames.Annotation, *annotation)
		}
	})
}
