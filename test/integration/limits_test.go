package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

var _ = Describe("the limit of tunnels per namespace", func() {
	It("rejects the newest Gateways until a Tunnel or another Gateway is deleted", func(ctx SpecContext) {
		env := newEnvironment()
		env.create(env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{
			Connector: &v1alpha1.Connector{Enabled: ptr.To(false)}, Limits: &v1alpha1.Limits{TunnelsPerNamespace: ptr.To[int32](2)},
		}))
		class := env.useClassSettings("defaults")
		env.create(env.orphanedTunnel("without-gateway"))
		env.start()
		// The name decides between Gateways that are created in the same second.
		first, second, third := env.gateway("first", "a.example.com"), env.gateway("second", "b.example.com"), env.gateway("third", "c.example.com")
		env.create(first)
		Eventually(programmed(first)).Should(Equal("True Programmed"))
		env.create(second)
		Eventually(accepted(second)).Should(Equal("False LimitExceeded"))
		Expect(acceptedMessage(second)).To(ContainSubstring("has reached limits.tunnelsPerNamespace of the GatewayClass, which is 2 (older Gateways: 1, Tunnels without a Gateway: 1)"))
		env.waitUntilIdle(ctx)
		Expect(env.tunnel("second")).To(BeEmpty())

		By("deleting the Tunnel without a Gateway")
		env.delete(env.orphanedTunnel("without-gateway"))
		Eventually(programmed(second)).Should(Equal("True Programmed"))

		By("deleting the oldest Gateway")
		env.create(third)
		Eventually(accepted(third)).Should(Equal("False LimitExceeded"))
		Expect(acceptedMessage(third)).To(ContainSubstring("older Gateways: 2, Tunnels without a Gateway: 0"))
		env.deleteAndWait(first)
		Eventually(programmed(third)).Should(Equal("True Programmed"))

		By("lowering and raising the limit")
		defaults := env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{})
		update(defaults, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Limits.TunnelsPerNamespace = ptr.To[int32](1) })
		Eventually(accepted(third)).Should(Equal("False LimitExceeded"))
		Expect(accepted(second)()).To(Equal("True Accepted"))
		Expect(env.tunnel("third")).NotTo(BeEmpty(), "the tunnel of an accepted Gateway stays")
		update(defaults, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Limits = nil })
		Eventually(accepted(third)).Should(Equal("True Accepted"))
		Expect(exists(class)).To(BeTrue())
	})
})

// orphanedTunnel returns a Tunnel without a Gateway.
func (env *environment) orphanedTunnel(gateway string) *v1alpha1.Tunnel {
	return &v1alpha1.Tunnel{ObjectMeta: objectMetaIn(env.controllerNamespace, env.namespace+"."+gateway), Spec: v1alpha1.TunnelSpec{
		Gateway: v1alpha1.GatewayReference{Namespace: env.namespace, Name: gateway}, ControllerName: env.controllerName,
		ClusterUID: "uid", AccountID: "account", Name: gateway, DeletionPolicy: v1alpha1.DeletionPolicyRetain,
	}}
}
