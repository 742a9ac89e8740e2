package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

var _ = Describe("the limit of tunnels per namespace", func() {
	It("rejects the newest Gateways until a Tunnel or another Gateway is deleted", func(ctx SpecContext) {
		w := newWorld()
		w.create(w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{
			Connector: &v1alpha1.Connector{Enabled: ptr.To(false)}, Limits: &v1alpha1.Limits{TunnelsPerNamespace: ptr.To[int32](2)},
		}))
		class := w.referClass("defaults")
		w.create(w.orphan("without-gateway"))
		w.start()
		// The name decides between Gateways that are created in the same second.
		first, second, third := w.gateway("first", "a.example.com"), w.gateway("second", "b.example.com"), w.gateway("third", "c.example.com")
		w.create(first)
		Eventually(programmed(first)).Should(Equal("True Programmed"))
		w.create(second)
		Eventually(accepted(second)).Should(Equal("False LimitExceeded"))
		Expect(acceptedMessage(second)).To(ContainSubstring("uses 2 tunnels (older Gateways: 1, Tunnels without a Gateway: 1), and limits.tunnelsPerNamespace is 2"))
		w.settle(ctx)
		Expect(w.tunnel("second")).To(BeEmpty())

		By("deleting the Tunnel without a Gateway")
		w.delete(w.orphan("without-gateway"))
		Eventually(programmed(second)).Should(Equal("True Programmed"))

		By("deleting the oldest Gateway")
		w.create(third)
		Eventually(accepted(third)).Should(Equal("False LimitExceeded"))
		Expect(acceptedMessage(third)).To(ContainSubstring("older Gateways: 2, Tunnels without a Gateway: 0"))
		w.deleteAndWait(first)
		Eventually(programmed(third)).Should(Equal("True Programmed"))

		By("lowering and raising the limit")
		defaults := w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{})
		change(defaults, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Limits.TunnelsPerNamespace = ptr.To[int32](1) })
		Eventually(accepted(third)).Should(Equal("False LimitExceeded"))
		Expect(accepted(second)()).To(Equal("True Accepted"))
		Expect(w.tunnel("third")).NotTo(BeEmpty(), "the tunnel of an accepted Gateway stays")
		change(defaults, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Limits = nil })
		Eventually(accepted(third)).Should(Equal("True Accepted"))
		Expect(exists(class)).To(BeTrue())
	})
})

// orphanedTunnel returns a Tunnel without a Gateway.
func (w *world) orphan(gateway string) *v1alpha1.Tunnel {
	return &v1alpha1.Tunnel{ObjectMeta: inNamespace(w.system, w.namespace+"."+gateway), Spec: v1alpha1.TunnelSpec{
		Gateway: v1alpha1.GatewayReference{Namespace: w.namespace, Name: gateway}, ControllerName: w.controller,
		ClusterUID: "uid", AccountID: "account", Name: gateway, DeletionPolicy: v1alpha1.DeletionPolicyRetain,
	}}
}
