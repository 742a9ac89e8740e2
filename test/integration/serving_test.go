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
		env := newEnvironment()
		env.controllerName = config.DefaultControllerName
		set, err := manifest.Read([]string{"../../config/samples"}, manifest.Options{Namespace: "default"})
		Expect(err).NotTo(HaveOccurred())
		for _, object := range set.Objects {
			Expect(kube.Create(ctx, object)).To(Succeed())
		}
		env.start("--cluster-id=samples")
		shared := &gatewayv1.Gateway{}
		Expect(kube.Get(ctx, client.ObjectKey{Namespace: "platform", Name: "shared"}, shared)).To(Succeed())
		Eventually(programmed(shared)).Should(Equal("True Programmed"))
		Expect(gatewayCondition(shared, gatewayv1.GatewayConditionAccepted)()).To(Equal("True Accepted"))
		Expect(*shared.Status.AttachedListenerSets).To(BeEquivalentTo(2))

		env.namespace = "samples" // the cluster ID, which is in the tunnel's name
		id, ok := env.cloudflare.TunnelID(env.tunnelNameIn("platform", "shared"))
		Expect(ok).To(BeTrue())
		Expect(shared.Status.Addresses).To(HaveLen(1))
		Expect(shared.Status.Addresses[0].Value).To(Equal(id + ".cfargotunnel.com"))
		get := func(host, path string) string { return env.getThrough(id, host, path) }
		Expect(get("shared.example.com", "/")).To(Equal("home"))
		Expect(get("team-a.example.com", "/")).To(Equal("web"))
		Expect(get("team-a.example.com", "/api/orders")).To(Equal("api"))
		Expect(get("team-a.example.com", "/apiary")).To(Equal("web"))
		Expect(get("shop.team-b.example.com", "/")).To(Equal("shop"))
		Expect(get("blog.team-b.example.com", "/")).To(Equal("404"))
		Expect(get("unknown.example.com", "/")).To(Equal("404"))

		late := &gatewayv1.ListenerSet{}
		Expect(kube.Get(ctx, client.ObjectKey{Namespace: "team-b", Name: "team-b-late"}, late)).To(Succeed())
		Expect(listenerSetCondition(late, gatewayv1.ListenerSetConditionAccepted)()).To(Equal("False ListenersNotValid"))
		Expect(formatCondition(late.Status.Listeners[0].Conditions, gatewayv1.ListenerEntryConditionConflicted)).To(Equal("True HostnameConflict"))
	})

	It("gives a deleted owner's hostname to the next ListenerSet", func() {
		env := newEnvironment()
		env.start()
		first := env.listenerSet("a-first", "shop.example.com")
		second := env.listenerSet("b-second", "shop.example.com")
		g := env.gateway("shared", "home.example.com")
		env.create(env.service("one"), env.service("two"), g, first, second,
			env.route("one", "one", listenerSetParent("a-first")), env.route("two", "two", listenerSetParent("b-second")))
		Eventually(listenerSetCondition(second, gatewayv1.ListenerSetConditionAccepted)).Should(Equal("False ListenersNotValid"))
		Eventually(env.get).WithArguments("shared", "shop.example.com", "/").Should(Equal("one"))

		env.delete(first)
		Eventually(listenerSetCondition(second, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		Expect(formatCondition(latest(second).Status.Listeners[0].Conditions, gatewayv1.ListenerEntryConditionConflicted)).To(Equal("False NoConflicts"))
		Expect(env.get("shared", "shop.example.com", "/")).To(Equal("two"))
	})

	It("combines a burst of routes in few writes", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.cloudflare.ResetRequests()

		const burst = 200
		// maxGap is the gap between writes in a long burst. The first gaps are shorter.
		const maxGap = time.Second
		started := time.Now()
		var last *gatewayv1.HTTPRoute
		for i := range burst {
			last = env.route(fmt.Sprintf("r%03d", i), "web", gatewayParent("shared"))
			last.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%03d.example.com", i))}
			env.create(last)
		}
		Eventually(func() int { return len(env.hostnames("shared")) }).Should(Equal(burst))
		Eventually(routeAccepted(last, "shared")).Should(Equal("True Accepted"))
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(BeNumerically("<=", 5+int(time.Since(started)/maxGap)))
		Expect(env.cloudflare.Count(http.MethodGet, configurationPath)).To(BeZero())

		env.waitUntilIdle(ctx)
		env.cloudflare.ResetRequests()
		one := env.route("one-more", "web", gatewayParent("shared"))
		one.Spec.Hostnames = []gatewayv1.Hostname{"one-more.example.com"}
		env.create(one)
		Eventually(env.hostnames).WithArguments("shared").Should(ContainElement("one-more.example.com"))
		Eventually(routeAccepted(one, "shared")).Should(Equal("True Accepted"))
		env.waitUntilIdle(ctx)
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(Equal(1))
		Expect(env.cloudflare.Count("", "")).To(Equal(1))
	})

	It("reacts to changes of Services and namespace labels", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "home.example.com")
		g.Spec.AllowedListeners.Namespaces.From = ptr.To(gatewayv1.NamespacesFromSelector)
		g.Spec.AllowedListeners.Namespaces.Selector = labelSelector("team", "yes")
		set := env.listenerSet("team", "team.example.com")
		route := env.route("team", "web", listenerSetParent("team"))
		env.create(g, set, route)
		Eventually(listenerSetCondition(set, gatewayv1.ListenerSetConditionAccepted)).Should(Equal("False NotAllowed"))
		Eventually(routeAccepted(route, "team")).Should(Equal("False NoMatchingParent"))

		namespace := &corev1.Namespace{ObjectMeta: env.objectMeta("")}
		namespace.Namespace, namespace.Name = "", env.namespace
		update(namespace, func(n *corev1.Namespace) { n.Labels["team"] = "yes" })
		Eventually(listenerSetCondition(set, gatewayv1.ListenerSetConditionAccepted)).Should(Equal("True Accepted"))
		Eventually(routeAccepted(route, "team")).Should(Equal("True Accepted"))
		Eventually(env.get).WithArguments("shared", "team.example.com", "/").Should(Equal("500"))

		env.create(env.service("web"))
		Eventually(env.get).WithArguments("shared", "team.example.com", "/").Should(Equal("web"))
	})

	It("updates the status of its GatewayClass, and adds no finalizer", func() {
		env := newEnvironment()
		env.start()
		class := &gatewayv1.GatewayClass{}
		class.Name = env.className
		Eventually(func() string {
			return formatCondition(latest(class).Status.Conditions, gatewayv1.GatewayClassConditionStatusAccepted)
		}).Should(Equal("True Accepted"))
		Expect(formatCondition(class.Status.Conditions, gatewayv1.GatewayClassConditionStatusSupportedVersion)).To(Equal("True SupportedVersion"))
		Expect(class.Finalizers).To(BeEmpty())
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(latest(class).Finalizers).To(BeEmpty())
	})
})

// waitUntilIdle waits until the controller has not written to the API server for
// two seconds.
func (env *environment) waitUntilIdle(ctx context.Context) {
	GinkgoHelper()
	waitUntilStable(func() string { return env.resourceVersions(ctx) })
}

// waitUntilStable waits until the function has returned the same text for two seconds, or for
// ten times as long as its slowest call took, because a busy machine delays the controller, too.
func waitUntilStable(state func() string) {
	GinkgoHelper()
	const maxQuiet = timeout / 6
	quiet := 2 * time.Second
	last, since := "", time.Now()
	Eventually(func() bool {
		started := time.Now()
		current := state()
		quiet = max(quiet, min(10*time.Since(started), maxQuiet))
		if current != last {
			last, since = current, time.Now()
		}
		return time.Since(since) >= quiet
	}).Should(BeTrue(), func() string { return "the state still changes: " + last })
}
