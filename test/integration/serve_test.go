package integration

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

var _ = Describe("the controller", func() {
	It("serves the samples", func(ctx SpecContext) {
		w := newWorld()
		w.controller = config.DefaultControllerName
		set, err := manifest.Read([]string{"../../config/samples"}, manifest.Options{Namespace: "default"})
		Expect(err).NotTo(HaveOccurred())
		for _, object := range set.Objects {
			Expect(kube.Create(ctx, object)).To(Succeed())
		}
		w.start("--cluster-id=samples")
		shared := &gatewayv1.Gateway{}
		Expect(kube.Get(ctx, client.ObjectKey{Namespace: "platform", Name: "shared"}, shared)).To(Succeed())
		Eventually(programmed(shared)).Should(Equal("True Programmed"))
		Expect(gatewaySays(shared, gatewayv1.GatewayConditionAccepted)()).To(Equal("True Accepted"))
		Expect(*shared.Status.AttachedListenerSets).To(BeEquivalentTo(2))

		w.namespace = "samples" // the cluster ID, which is part of the tunnel's name
		id, ok := w.edge.TunnelID(w.tunnelNameIn("platform", "shared"))
		Expect(ok).To(BeTrue())
		Expect(shared.Status.Addresses).To(HaveLen(1))
		Expect(shared.Status.Addresses[0].Value).To(Equal(id + ".cfargotunnel.com"))
		get := func(host, path string) string { return w.getFrom(id, host, path) }
		Expect(get("shared.example.com", "/")).To(Equal("home"))
		Expect(get("team-a.example.com", "/")).To(Equal("web"))
		Expect(get("team-a.example.com", "/api/orders")).To(Equal("api"))
		Expect(get("team-a.example.com", "/apiary")).To(Equal("web"))
		Expect(get("shop.team-b.example.com", "/")).To(Equal("shop"))
		Expect(get("blog.team-b.example.com", "/")).To(Equal("404"))
		Expect(get("unknown.example.com", "/")).To(Equal("404"))

		late := &gatewayv1.ListenerSet{}
		Expect(kube.Get(ctx, client.ObjectKey{Namespace: "team-b", Name: "team-b-late"}, late)).To(Succeed())
		Expect(setSays(late, gatewayv1.ListenerSetConditionAccepted)()).To(Equal("False ListenersNotValid"))
		Expect(say(late.Status.Listeners[0].Conditions, gatewayv1.ListenerEntryConditionConflicted)).To(Equal("True HostnameConflict"))
	})

	It("gives a hostname to the next ListenerSet when its owner is deleted", func() {
		w := newWorld()
		w.start()
		first := w.listenerSet("a-first", "shop.example.com")
		second := w.listenerSet("b-second", "shop.example.com")
		g := w.gateway("shared", "home.example.com")
		w.create(w.service("one"), w.service("two"), g, first, second,
			w.route("one", "one", toSet("a-first")), w.route("two", "two", toSet("b-second")))
		Eventually(setSays(second, gatewayv1.ListenerSetConditionAccepted)).Should(Equal("False ListenersNotValid"))
		Eventually(w.get).WithArguments("shared", "shop.example.com", "/").Should(Equal("one"))

		w.delete(first)
		Eventually(setSays(second, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		Expect(say(fresh(second).Status.Listeners[0].Conditions, gatewayv1.ListenerEntryConditionConflicted)).To(Equal("False NoConflicts"))
		Expect(w.get("shared", "shop.example.com", "/")).To(Equal("two"))
	})

	It("combines a burst of routes in few writes, and writes a single route immediately", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.edge.ResetRequests()

		const burst = 200
		var last *gatewayv1.HTTPRoute
		for i := range burst {
			last = w.route(fmt.Sprintf("r%03d", i), "web", toGateway("shared"))
			last.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%03d.example.com", i))}
			w.create(last)
		}
		Eventually(func() int { return len(w.hostnames("shared")) }).Should(Equal(burst))
		Eventually(routeSays(last, "shared")).Should(Equal("True Accepted"))
		Expect(w.edge.Count(http.MethodPut, configurations)).To(BeNumerically("<=", 8))
		Expect(w.edge.Count(http.MethodGet, configurations)).To(BeZero())

		w.settle(ctx)
		w.edge.ResetRequests()
		one := w.route("one-more", "web", toGateway("shared"))
		one.Spec.Hostnames = []gatewayv1.Hostname{"one-more.example.com"}
		w.create(one)
		Eventually(w.hostnames, soonEnough).WithArguments("shared").Should(ContainElement("one-more.example.com"))
		Eventually(routeSays(one, "shared")).Should(Equal("True Accepted"))
		w.settle(ctx)
		Expect(w.edge.Count(http.MethodPut, configurations)).To(Equal(1))
		Expect(w.edge.Count("", "")).To(Equal(1))
	})

	It("reacts to changes of Services and namespace labels", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "home.example.com")
		g.Spec.AllowedListeners.Namespaces.From = ptr.To(gatewayv1.NamespacesFromSelector)
		g.Spec.AllowedListeners.Namespaces.Selector = selector("team", "yes")
		set := w.listenerSet("team", "team.example.com")
		route := w.route("team", "web", toSet("team"))
		w.create(g, set, route)
		Eventually(setSays(set, gatewayv1.ListenerSetConditionAccepted)).Should(Equal("False NotAllowed"))
		Eventually(routeSays(route, "team")).Should(Equal("False NoMatchingParent"))

		namespace := &corev1.Namespace{ObjectMeta: w.meta("")}
		namespace.Namespace, namespace.Name = "", w.namespace
		change(namespace, func(n *corev1.Namespace) { n.Labels["team"] = "yes" })
		Eventually(setSays(set, gatewayv1.ListenerSetConditionAccepted)).Should(Equal("True Accepted"))
		Eventually(routeSays(route, "team")).Should(Equal("True Accepted"))
		Eventually(w.get).WithArguments("shared", "team.example.com", "/").Should(Equal("500"))

		w.create(w.service("web"))
		Eventually(w.get).WithArguments("shared", "team.example.com", "/").Should(Equal("web"))
	})

	It("updates the status of its GatewayClass, and adds no finalizer", func() {
		w := newWorld()
		w.start()
		class := &gatewayv1.GatewayClass{}
		class.Name = w.class
		Eventually(func() string {
			return say(fresh(class).Status.Conditions, gatewayv1.GatewayClassConditionStatusAccepted)
		}).Should(Equal("True Accepted"))
		Expect(say(class.Status.Conditions, gatewayv1.GatewayClassConditionStatusSupportedVersion)).To(Equal("True SupportedVersion"))
		Expect(class.Finalizers).To(BeEmpty())
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(fresh(class).Finalizers).To(BeEmpty())
	})
})

// waitUntilIdle waits until the controller has not written to the API server for
// two seconds.
func (w *world) settle(ctx context.Context) {
	GinkgoHelper()
	still(func() string { return w.versions(ctx) })
}

// waitUntilStable waits until the function has returned the same text for two
// seconds.
func still(state func() string) {
	GinkgoHelper()
	last, since := "", time.Now()
	Eventually(func() time.Duration {
		if current := state(); current != last {
			last, since = current, time.Now()
		}
		return time.Since(since)
	}).Should(BeNumerically(">=", 2*time.Second))
}
