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
		w := newWorld()
		w.start()
		g := w.gateway("shared", "home.example.com")
		set := w.listenerSet("team", "team.example.com")
		w.create(w.service("web"), g, set, w.route("home", "web", toGateway("shared")), w.route("team", "web", toSet("team")))
		Eventually(w.hostnames).WithArguments("shared").Should(ConsistOf("home.example.com", "team.example.com"))
		Eventually(setSays(set, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		w.settle(ctx) // the controller writes the Gateway's status last
		w.stop()
		before := w.versions(ctx)
		w.edge.ResetRequests()

		w.start()
		Eventually(w.edge.Count).WithArguments(http.MethodGet, configurations).Should(Equal(1))
		w.settle(ctx)
		Expect(w.versions(ctx)).To(Equal(before))
		Expect(w.edge.Count("", "")).To(Equal(1), "one read of the configuration, and no other request")
	})

	DescribeTable("removes the rule and status of a route that moves to another Gateway", func(down bool) {
		w := newWorld()
		w.start()
		from, to := w.gateway("from", "*.example.com"), w.gateway("to", "*.example.com")
		route := w.route("web", "web", toGateway("from"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"web.example.com"}
		w.create(w.service("web"), from, to, route)
		Eventually(w.hostnames).WithArguments("from").Should(ConsistOf("web.example.com"))
		Eventually(routeSays(route, "from")).Should(Equal("True Accepted"))
		Eventually(programmed(to)).Should(Equal("True Programmed"))

		if down {
			w.stop()
		}
		change(route, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "to" })
		if down {
			w.start()
		}
		Eventually(w.hostnames).WithArguments("to").Should(ConsistOf("web.example.com"))
		Eventually(w.hostnames).WithArguments("from").Should(BeEmpty())
		Eventually(routeSays(route, "to")).Should(Equal("True Accepted"))
		Eventually(routeSays(route, "from")).Should(Equal("no entry"))
	},
		Entry("while the controller runs", false),
		Entry("while the controller is stopped", true),
	)

	DescribeTable("removes a route's status entry when its ListenerSet is deleted", func(down bool) {
		w := newWorld()
		w.start()
		set := w.listenerSet("team", "team.example.com")
		route := w.route("web", "web", toSet("team"))
		w.create(w.service("web"), w.gateway("shared", "home.example.com"), set, route)
		Eventually(routeSays(route, "team")).Should(Equal("True Accepted"))
		if down {
			w.stop()
		}
		w.delete(set)
		if down {
			w.start()
		}
		Eventually(routeSays(route, "team")).Should(Equal("no entry"))
		Eventually(w.hostnames).WithArguments("shared").Should(BeEmpty())
	},
		Entry("while the controller runs", false),
		Entry("while the controller is stopped", true),
	)

	It("deletes the tunnel and resets the statuses when the Gateway is deleted", func() {
		w := newWorld()
		w.start()
		g, set := w.gateway("shared", "home.example.com"), w.listenerSet("team", "team.example.com")
		route := w.route("web", "web", toSet("team"))
		w.create(w.service("web"), g, set, route)
		Eventually(routeSays(route, "team")).Should(Equal("True Accepted"))
		Expect(w.tunnel("shared")).NotTo(BeEmpty())

		w.deleteAndWait(g)
		Expect(w.tunnel("shared")).To(BeEmpty())
		Expect(routeSays(route, "team")()).To(Equal("no entry"))
		Expect(setSays(set, gatewayv1.ListenerSetConditionAccepted)()).To(Equal("Unknown Pending"))
	})

	It("ignores the Gateways of another controller", func(ctx SpecContext) {
		w, other := newWorld(), newWorld()
		w.start()
		g := w.gateway("shared", "home.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(w.get).WithArguments("shared", "home.example.com", "/").Should(Equal("web"))
		w.stop()
		before := w.versions(ctx)
		other.start()
		managed := other.gateway("managed", "a.example.com")
		other.create(managed)
		Eventually(programmed(managed)).Should(Equal("True Programmed"))
		Expect(w.versions(ctx)).To(Equal(before))
	})

	DescribeTable("deletes the tunnel when the Gateway's class changes to that of another controller", func(down bool) {
		w, other := newWorld(), newWorld()
		w.start()
		g := w.gateway("shared", "home.example.com")
		route := w.route("web", "web", toGateway("shared"))
		w.create(w.service("web"), g, route)
		Eventually(w.get).WithArguments("shared", "home.example.com", "/").Should(Equal("web"))
		if down {
			w.stop()
		}
		other.start()
		change(g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(other.class) })
		if down {
			w.start()
		}
		Eventually(func() string { return w.tunnel("shared") }).Should(BeEmpty())
		Eventually(func() []string { return controllers(route) }).Should(ConsistOf(other.controller))
		Eventually(programmed(g), 60*time.Second).Should(Equal("True Programmed"))
		Expect(other.edge.Tunnels()).To(HaveLen(1))
	},
		Entry("while both controllers run", false),
		Entry("while the first controller is stopped", true),
	)

	It("keeps a tunnel with connectors that it does not manage, and reports the reason", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "home.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id := w.tunnel("shared")
		w.edge.Connect(id, 1)
		w.delete(g)
		Eventually(w.isGone).WithArguments(g).Should(BeTrue(), "the deletion of the Gateway does not wait")
		Eventually(w.tunnelSays(g, v1alpha1.TunnelReady)).Should(Equal("False ConnectorsConnected"))
		Expect(w.tunnelPhase(g)()).To(Equal("Blocked"))
		w.settle(ctx)
		Expect(w.tunnel("shared")).To(Equal(id))
		w.edge.Disconnect(id)
		Eventually(w.tunnelPhase(g)).WithTimeout(time.Minute).Should(Equal("no Tunnel"))
		Expect(w.tunnel("shared")).To(BeEmpty())
	})

	It("reports a failed write, keeps the old configuration and recovers", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.edge.Inject(simulator.Fault{Method: http.MethodPut, Path: configurations, Status: http.StatusBadGateway})

		route := w.route("web", "web", toGateway("shared"))
		w.create(route)
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(And(ContainSubstring("cannot be reached"), ContainSubstring("Retrying in")))
		Eventually(routeSays(route, "shared")).Should(Equal("True Accepted"))
		Expect(w.get("shared", "web.example.com", "/")).To(Equal("404"))

		w.edge.ClearFaults()
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(w.get("shared", "web.example.com", "/")).To(Equal("web"))
	})

	It("reports a rate limit only in an event", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g, set := w.gateway("shared", "*.example.com"), w.listenerSet("team", "team.example.org")
		w.create(w.service("web"), g, set)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.settle(ctx)
		w.edge.Inject(simulator.Fault{
			Method: http.MethodPut, Path: configurations, Status: http.StatusTooManyRequests, RetryAfter: 6 * time.Second, Times: 1,
		})
		gateway, team := fresh(g).ResourceVersion, fresh(set).ResourceVersion
		other := w.listenerSet("other", "other.example.org")
		w.create(w.route("other", "web", toSet("other")), other)
		Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Warning RateLimited"))
		Eventually(setSays(other, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("False Pending"), "the generation is not in effect yet")
		Expect(programmed(g)()).To(Equal("True Programmed"))
		Expect(setSays(set, gatewayv1.ListenerSetConditionProgrammed)()).To(Equal("True Programmed"))

		Eventually(setSays(other, gatewayv1.ListenerSetConditionProgrammed)).Should(Equal("True Programmed"))
		Expect(fresh(set).ResourceVersion).To(Equal(team), "the status of the served ListenerSet does not change")
		Eventually(func() string { return fresh(g).ResourceVersion }).ShouldNot(Equal(gateway), "one more ListenerSet is attached")
		Expect(w.events(ctx, "shared")).NotTo(ContainElement(ContainSubstring("CloudflareUnavailable")))
	})

	It("keeps the condition Programmed when it cannot read the configuration back", func(ctx SpecContext) {
		w := newWorld()
		w.start("--drift-interval=10s")
		g := w.gateway("shared", "*.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.settle(ctx)
		w.edge.ResetRequests()
		w.edge.Inject(simulator.Fault{Method: http.MethodGet, Path: configurations, Status: http.StatusBadGateway})
		before := fresh(g).ResourceVersion
		Eventually(w.edge.Count).WithArguments(http.MethodGet, configurations).Should(BeNumerically(">", 3))
		Expect(programmed(g)()).To(Equal("True Programmed"))
		Expect(g.ResourceVersion).To(Equal(before), "the controller does not write the status")
	})

	It("creates separate tunnels for Gateways with similar names", func() {
		w := newWorld()
		w.start()
		first, second := w.gateway("x.y", "a.example.com"), w.gateway("y", "b.example.com")
		second.Namespace = w.namespace + "-x"
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second.Namespace}}, w.service("web"),
			first, w.route("web", "web", toGateway("x.y")), second)
		Eventually(w.get).WithArguments("x.y", "a.example.com", "/").Should(Equal("web"))
		Eventually(programmed(second)).Should(Equal("True Programmed"))
		Expect(w.edge.Tunnels()).To(HaveLen(2))
		w.deleteAndWait(second)
		Expect(w.get("x.y", "a.example.com", "/")).To(Equal("web"))
	})

	It("reports the missing permission when the API token is rejected", func() {
		w := newWorld()
		w.edge.SetToken("another")
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring("Cloudflare Tunnel: Edit"))
		Expect(g.Status.Addresses).To(BeEmpty())
		w.edge.SetToken("token")
		Eventually(programmed(g)).Should(Equal("True Programmed"))
	})

	It("writes the statuses before a slow configuration write completes", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.edge.Inject(simulator.Fault{Method: http.MethodPut, Path: configurations, Latency: 6 * time.Second, Times: 1})
		route := w.route("web", "web", toGateway("shared"))
		w.create(route)
		Eventually(routeSays(route, "shared"), 5*time.Second).Should(Equal("True Accepted"))
		Expect(programmed(g)()).To(Equal("True Programmed"), "this generation is already programmed")
		Expect(w.get("shared", "web.example.com", "/")).To(Equal("404"))
		Eventually(w.get).WithArguments("shared", "web.example.com", "/").Should(Equal("web"))
	})

	It("creates only one tunnel when the response to the creation is lost", func() {
		w := newWorld()
		w.edge.Inject(simulator.Fault{Method: http.MethodPost, Path: allTunnels, Drop: simulator.DropAfterWrite, Times: 1})
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(w.edge.Tunnels()).To(HaveLen(1))
	})

	It("does not replace the configuration of an adopted tunnel until takeover is permitted", func(ctx SpecContext) {
		w := newWorld()
		id := w.tunnelOfOthers()
		w.edge.SetConfiguration(id, foreign)
		w.start()
		w.permit("tunnel.existing")
		g := w.gateway("shared", "a.example.com")
		referToOwn(g)
		w.create(w.settings("own", v1alpha1.TunnelConfigurationSpec{
			Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: id}},
		}))
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring("tunnel.existing.takeover"))
		Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("418"))

		w.permitTakeover()
		Eventually(programmed(g), 5*time.Second).Should(Equal("True Programmed"))
		Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("web"))
		Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Normal TakenOver"))

		w.delete(g)
		Eventually(w.tunnelPhase(g)).Should(Equal("Retained"))
		Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("web"), "the controller does not delete an adopted tunnel")
	})
})

// externalConfiguration is a configuration that the controller did not write.
var foreign = json.RawMessage(`{"ingress":[{"service":"http_status:418"}],"warp-routing":{"enabled":true}}`)
