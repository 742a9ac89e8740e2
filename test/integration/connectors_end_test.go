package integration

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// holdFinalizer simulates requests in flight. The pod terminates when the
// finalizer is removed.
const hold = "example.com/hold"

var _ = Describe("the removal of connectors", lifecycle, func() {
	DescribeTable("completes before the tunnel is deleted, and leaves no object behind", func(ctx SpecContext, c *v1alpha1.Connector) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Connector: c}))
		w.referClass("defaults")
		w.create(g)
		Eventually(w.pods).WithArguments("shared").ShouldNot(BeEmpty())
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		last := w.pods("shared")[0]
		change(&last, func(p *corev1.Pod) { controllerutil.AddFinalizer(p, hold) })

		w.delete(g)
		Eventually(w.tunnelSays(g, v1alpha1.TunnelReady)).Should(Equal("False ConnectorsStopping"))
		w.settle(ctx)
		Expect(w.edge.Count(http.MethodDelete, "")).To(BeZero(), "the controller deletes neither the tunnel nor its connections")
		Expect(w.tunnel("shared")).NotTo(BeEmpty())
		Expect(w.token("shared")).NotTo(BeEmpty(), "a connector that restarts needs the token")

		change(&last, func(p *corev1.Pod) { controllerutil.RemoveFinalizer(p, hold) })
		Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(w.edge.Count(http.MethodDelete, anyTunnel)).To(Equal(1))
		Expect(w.tunnel("shared")).To(BeEmpty())
		Eventually(w.leftOver).WithArguments("shared").Should(BeEmpty())
	},
		Entry("with a fixed number of replicas", &v1alpha1.Connector{Replicas: ptr.To[int32](3)}),
		Entry("with an autoscaler", &v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](1)}}),
	)

	DescribeTable("does not delete a tunnel with the deletion policy Retain", func(before bool) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		referToOwn(g)
		settings := w.settings("own", v1alpha1.TunnelConfigurationSpec{
			Tunnel: &v1alpha1.TunnelSettings{DeletionPolicy: ptr.To(v1alpha1.DeletionPolicyRetain)},
		})
		w.create(settings, w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(w.pods).WithArguments("shared").Should(HaveLen(2))
		id := w.tunnel("shared")
		if before {
			w.delete(settings)
			Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
		}
		w.delete(g)
		Eventually(w.tunnelPhase(g)).Should(Equal("Retained"))
		Expect(w.tunnel("shared")).To(Equal(id))
		Expect(w.getFrom(id, "a.example.com", "/")).To(Equal("web"), "the configuration is retained")
		Eventually(w.pods).WithArguments("shared").Should(BeEmpty())
	},
		Entry("set in the settings", false),
		Entry("set in settings that are deleted before the Gateway", true),
	)

	It("does not happen when a Gateway changes to another class of the same controller", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		second := w.secondClass()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(w.pods).WithArguments("shared").Should(HaveLen(2))
		id, before := w.tunnel("shared"), w.deployment()
		change(g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(second) })
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		w.settle(ctx)
		Expect(w.deployment().UID).To(Equal(before.UID))
		Expect(w.tunnel("shared")).To(Equal(id))
		w.deleteAndWait(g)
		Eventually(w.leftOver).WithArguments("shared").Should(BeEmpty())
	})

	It("happens when a Gateway changes to the class of another controller, which creates its own connectors", func() {
		w, other := newWorld(), newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		former := w.deployment()
		Eventually(w.pods).WithArguments("shared").Should(HaveLen(2))
		change(g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(other.class) })
		Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(w.tunnel("shared")).To(BeEmpty())
		Eventually(w.isGone).WithArguments(former).Should(BeTrue())
		Eventually(w.leftOver).WithArguments("shared").Should(BeEmpty())
		other.start()
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(other.tunnelPhase(g)).Should(Equal("Serving"))
	})
})

// createSecondClass creates another class of the same controller and returns its
// name.
func (w *world) secondClass() string {
	GinkgoHelper()
	name := "second-" + w.class
	w.create(&gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(w.controller)},
	})
	return name
}

func accepted(g *gatewayv1.Gateway) func() string {
	return gatewaySays(g, gatewayv1.GatewayConditionAccepted)
}
