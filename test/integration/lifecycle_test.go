package integration

import (
	"encoding/json"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("the controller", lifecycle, func() {
	It("writes nothing after a restart without changes", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "home.example.com")
		set := env.listenerSet("team", "team.example.com")
		env.create(env.service("web"), g, set, env.route("home", "web", gatewayParent("shared")), env.route("team", "web", listenerSetParent("team")))
		Eventually(env.hostnames).WithArguments("shared").Should(ConsistOf("home.example.com", "team.example.com"))
		Eventually(listenerSetCondition(set, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		env.waitUntilIdle(ctx) // the controller writes the Gateway's status last
		env.stop()
		before := env.resourceVersions(ctx)
		env.cloudflare.ResetRequests()

		env.start()
		Eventually(env.cloudflare.Count).WithArguments(http.MethodGet, configurationPath).Should(Equal(1))
		env.waitUntilIdle(ctx)
		Expect(env.resourceVersions(ctx)).To(Equal(before))
		Expect(env.cloudflare.Count("", "")).To(Equal(1), "one read of the configuration, and no other request")
	})

	DescribeTable("removes the old rule and status when a route moves", func(stopped bool) {
		env := newEnvironment()
		env.start()
		source, target := env.gateway("source", "*.example.com"), env.gateway("target", "*.example.com")
		route := env.route("web", "web", gatewayParent("source"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"web.example.com"}
		env.create(env.service("web"), source, target, route)
		Eventually(env.hostnames).WithArguments("source").Should(ConsistOf("web.example.com"))
		Eventually(routeAccepted(route, "source")).Should(Equal("True Accepted"))
		Eventually(programmed(target)).Should(Equal("True Programmed"))

		if stopped {
			env.stop()
		}
		update(route, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "target" })
		if stopped {
			env.start()
		}
		Eventually(env.hostnames).WithArguments("target").Should(ConsistOf("web.example.com"))
		Eventually(env.hostnames).WithArguments("source").Should(BeEmpty())
		Eventually(routeAccepted(route, "target")).Should(Equal("True Accepted"))
		Eventually(routeAccepted(route, "source")).Should(Equal("no entry"))
	},
		Entry("while the controller runs", false),
		Entry("while the controller is stopped", true),
	)

	DescribeTable("removes a route's status entry when its ListenerSet is deleted", func(stopped bool) {
		env := newEnvironment()
		env.start()
		set := env.listenerSet("team", "team.example.com")
		route := env.route("web", "web", listenerSetParent("team"))
		env.create(env.service("web"), env.gateway("shared", "home.example.com"), set, route)
		Eventually(routeAccepted(route, "team")).Should(Equal("True Accepted"))
		if stopped {
			env.stop()
		}
		env.delete(set)
		if stopped {
			env.start()
		}
		Eventually(routeAccepted(route, "team")).Should(Equal("no entry"))
		Eventually(env.hostnames).WithArguments("shared").Should(BeEmpty())
	},
		Entry("while the controller runs", false),
		Entry("while the controller is stopped", true),
	)

	It("deletes a deleted Gateway's tunnel and resets the statuses", func() {
		env := newEnvironment()
		env.start()
		g, set := env.gateway("shared", "home.example.com"), env.listenerSet("team", "team.example.com")
		route := env.route("web", "web", listenerSetParent("team"))
		env.create(env.service("web"), g, set, route)
		Eventually(routeAccepted(route, "team")).Should(Equal("True Accepted"))
		Expect(env.tunnel("shared")).NotTo(BeEmpty())

		env.deleteAndWait(g)
		Expect(env.tunnel("shared")).To(BeEmpty())
		Expect(routeAccepted(route, "team")()).To(Equal("no entry"))
		Expect(listenerSetCondition(set, gatewayv1.ListenerSetConditionAccepted)()).To(Equal("Unknown Pending"))
	})

	It("ignores the Gateways of another controller", func(ctx SpecContext) {
		env, other := newEnvironment(), newEnvironment()
		env.start()
		g := env.gateway("shared", "home.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(env.get).WithArguments("shared", "home.example.com", "/").Should(Equal("web"))
		env.stop()
		before := env.resourceVersions(ctx)
		other.start()
		managed := other.gateway("managed", "a.example.com")
		other.create(managed)
		Eventually(programmed(managed)).Should(Equal("True Programmed"))
		Expect(env.resourceVersions(ctx)).To(Equal(before))
	})

	DescribeTable("deletes the tunnel when another controller takes over the Gateway", func(stopped bool) {
		env, other := newEnvironment(), newEnvironment()
		env.start()
		g := env.gateway("shared", "home.example.com")
		route := env.route("web", "web", gatewayParent("shared"))
		env.create(env.service("web"), g, route)
		Eventually(env.get).WithArguments("shared", "home.example.com", "/").Should(Equal("web"))
		if stopped {
			env.stop()
		}
		other.start()
		update(g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(other.className) })
		if stopped {
			env.start()
		}
		Eventually(func() string { return env.tunnel("shared") }).Should(BeEmpty())
		Eventually(func() []string { return routeControllers(route) }).Should(ConsistOf(other.controllerName))
		Eventually(programmed(g), 60*time.Second).Should(Equal("True Programmed"))
		Expect(other.cloudflare.Tunnels()).To(HaveLen(1))
	},
		Entry("while both controllers run", false),
		Entry("while the first controller is stopped", true),
	)

	It("keeps a tunnel that unmanaged connectors use", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "home.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id := env.tunnel("shared")
		env.cloudflare.Connect(id, 1)
		env.delete(g)
		Eventually(env.isGone).WithArguments(g).Should(BeTrue(), "the deletion of the Gateway does not wait")
		Eventually(env.tunnelCondition(g, "Ready")).Should(Equal("False ConnectorsConnected"))
		Expect(env.tunnelPhase(g)()).To(Equal("Blocked"))
		env.waitUntilIdle(ctx)
		Expect(env.tunnel("shared")).To(Equal(id))
		env.cloudflare.Disconnect(id)
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(env.tunnel("shared")).To(BeEmpty())
	})

	It("reports a failed write, keeps the old configuration and recovers", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.cloudflare.Inject(simulator.Fault{Method: http.MethodPut, Path: configurationPath, Status: http.StatusBadGateway})

		route := env.route("web", "web", gatewayParent("shared"))
		env.create(route)
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(And(ContainSubstring("is unavailable"), ContainSubstring("Retrying in")))
		Eventually(routeAccepted(route, "shared")).Should(Equal("True Accepted"))
		Expect(env.get("shared", "web.example.com", "/")).To(Equal("404"))

		env.cloudflare.ClearFaults()
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(env.get("shared", "web.example.com", "/")).To(Equal("web"))
	})

	It("reports a rate limit, and keeps the served objects' status", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g, set := env.gateway("shared", "*.example.com"), env.listenerSet("team", "team.example.org")
		env.create(env.service("web"), g, set)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.waitUntilIdle(ctx)
		env.cloudflare.Inject(simulator.Fault{
			Method: http.MethodPut, Path: configurationPath, Status: http.StatusTooManyRequests, RetryAfter: 6 * time.Second, Times: 1,
		})
		gateway, team := latest(g).ResourceVersion, latest(set).ResourceVersion
		other := env.listenerSet("other", "other.example.org")
		env.create(env.route("other", "web", listenerSetParent("other")), other)
		Eventually(env.events).WithArguments(ctx, "shared").Should(ContainElement("Warning RateLimited"))
		Eventually(listenerSetCondition(other, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("False Pending"), "the generation is not in effect yet")
		Expect(programmed(g)()).To(Equal("True Programmed"))
		Expect(listenerSetCondition(set, gatewayv1.ListenerSetConditionProgrammed)()).To(Equal("True Programmed"))

		Eventually(listenerSetCondition(other, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		Expect(latest(set).ResourceVersion).To(Equal(team), "the status of the served ListenerSet does not change")
		Eventually(func() string { return latest(g).ResourceVersion }).ShouldNot(Equal(gateway), "one more ListenerSet is attached")
		Expect(env.events(ctx, "shared")).NotTo(ContainElement(ContainSubstring("CloudflareUnavailable")))
	})

	It("keeps the Programmed condition when it cannot read the configuration back", func(ctx SpecContext) {
		env := newEnvironment()
		env.start("--drift-interval=10s")
		g := env.gateway("shared", "*.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.waitUntilIdle(ctx)
		env.cloudflare.ResetRequests()
		env.cloudflare.Inject(simulator.Fault{Method: http.MethodGet, Path: configurationPath, Status: http.StatusBadGateway})
		before := latest(g).ResourceVersion
		Eventually(env.cloudflare.Count).WithArguments(http.MethodGet, configurationPath).Should(BeNumerically(">", 3))
		Expect(programmed(g)()).To(Equal("True Programmed"))
		Expect(g.ResourceVersion).To(Equal(before), "the controller does not write the status")
	})

	It("creates separate tunnels for Gateways with similar names", func() {
		env := newEnvironment()
		env.start()
		first, second := env.gateway("x.y", "a.example.com"), env.gateway("y", "b.example.com")
		second.Namespace = env.namespace + "-x"
		env.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second.Namespace}}, env.service("web"),
			first, env.route("web", "web", gatewayParent("x.y")), second)
		Eventually(env.get).WithArguments("x.y", "a.example.com", "/").Should(Equal("web"))
		Eventually(programmed(second)).Should(Equal("True Programmed"))
		Expect(env.cloudflare.Tunnels()).To(HaveLen(2))
		env.deleteAndWait(second)
		Expect(env.get("x.y", "a.example.com", "/")).To(Equal("web"))
	})

	It("reports the missing permission when the API token is rejected", func() {
		env := newEnvironment()
		env.cloudflare.SetToken("another")
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring("Cloudflare Tunnel: Edit"))
		Expect(g.Status.Addresses).To(BeEmpty())
		env.cloudflare.SetToken("token")
		Eventually(programmed(g)).Should(Equal("True Programmed"))
	})

	It("writes the statuses before a slow configuration write completes", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.cloudflare.Inject(simulator.Fault{Method: http.MethodPut, Path: configurationPath, Latency: 6 * time.Second, Times: 1})
		route := env.route("web", "web", gatewayParent("shared"))
		env.create(route)
		Eventually(routeAccepted(route, "shared"), 5*time.Second).Should(Equal("True Accepted"))
		Expect(programmed(g)()).To(Equal("True Programmed"), "this generation is already programmed")
		Expect(env.get("shared", "web.example.com", "/")).To(Equal("404"))
		Eventually(env.get).WithArguments("shared", "web.example.com", "/").Should(Equal("web"))
	})

	It("creates only one tunnel when a response is lost", func() {
		env := newEnvironment()
		env.cloudflare.Inject(simulator.Fault{Method: http.MethodPost, Path: tunnelsPath, Drop: simulator.DropAfterWrite, Times: 1})
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(env.cloudflare.Tunnels()).To(HaveLen(1))
	})

	It("does not change an adopted tunnel until takeover is permitted", func(ctx SpecContext) {
		env := newEnvironment()
		id := env.createUnrelatedTunnel()
		env.cloudflare.SetConfiguration(id, externalConfiguration)
		env.start()
		env.allowGatewayFields("tunnel.existing")
		g := env.gateway("shared", "a.example.com")
		useOwnSettings(g)
		env.create(env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{
			Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: id}},
		}))
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring("tunnel.existing.takeover"))
		Expect(env.getThrough(id, "a.example.com", "/")).To(Equal("418"))

		env.allowTakeover()
		Eventually(programmed(g), 5*time.Second).Should(Equal("True Programmed"))
		Expect(env.getThrough(id, "a.example.com", "/")).To(Equal("web"))
		Eventually(env.events).WithArguments(ctx, "shared").Should(ContainElement("Normal TakenOver"))

		env.delete(g)
		Eventually(env.tunnelPhase(g)).Should(Equal("Retained"))
		Expect(env.getThrough(id, "a.example.com", "/")).To(Equal("web"), "the controller does not delete an adopted tunnel")
	})
})

// externalConfiguration is a configuration that the controller did not write.
var externalConfiguration = json.RawMessage(`{"ingress":[{"service":"http_status:418"}],"warp-routing":{"enabled":true}}`)
