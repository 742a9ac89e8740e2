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
)

var _ = Describe("the ownership of a tunnel", ownership, func() {
	It("is recovered by the tunnel's name after the cluster is rebuilt", func(ctx SpecContext) {
		env := newEnvironment()
		id := env.createPreviousTunnel("shared") // as the previous cluster left it
		env.cloudflare.SetConfiguration(id, externalConfiguration)
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(env.get("shared", "a.example.com", "/")).To(Equal("web"))
		Expect(env.cloudflare.Tunnels()).To(HaveLen(1))
		Expect(latest(g).Status.Addresses[0].Value).To(HavePrefix(id))
		Eventually(env.events).WithArguments(ctx, "shared").Should(ContainElement("Normal TunnelFound"))
		Expect(env.events(ctx, "shared")).NotTo(ContainElement("Warning DriftRepaired"))
		env.deleteAndWait(g)
		Expect(env.tunnel("shared")).To(BeEmpty())
	})

	It("is recovered after the Tunnel object and Gateway status are lost", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id := env.tunnel("shared")
		env.stop()
		env.cloudflare.ResetRequests()
		env.delete(env.tunnelObject(g))
		latest(g).Status = gatewayv1.GatewayStatus{}
		Expect(kube.Status().Update(context.Background(), g)).To(Succeed())

		env.start()
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(latest(g).Status.Addresses[0].Value).To(HavePrefix(id))
		Expect(env.cloudflare.Tunnels()).To(HaveLen(1))
		Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(BeZero(), "the configuration is current")
	})

	It("survives the deletion of the Tunnel object", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id, before := env.tunnel("shared"), env.tunnelObject(g).UID
		env.delete(env.tunnelObject(g))
		since := time.Now()
		Eventually(env.tunnelPhase(g)).Should(Equal("Serving"))
		Expect(env.tunnelObject(g).UID).NotTo(Equal(before))
		Eventually(func() types.UID { return env.deployment().OwnerReferences[0].UID }).Should(Equal(env.tunnelObject(g).UID))
		AddReportEntry(fmt.Sprintf("measured: %v from the deletion of a Tunnel to its new Deployment", time.Since(since)))
		Expect(env.tunnelObject(g).Status.TunnelID).To(Equal(id))
		Expect(env.get("shared", "a.example.com", "/")).To(Equal("web"))
		Expect(env.cloudflare.Count(http.MethodDelete, "")).To(BeZero())
	})

	It("is immutable in the Tunnel object, and adds no annotations or finalizers", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(func() error { // the controller can write the status at the same time
			object := env.tunnelObject(g)
			object.Spec.AccountID = "another"
			return kube.Update(ctx, object)
		}).Should(MatchError(ContainSubstring("delete the Tunnel to switch")))
		Expect(latest(g).Annotations).To(BeEmpty())
		Expect(g.Finalizers).To(BeEmpty())
		Expect(env.tunnelObject(g).Finalizers).To(BeEmpty())
	})

	It("stays with the Gateway whose Tunnel recorded it first", func() {
		env := newEnvironment()
		id := env.createUnrelatedTunnel()
		env.start()
		env.allowGatewayFields("tunnel.existing")
		env.allowTakeover()
		env.create(env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: id}}}))
		first, second := env.gateway("first", "a.example.com"), env.gateway("second", "b.example.com")
		useOwnSettings(first)
		useOwnSettings(second)
		env.create(env.service("web"), first, env.route("web", "web", gatewayParent("first")))
		Eventually(programmed(first)).Should(Equal("True Programmed"))
		env.create(second)
		Eventually(programmed(second)).Should(Equal("False Pending"))
		Expect(gatewayMessage(second)()).To(And(ContainSubstring("Another Gateway uses the tunnel"), Not(ContainSubstring("first"))))
		env.deleteAndWait(second)
		Expect(env.getThrough(id, "a.example.com", "/")).To(Equal("web"))
	})

	It("is refused for a tunnel that was created for another Gateway", func() {
		env := newEnvironment()
		env.start()
		victim := env.gateway("victim", "a.example.com")
		env.create(env.service("web"), victim, env.route("web", "web", gatewayParent("victim")))
		Eventually(programmed(victim)).Should(Equal("True Programmed"))
		id := env.tunnel("victim")
		env.allowGatewayFields("tunnel.existing")
		env.allowTakeover()
		env.create(env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: id}}}))
		rival := env.gateway("rival", "b.example.com")
		useOwnSettings(rival)
		env.create(rival)
		Eventually(programmed(rival)).Should(Equal("False Pending"))
		env.deleteAndWait(rival)
		Expect(env.getThrough(id, "a.example.com", "/")).To(Equal("web"))
	})

	It("does not change when the settings name another tunnel", func() {
		env := newEnvironment()
		other := env.createUnrelatedTunnel()
		env.start()
		env.allowGatewayFields("tunnel.existing")
		settings := env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{})
		g := env.gateway("shared", "*.example.com")
		useOwnSettings(g)
		env.create(env.service("web"), settings, g, env.route("web", "web", gatewayParent("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id := env.tunnel("shared")
		update(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Tunnel = &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: other}}
		})
		Eventually(programmed(g)).Should(Equal("False SettingsNotApplied"))
		Expect(gatewayMessage(g)()).To(ContainSubstring("tunnel.existing"))
		additional := env.route("more", "web", gatewayParent("shared"))
		additional.Spec.Hostnames = []gatewayv1.Hostname{"more.example.com"}
		env.create(additional)
		Eventually(env.hostnames).WithArguments("shared").Should(ContainElement("more.example.com"), "the controller still writes route changes")

		By("deleting the Tunnel, as an administrator does to switch tunnels")
		env.delete(env.tunnelObject(g))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(latest(g).Status.Addresses[0].Value).To(HavePrefix(other))
		Expect(env.tunnel("shared")).To(Equal(id), "the controller does not delete the old tunnel")
	})

	It("does not extend to the Tunnel object of another cluster", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.stop()
		backup := env.tunnelObject(g)
		status := backup.Status
		env.delete(backup)
		backup.ObjectMeta = metav1.ObjectMeta{Namespace: env.controllerNamespace, Name: backup.Name}
		backup.Spec.ClusterUID = "another-cluster"
		env.create(backup)
		backup.Status = status
		Expect(kube.Status().Update(ctx, backup)).To(Succeed())
		env.cloudflare.ResetRequests()
		env.start()
		Eventually(env.tunnelCondition(g, "Ready")).Should(Equal("False OtherCluster"))
		env.delete(g)
		env.waitUntilIdle(ctx)
		Expect(env.cloudflare.Count("", "")).To(BeZero())
		Expect(env.tunnelPhase(g)()).To(Equal("Blocked"))
	})

	DescribeTable("does not extend to a locally managed tunnel",
		func(ctx SpecContext, choose func(id string) *v1alpha1.TunnelSettings, message string) {
			env := newEnvironment()
			env.callCloudflareAPI(http.MethodPost, "/accounts/account/cfd_tunnel", fmt.Sprintf(`{"name":%q,"config_src":"local"}`, env.tunnelName("shared")))
			id := env.tunnel("shared")
			env.start()
			env.create(env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Tunnel: choose(id)}))
			env.useClassSettings("defaults")
			g := env.gateway("shared", "a.example.com")
			env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
			Eventually(programmed(g)).Should(Equal("False Pending"))
			Expect(gatewayMessage(g)()).To(And(ContainSubstring("is locally managed"), ContainSubstring(message)))
			Eventually(env.events).WithArguments(ctx, "shared").Should(ContainElement("Warning LocallyManaged"))
			env.waitUntilIdle(ctx)
			Expect(env.remainingObjects("shared")).To(BeEmpty(), "neither connectors nor a token exist")
			Expect(env.cloudflare.Count(http.MethodPut, configurationPath)).To(BeZero())

			By("deleting the Gateway")
			env.delete(g)
			Eventually(env.tunnelPhase(g)).Should(BeElementOf("Blocked", "no Tunnel", "Retained"))
			env.waitUntilIdle(ctx)
			Expect(env.tunnel("shared")).To(Equal(id))
			Expect(env.cloudflare.Count(http.MethodDelete, tunnelPath)).To(BeZero())

			By("migrating the tunnel to remote management and recreating the Gateway")
			env.cloudflare.SetLocal(id, false)
			recreated := env.gateway("shared", "a.example.com")
			env.create(recreated)
			Eventually(programmed(recreated)).Should(Equal("True Programmed"))
			Expect(env.getThrough(id, "a.example.com", "/")).To(Equal("web"))
		},
		Entry("that is named in the settings", func(id string) *v1alpha1.TunnelSettings {
			return &v1alpha1.TunnelSettings{
				Existing: &v1alpha1.ExistingTunnel{ID: id},
			}
		}, "Migrate it to remote management"),
		Entry("that has the name of the Gateway's tunnel", func(string) *v1alpha1.TunnelSettings { return nil }, "Migrate it to remote management"),
	)

})

var _ = Describe("a tunnel that is deleted in the Cloudflare account", ownership, func() {
	It("is replaced by a new tunnel, with an event", func(ctx SpecContext) {
		env := newEnvironment()
		env.start("--inventory-interval=10s")
		g := env.gateway("shared", "a.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id := env.tunnel("shared")
		env.callCloudflareAPI(http.MethodDelete, "/accounts/account/cfd_tunnel/"+id, "")
		Eventually(env.tunnel).WithArguments("shared").ShouldNot(BeEmpty())
		Eventually(env.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		Eventually(func() string { return latest(g).Status.Addresses[0].Value }).Should(HavePrefix(env.tunnel("shared")))
		Expect(env.tunnel("shared")).NotTo(Equal(id))
		Eventually(env.events).WithArguments(ctx, "shared").Should(ContainElement("Warning TunnelLost"))
		Expect(env.events(ctx, "shared")).NotTo(ContainElement("Warning Failed"))
	})
})

var _ = Describe("a hostname that two Gateways serve", ownership, func() {
	It("is reported on both Gateways until one of them stops serving it", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		one, two := env.gateway("one", "*.example.com"), env.gateway("two", "*.example.com")
		route := env.route("web", "web", gatewayParent("one"), gatewayParent("two"))
		route.Spec.Hostnames = []gatewayv1.Hostname{"web.example.com"}
		env.create(env.service("web"), one, two, route)
		for _, g := range []*gatewayv1.Gateway{one, two} {
			Eventually(gatewayCondition(g, "tunnelgateway.dev/HostnameShared")).Should(Equal("True HostnameShared"))
			Eventually(env.events).WithArguments(ctx, g.Name).Should(ContainElement("Warning HostnameShared"))
		}

		By("restarting the controller, which writes nothing")
		env.waitUntilIdle(ctx)
		env.stop()
		before := env.resourceVersions(ctx)
		env.start()
		env.waitUntilIdle(ctx)
		Expect(env.resourceVersions(ctx)).To(Equal(before))

		By("detaching the route from one of the Gateways")
		update(route, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs = r.Spec.ParentRefs[:1] })
		for _, g := range []*gatewayv1.Gateway{one, two} {
			Eventually(gatewayCondition(g, "tunnelgateway.dev/HostnameShared")).Should(Equal("none"))
		}
	})
})

// allowTakeover permits the Gateways in the GatewayClass to adopt tunnels and replace
// their configurations. Call it after [environment.allowGatewayFields].
func (env *environment) allowTakeover() {
	GinkgoHelper()
	update(env.classSettings(permissionsName, v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
		c.Spec.Tunnel = &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{Takeover: ptr.To(true)}}
	})
}

// deleteAndWait deletes the Gateway and waits until its Tunnel is deleted too.
func (env *environment) deleteAndWait(g *gatewayv1.Gateway) {
	GinkgoHelper()
	env.delete(g)
	Eventually(env.isGone).WithArguments(g).Should(BeTrue())
	Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
}

func (env *environment) isGone(o client.Object) bool {
	return apierrors.IsNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(o), o))
}
