package integration

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// The specs follow docs/guides/migration-from-cloudflared.md and apply its files.
var _ = Describe("the guide to migrating from cloudflared", Ordered, ContinueOnFailure, func() {
	var w *world
	var written, before []byte // the old configuration: as written, and as stored by the API
	var id string              // ID of the old tunnel
	var g *gatewayv1.Gateway
	get := func(tunnel, host, path string) string { return w.getFrom(tunnel, host, path) }

	BeforeAll(func() {
		w = newWorld()
		w.start()
		var err error
		written, err = remoteDocument()
		Expect(err).NotTo(HaveOccurred())
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "store"}})
		g = &gatewayv1.Gateway{ObjectMeta: inNamespace("store", "store")}
	})

	BeforeEach(func() {
		name := unique("by-hand")
		w.callAPI(http.MethodPost, "/accounts/account/cfd_tunnel", fmt.Sprintf(`{"name":%q,"config_src":"cloudflare"}`, name))
		id, _ = w.edge.TunnelID(name)
		w.edge.SetConfiguration(id, written)
		before, _ = w.edge.StoredConfiguration(id)
		w.edge.Connect(id, 2)
		w.apply(kube, migration+"20-routes.yaml", migration+"30-services.yaml")
		Expect(get(id, "store.example.com", "/api/logo.png")).To(Equal("api"))
		Expect(get(id, "closed.example.com", "/")).To(Equal("410"))
	})

	AfterEach(func() {
		if exists(g) {
			w.delete(g)
		}
		if object := w.tunnelObject(g); object != nil {
			w.delete(object)
		}
		Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
	})

	It("shows an old Deployment that the API server accepts", func(ctx SpecContext) {
		for _, object := range w.sample(migration + "before/deployment.yaml") {
			strict := client.WithFieldValidation(client.NewDryRunClient(kube), "Strict")
			Expect(strict.Create(ctx, object)).To(Succeed())
		}
	})

	It("serves through a new tunnel while the old tunnel still serves", func() {
		w.apply(kube, migration+"00-gateway.yaml", migration+"10-settings.yaml")
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		newTunnel, _ := w.edge.TunnelID(w.tunnelNameIn("store", "store"))
		Expect(newTunnel).NotTo(Equal(id))
		Expect(fresh(g).Status.Addresses[0].Value).To(Equal(newTunnel + ".cfargotunnel.com"))
		for _, tunnel := range []string{id, newTunnel} {
			Expect(get(tunnel, "store.example.com", "/")).To(Equal("web"))
			Expect(get(tunnel, "store.example.com", "/api/logo.png")).To(Equal("api"))
			Expect(get(tunnel, "store.example.com", "/logo.png")).To(Equal("static"))
			Expect(get(tunnel, "store.example.com", "/old/download/1")).To(Equal("files"))
			Expect(get(tunnel, "x.preview.example.com", "/")).To(Equal("preview"))
		}
		configuration, _ := w.edge.StoredConfiguration(id)
		Expect(configuration).To(MatchJSON(before), "the old configuration does not change")

		By("deleting the Gateway to roll back")
		w.deleteAndWait(g)
		_, ok := w.edge.TunnelID(w.tunnelNameIn("store", "store"))
		Expect(ok).To(BeFalse())
		Expect(get(id, "store.example.com", "/")).To(Equal("web"))
	})

	It("takes over the old tunnel when permitted, and rolls back", func(ctx SpecContext) {
		w.apply(kube, migration+"takeover/settings.yaml")
		change(&v1alpha1.TunnelConfiguration{ObjectMeta: inNamespace("store", "store")}, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Tunnel.Existing.ID = id
		})
		w.apply(kube, migration+"00-gateway.yaml")
		connectors := &appsv1.Deployment{ObjectMeta: inNamespace(w.system, tunnel.ConnectorName(client.ObjectKeyFromObject(g)))}
		Eventually(programmed(g)).Should(Equal("False Pending"))
		Expect(gatewayMessage(g)()).To(ContainSubstring("tunnel.existing.takeover"))
		w.settle(ctx)
		configuration, _ := w.edge.StoredConfiguration(id)
		Expect(configuration).To(MatchJSON(before), "the controller does not write without permission")
		Expect(exists(connectors)).To(BeFalse())

		change(&v1alpha1.TunnelConfiguration{ObjectMeta: inNamespace(w.system, "migration")}, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Tunnel = &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{Takeover: ptr.To(true)}}
		})
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(fresh(g).Status.Addresses[0].Value).To(Equal(id+".cfargotunnel.com"), "the address does not change")
		Expect(get(id, "store.example.com", "/api/logo.png")).To(Equal("api"))
		Expect(get(id, "store.example.com", "/logo.png")).To(Equal("static"))
		Expect(get(id, "closed.example.com", "/")).To(Equal("404"), "the rule has no equivalent")
		Eventually(exists).WithArguments(connectors).Should(BeTrue())

		By("restoring the old configuration while the Gateway is paused")
		annotate(g, v1alpha1.PausedAnnotation, "true")
		Eventually(gatewayMessage(g)).Should(ContainSubstring("paused"))
		w.edge.SetConfiguration(id, written)
		annotate(g, "example.com/reconcile", "again")
		w.settle(ctx)
		Expect(get(id, "closed.example.com", "/")).To(Equal("410"))

		By("deleting the Gateway, which retains the adopted tunnel")
		w.delete(g)
		Eventually(w.tunnelPhase(g)).Should(Equal("Retained"))
		Eventually(exists).WithArguments(connectors).Should(BeFalse())
		Expect(get(id, "closed.example.com", "/")).To(Equal("410"))
		configuration, _ = w.edge.StoredConfiguration(id)
		Expect(configuration).To(MatchJSON(before))
	})
})

// annotate sets an annotation on the Gateway.
func annotate(g *gatewayv1.Gateway, name, value string) {
	GinkgoHelper()
	change(g, func(g *gatewayv1.Gateway) { metav1.SetMetaDataAnnotation(&g.ObjectMeta, name, value) })
}
