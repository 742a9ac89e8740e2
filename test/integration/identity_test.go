package integration

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

var _ = Describe("whose a tunnel is", lifecycle, func() {
	It("finds the tunnel again after the cluster was built anew", func(ctx SpecContext) {
		w := newWorld()
		id := w.foreignTunnel("shared") // of the Gateway's name
		w.edge.SetDocument(id, foreign) // what the cluster before served
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))
		Expect(w.edge.Tunnels()).To(HaveLen(1))
		Expect(fresh(g).Status.Addresses[0].Value).To(HavePrefix(id))
		Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Normal TunnelFound"))
		Expect(w.events(ctx, "shared")).NotTo(ContainElement("Warning ForeignEdit"))
		w.deleteAndWait(g)
		Expect(w.tunnel("shared")).To(BeEmpty())
	})

	It("survives the loss of record, finalizer and status", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		id := w.tunnel("shared")
		w.stop()
		w.edge.ResetRequests()
		change(g, func(g *gatewayv1.Gateway) { g.Annotations, g.Finalizers = nil, nil })
		g.Status = gatewayv1.GatewayStatus{}
		Expect(kube.Status().Update(context.Background(), g)).To(Succeed())

		w.start()
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(fresh(g).Status.Addresses[0].Value).To(HavePrefix(id))
		Expect(g.Finalizers).To(ContainElement(state.Finalizer))
		Expect(w.edge.Tunnels()).To(HaveLen(1))
		Expect(w.edge.Count(http.MethodPut, configurations)).To(BeZero(), "the document was right")
	})

	It("puts record and finalizer back while it runs", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		record := fresh(g).Annotations[state.RecordAnnotation]
		change(g, func(g *gatewayv1.Gateway) { g.Annotations, g.Finalizers = nil, nil })
		Eventually(func() string { return fresh(g).Annotations[state.RecordAnnotation] }).Should(Equal(record))
		Expect(g.Finalizers).To(ContainElement(state.Finalizer))
	})

	It("gives a copy of a Gateway a tunnel of its own", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		original := w.gateway("original", "a.example.com")
		w.create(w.service("web"), original, w.route("web", "web", toGateway("original")))
		Eventually(programmed(original)).Should(Equal("True Programmed"))
		duplicate := w.gateway("duplicate", "b.example.com")
		duplicate.Annotations = map[string]string{state.RecordAnnotation: fresh(original).Annotations[state.RecordAnnotation]}
		w.create(duplicate)
		Eventually(programmed(duplicate)).Should(Equal("True Programmed"))
		Expect(w.tunnel("duplicate")).NotTo(BeEmpty())
		Expect(fresh(duplicate).Status.Addresses[0].Value).To(HavePrefix(w.tunnel("duplicate")))
		Expect(w.get("original", "a.example.com", "/")).To(Equal("web"))
		Eventually(w.events).WithArguments(ctx, "duplicate").Should(ContainElement("Warning TunnelTaken"))

		w.deleteAndWait(duplicate)
		Expect(w.tunnel("duplicate")).To(BeEmpty())
		Expect(w.get("original", "a.example.com", "/")).To(Equal("web"))
	})

	It("never touches a tunnel of another name, whatever the record says", func() {
		w := newWorld()
		id := w.foreignTunnel("elsewhere")
		w.edge.SetDocument(id, foreign)
		w.start()
		g := w.gateway("shared", "a.example.com")
		record := state.Record{
			Controller: gatewayv1.GatewayController(w.controller), Account: "account", Tunnel: provider.TunnelID(id), Origin: state.OriginCreated,
		}
		g.Annotations = map[string]string{state.RecordAnnotation: record.String()}
		w.create(g)
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring("is not called"))
		Expect(w.edge.Tunnels()).To(HaveLen(1))
		Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("418"))

		By("making a tunnel of the right name when the record is taken off")
		change(g, func(g *gatewayv1.Gateway) { delete(g.Annotations, state.RecordAnnotation) })
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(w.tunnel("shared")).NotTo(BeEmpty())

		By("leaving it also when a Gateway with such a record is deleted")
		w.stop()
		change(g, func(g *gatewayv1.Gateway) { g.Annotations[state.RecordAnnotation] = record.String() })
		w.start()
		w.deleteAndWait(g)
		Expect(w.tunnel("shared")).To(BeEmpty())
		Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("418"))
	})

	DescribeTable("leaves a locally managed tunnel alone, and says what to do",
		func(ctx SpecContext, choose func(id string) *v1alpha1.TunnelSettings, says string) {
			w := newWorld()
			w.callAPI(http.MethodPost, "/accounts/account/cfd_tunnel", fmt.Sprintf(`{"name":%q,"config_src":"local"}`, w.tunnelName("shared")))
			id := w.tunnel("shared")
			w.start()
			g := w.gateway("shared", "a.example.com")
			referToOwn(g)
			w.create(w.settings("own", v1alpha1.TunnelConfigurationSpec{Tunnel: choose(id)}),
				w.service("web"), g, w.route("web", "web", toGateway("shared")))
			Eventually(programmed(g)).Should(Equal("False Pending"))
			Expect(gatewayMessage(g)()).To(And(ContainSubstring("is locally managed"), ContainSubstring(says)))
			Eventually(w.events).WithArguments(ctx, "shared").Should(ContainElement("Warning PushFailed"))
			w.settle(ctx)
			Expect(fresh(g).Status.Addresses).To(BeEmpty())
			Expect(w.leftOver("shared")).To(BeEmpty(), "neither connectors nor a token")
			Expect(w.edge.Count(http.MethodPut, configurations)).To(BeZero())

			By("leaving it when the Gateway goes")
			w.deleteAndWait(g)
			w.settle(ctx)
			Expect(w.tunnel("shared")).To(Equal(id))
			Expect(w.edge.Count(http.MethodDelete, anyTunnel)).To(BeZero())

			By("serving by it once it is migrated")
			w.edge.SetLocal(id, false)
			again := w.gateway("shared", "a.example.com")
			referToOwn(again)
			w.create(again)
			Eventually(programmed(again)).Should(Equal("True Programmed"))
			Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("web"))
		},
		Entry("that the settings name", func(id string) *v1alpha1.TunnelSettings {
			return &v1alpha1.TunnelSettings{
				Existing: &v1alpha1.ExistingTunnel{ID: id}, DeletionPolicy: pointer(v1alpha1.DeletionPolicyDelete),
			}
		}, "name another one in tunnel.existing.id"),
		Entry("that has the Gateway's name", func(string) *v1alpha1.TunnelSettings { return nil }, "rename it at Cloudflare"),
	)

	It("makes a new tunnel when somebody deleted it, and says so", func(ctx SpecContext) {
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
		Expect(w.events(ctx, "shared")).NotTo(ContainElement("Warning PushFailed"))
	})

	It("warns on both Gateways that serve one hostname", func(ctx SpecContext) {
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

		By("saying the same after a restart, without a write")
		w.settle(ctx)
		w.stop()
		before := w.versions(ctx)
		w.start()
		w.settle(ctx)
		Expect(w.versions(ctx)).To(Equal(before))

		By("taking it back when one of them serves it no more")
		change(route, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs = r.Spec.ParentRefs[:1] })
		for _, g := range []*gatewayv1.Gateway{one, two} {
			Eventually(gatewaySays(g, gateway.TypeHostnameShared)).Should(Equal("none"))
		}
	})
})

// deleteAndWait deletes the Gateway and waits until it is gone.
func (w *world) deleteAndWait(g *gatewayv1.Gateway) {
	GinkgoHelper()
	w.delete(g)
	Eventually(w.isGone).WithArguments(g).Should(BeTrue())
}

func (w *world) isGone(o client.Object) bool {
	return apierrors.IsNotFound(kube.Get(context.Background(), client.ObjectKeyFromObject(o), o))
}
