package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var _ = Describe("a route that loses its last parent", lifecycle, func() {
	const reason = "NoParent"
	var env *environment
	var bySet, byRef, moved, never, byGateway *gatewayv1.HTTPRoute

	BeforeEach(func() {
		env = newEnvironment()
		bySet, byRef = env.route("by-set", "web", listenerSetParent("team")), env.route("by-ref", "web", gatewayParent("shared"))
		moved, never = env.route("moved", "web", gatewayParent("shared")), env.route("never", "web", gatewayParent("none"))
		byGateway = env.route("by-gateway", "web", gatewayParent("other"))
		env.create(env.service("web"), env.gateway("shared", "*.example.com"), env.gateway("other", "other.example.com"), env.listenerSet("team", "team.example.org"),
			bySet, byRef, moved, never, byGateway)
		env.start()
		Eventually(routeAccepted(bySet, "team")).Should(Equal("True Accepted"))
		Eventually(routeAccepted(moved, "shared")).Should(Equal("True Accepted"))
		Eventually(routeAccepted(byRef, "shared")).Should(Equal("True Accepted"))
		Eventually(routeAccepted(byGateway, "other")).Should(Equal("True Accepted"))
	})

	It("has one event, unless the Gateway itself is deleted", func(ctx SpecContext) {
		By("deleting the ListenerSet, changing parentRefs and deleting a Gateway")
		env.delete(env.listenerSet("team", "team.example.org"))
		update(byRef, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "none" })
		update(moved, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "other" })
		Eventually(env.eventMessages).WithArguments(ctx, bySet.Name, reason).Should(ConsistOf(
			"The route has lost its last parent, so the controller no longer serves it. Check that these parents exist and use this controller: ListenerSet " + env.namespace + "/team."))
		Eventually(env.eventMessages).WithArguments(ctx, byRef.Name, reason).Should(ConsistOf(ContainSubstring("Gateway " + env.namespace + "/none.")))
		Expect(latest(bySet).Status.Parents).To(BeEmpty())
		Eventually(routeAccepted(moved, "other")).ShouldNot(Equal("no entry"))
		Expect(env.eventMessages(ctx, moved.Name, reason)).To(BeEmpty())
		env.delete(env.gateway("other", "other.example.com"))
		Eventually(func() []gatewayv1.RouteParentStatus { return latest(byGateway).Status.Parents }).Should(BeEmpty())

		By("restarting the controller, and serving another change")
		// A Gateway reconcile that read the ListenerSet before its deletion can write the
		// entry again after the first event. When the entry is removed again, a second
		// event occurs.
		env.waitUntilIdle(ctx)
		events := len(env.eventMessages(ctx, bySet.Name, reason))
		Expect(events).To(BeNumerically("<=", 2))
		env.stop()
		env.start()
		update(byRef, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "shared" })
		Eventually(routeAccepted(byRef, "shared")).Should(Equal("True Accepted"))
		Expect(env.eventMessages(ctx, bySet.Name, reason)).To(HaveLen(events))
		Expect(env.eventMessages(ctx, byRef.Name, reason)).To(HaveLen(1))
		for _, route := range []*gatewayv1.HTTPRoute{byGateway, moved, never} {
			Expect(env.eventMessages(ctx, route.Name, reason)).To(BeEmpty(), route.Name)
		}
	})
})
