package integration

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

var _ = Describe("the ownership of a tunnel", lifecycle, func() {
	It("is recovered by the tunnel's name after the cluster is rebuilt", func(ctx SpecContext) {
		w := newWorld()
		id := w.foreignTunnel("shared") // as the previous cluster left it
		w.edge.SetConfiguration(id, foreign)
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))
		Expect(w.edge.Tunnels()).To(HaveLen(1))
		Expect(fresh(g).Status.Addresses[0].Value).To(HavePrefix(id))
		Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Normal TunnelFound"))
		Expect(w.events(ctx, "shared")).NotTo(ContainElement("Warning DriftRepaired"))
		w.deleteAndWait(g)
		Expect(w.tunnel("shared")).To(BeEmpty())
	})

	It("is recovered after the loss of the Tunnel object and of the Gateway's status", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id := w.tunnel("shared")
		w.stop()
		w.edge.ResetRequests()
		w.delete(w.tunnelObject(g))
		fresh(g).Status = gatewayv1.GatewayStatus{}
		Expect(kube.Status().Update(context.Background(), g)).To(Succeed())

		w.start()
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(fresh(g).Status.Addresses[0].Value).To(HavePrefix(id))
		Expect(w.edge.Tunnels()).To(HaveLen(1))
		Expect(w.edge.Count(http.MethodPut, configurations)).To(BeZero(), "the configuration is current")
	})

	It("is recorded again when the Tunnel object is deleted, without a deletion in the Cloudflare account", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id, before := w.tunnel("shared"), w.tunnelObject(g).UID
		w.delete(w.tunnelObject(g))
		since := time.Now()
		Eventually(w.tunnelPhase(g)).Should(Equal("Serving"))
		Expect(w.tunnelObject(g).UID).NotTo(Equal(before))
		Eventually(func() types.UID { return w.deployment().OwnerReferences[0].UID }).Should(Equal(w.tunnelObject(g).UID))
		AddReportEntry(fmt.Sprintf("measured: %v from the deletion of a Tunnel to its new Deployment", time.Since(since)))
		Expect(w.tunnelObject(g).Status.TunnelID).To(Equal(id))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))
		Expect(w.edge.Count(http.MethodDelete, "")).To(BeZero())
	})

	It("is immutable in the Tunnel object, and adds no annotations or finalizers", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		object := w.tunnelObject(g)
		object.Spec.AccountID = "another"
		Expect(kube.Update(ctx, object)).To(MatchError(ContainSubstring("delete the Tunnel to switch")))
		Expect(fresh(g).Annotations).To(BeEmpty())
		Expect(g.Finalizers).To(BeEmpty())
		Expect(w.tunnelObject(g).Finalizers).To(BeEmpty())
	})

	It("stays with the Gateway whose Tunnel recorded it first", func() {
		w := newWorld()
		id := w.tunnelOfOthers()
		w.start()
		w.permit("tunnel.existing")
		w.permitTakeover()
		w.create(w.settings("own", v1alpha1.TunnelConfigurationSpec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: id}}}))
		first, second := w.gateway("first", "a.example.com"), w.gateway("second", "b.example.com")
		referToOwn(first)
		referToOwn(second)
		w.create(w.service("web"), first, w.route("web", "web", toGateway("first")))
		Eventually(programmed(first)).Should(Equal("True Programmed"))
		w.create(second)
		Eventually(programmed(second)).Should(Equal("False Pending"))
		Expect(gatewayMessage(second)()).To(And(ContainSubstring("in use by another Gateway"), Not(ContainSubstring("first"))))
		w.deleteAndWait(second)
		Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("web"))
	})

	It("is refused for a tunnel that was created for another Gateway", func() {
		w := newWorld()
		w.start()
		victim := w.gateway("victim", "a.example.com")
		w.create(w.service("web"), victim, w.route("web", "web", toGateway("victim")))
		Eventually(programmed(victim)).Should(Equal("True Programmed"))
		id := w.tunnel("victim")
		w.permit("tunnel.existing")
		w.permitTakeover()
		w.create(w.settings("own", v1alpha1.TunnelConfigurationSpec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: id}}}))
		thief := w.gateway("thief", "b.example.com")
		referToOwn(thief)
		w.create(thief)
		Eventually(programmed(thief)).Should(Equal("False Pending"))
		w.deleteAndWait(thief)
		Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("web"))
	})

	It("does not change when the settings name another tunnel", func() {
		w := newWorld()
		other := w.tunnelOfOthers()
		w.start()
		w.permit("tunnel.existing")
		own := w.settings("own", v1alpha1.TunnelConfigurationSpec{})
		g := w.gateway("shared", "*.example.com")
		referToOwn(g)
		w.create(w.service("web"), own, g, w.route("web", "web", toGateway("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id := w.tunnel("shared")
		change(own, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Tunnel = &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: other}}
		})
		Eventually(programmed(g)).Should(Equal("False SettingsNotApplied"))
		Expect(gatewayMessage(g)()).To(ContainSubstring("tunnel.existing"))
		more := w.route("more", "web", toGateway("shared"))
		more.Spec.Hostnames = []gatewayv1.Hostname{"more.example.com"}
		w.create(more)
		Eventually(w.hostnames).WithArguments("shared").Should(ContainElement("more.example.com"), "the controller still writes route changes")

		By("deleting the Tunnel, as an administrator does to switch tunnels")
		w.delete(w.tunnelObject(g))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(fresh(g).Status.Addresses[0].Value).To(HavePrefix(other))
		Expect(w.tunnel("shared")).To(Equal(id), "the controller does not delete the old tunnel")
	})

	It("does not extend to the Tunnel object of another cluster", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.stop()
		backup := w.tunnelObject(g)
		status := backup.Status
		w.delete(backup)
		backup.ObjectMeta = metav1.ObjectMeta{Namespace: w.system, Name: backup.Name}
		backup.Spec.ClusterUID = "another-cluster"
		w.create(backup)
		backup.Status = status
		Expect(kube.Status().Update(ctx, backup)).To(Succeed())
		w.edge.ResetRequests()
		w.start()
		Eventually(w.tunnelSays(g, v1alpha1.TunnelReady)).Should(Equal("False OtherCluster"))
		w.delete(g)
		w.settle(ctx)
		Expect(w.edge.Count("", "")).To(BeZero())
		Expect(w.tunnelPhase(g)()).To(Equal("Blocked"))
	})

	DescribeTable("does not extend to a locally managed tunnel",
		func(ctx SpecContext, choose func(id string) *v1alpha1.TunnelSettings, says string) {
			w := newWorld()
			w.callAPI(http.MethodPost, "/accounts/account/cfd_tunnel", fmt.Sprintf(`{"name":%q,"config_src":"local"}`, w.tunnelName("shared")))
			id := w.tunnel("shared")
			w.start()
			w.create(w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Tunnel: choose(id)}))
			w.referClass("defaults")
			g := w.gateway("shared", "a.example.com")
			w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
			Eventually(programmed(g)).Should(Equal("False Pending"))
			Expect(gatewayMessage(g)()).To(And(ContainSubstring("is locally managed"), ContainSubstring(says)))
			Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Warning LocallyManaged"))
			w.settle(ctx)
			Expect(w.leftOver("shared")).To(BeEmpty(), "neither connectors nor a token exist")
			Expect(w.edge.Count(http.MethodPut, configurations)).To(BeZero())

			By("deleting the Gateway")
			w.delete(g)
			Eventually(w.tunnelPhase(g)).Should(BeElementOf("Blocked", "no Tunnel", "Retained"))
			w.settle(ctx)
			Expect(w.tunnel("shared")).To(Equal(id))
			Expect(w.edge.Count(http.MethodDelete, anyTunnel)).To(BeZero())

			By("migrating the tunnel to remote management and recreating the Gateway")
			w.edge.SetLocal(id, false)
			recreated := w.gateway("shared", "a.example.com")
			w.create(recreated)
			Eventually(programmed(recreated)).WithTimeout(2 * time.Minute).Should(Equal("True Programmed"))
			Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("web"))
		},
		Entry("that is named in the settings", func(id string) *v1alpha1.TunnelSettings {
			return &v1alpha1.TunnelSettings{
				Existing: &v1alpha1.ExistingTunnel{ID: id},
			}
		}, "Migrate it to remote management"),
		Entry("that has the name of the Gateway's tunnel", func(string) *v1alpha1.TunnelSettings { return nil }, "Migrate it to remote management"),
	)

	It("moves to a new tunnel, with an event, when the tunnel is deleted in the Cloudflare account", func(ctx SpecContext) {
		w := newWorld()
		w.start("--inventory-interval=10s")
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id := w.tunnel("shared")
		w.callAPI(http.MethodDelete, "/accounts/account/cfd_tunnel/"+id, "")
		Eventually(w.tunnel).WithArguments("shared").ShouldNot(BeEmpty())
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		Eventually(func() string { return fresh(g).Status.Addresses[0].Value }).Should(HavePrefix(w.tunnel("shared")))
		Expect(w.tunnel("shared")).NotTo(Equal(id))
		Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Warning TunnelLost"))
		Expect(w.events(ctx, "shared")).NotTo(ContainElement("Warning Failed"))
	})

})

var _ = Describe("a hostname that two Gateways serve", lifecycle, func() {
	It("is reported on both Gateways until one of them stops serving it", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		one, two := w.gateway("one", "*.example.com"), w.gateway("two", "*.example.com")
		route := w.route("web", "web", toGateway("one"), toGateway("two"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"web.example.com"}
		w.create(w.service("web"), one, two, route)
		for _, g := range []*gatewayv1.Gateway{one, two} {
			Eventually(gatewaySays(g, gateway.TypeHostnameShared)).Should(Equal("True HostnameShared"))
			Eventually(w.events).WithArguments(ctx, g.Name).Should(ContainElement("Warning HostnameShared"))
		}

		By("restarting the controller, which writes nothing")
		w.settle(ctx)
		w.stop()
		before := w.versions(ctx)
		w.start()
		w.settle(ctx)
		Expect(w.versions(ctx)).To(Equal(before))

		By("detaching the route from one of the Gateways")
		change(route, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs = r.Spec.ParentRefs[:1] })
		for _, g := range []*gatewayv1.Gateway{one, two} {
			Eventually(gatewaySays(g, gateway.TypeHostnameShared)).Should(Equal("none"))
		}
	})
})

// allowTakeover permits the Gateways of the class to replace the configurations
// of tunnels that they adopt. Call it after [environment.allowGatewayFields].
func (w *world) permitTakeover() {
	GinkgoHelper()
	change(w.classSettings(permissions, v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
		c.Spec.Tunnel = &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{Takeover: ptr.To(true)}}
	})
}

// deleteAndWait deletes the Gateway and waits until the API server has neither it nor its Tunnel.
func (w *world) deleteAndWait(g *gatewayv1.Gateway) {
	GinkgoHelper()
	w.delete(g)
	Eventually(w.isGone).WithArguments(g).Should(BeTrue())
	Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
}

func (w *world) isGone(o client.Object) bool {
	return apierrors.IsNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(o), o))
}
