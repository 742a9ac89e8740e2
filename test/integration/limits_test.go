package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

var _ = Describe("the limit of tunnels of a namespace", func() {
	It("refuses the youngest Gateways, until a Tunnel or a Gateway is gone", func(ctx SpecContext) {
		w := newWorld()
		w.create(w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{
			Connector: &v1alpha1.Connector{Enabled: ptr.To(false)}, Limits: &v1alpha1.Limits{TunnelsPerNamespace: ptr.To[int32](2)},
		}))
		class := w.referClass("defaults")
		w.create(w.orphan("gone"))
		w.start()
		// Of Gateways that are created in the same second the name decides.
		oldest, younger, youngest := w.gateway("oldest", "a.example.com"), w.gateway("younger", "b.example.com"), w.gateway("youngest", "c.example.com")
		w.create(oldest)
		Eventually(programmed(oldest)).Should(Equal("True Programmed"))
		w.create(younger)
		Eventually(accepted(younger)).Should(Equal("False LimitExceeded"))
		Expect(acceptedMessage(younger)).To(ContainSubstring("limits.tunnelsPerNamespace is 2, and 2 tunnels are in use (older Gateways: 1, Tunnels without a Gateway: 1)"))
		w.settle(ctx)
		Expect(w.tunnel("younger")).To(BeEmpty())

		By("deleting the Tunnel that no Gateway has")
		w.delete(w.orphan("gone"))
		Eventually(programmed(younger)).Should(Equal("True Programmed"))

		By("deleting the oldest Gateway")
		w.create(youngest)
		Eventually(accepted(youngest)).Should(Equal("False LimitExceeded"))
		Expect(acceptedMessage(youngest)).To(ContainSubstring("older Gateways: 2, Tunnels without a Gateway: 0"))
		w.deleteAndWait(oldest)
		Eventually(programmed(youngest)).Should(Equal("True Programmed"))

		By("lowering and raising the limit")
		defaults := w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{})
		change(defaults, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Limits.TunnelsPerNamespace = ptr.To[int32](1) })
		Eventually(accepted(youngest)).Should(Equal("False LimitExceeded"))
		Expect(accepted(younger)()).To(Equal("True Accepted"))
		Expect(w.tunnel("youngest")).NotTo(BeEmpty(), "what serves stays")
		change(defaults, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Limits = nil })
		Eventually(accepted(youngest)).Should(Equal("True Accepted"))
		Expect(exists(class)).To(BeTrue())
	})
})

// orphan returns a Tunnel without a Gateway.
func (w *world) orphan(gateway string) *v1alpha1.Tunnel {
	return &v1alpha1.Tunnel{ObjectMeta: inNamespace(w.system, w.namespace+"."+gateway), Spec: v1alpha1.TunnelSpec{
		Gateway: v1alpha1.GatewayReference{Namespace: w.namespace, Name: gateway}, ControllerName: w.controller,
		ClusterUID: "uid", AccountID: "account", Name: gateway, DeletionPolicy: v1alpha1.DeletionPolicyRetain,
	}}
}
