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
const holdFinalizer = "example.com/hold"

var _ = Describe("the removal of connectors", lifecycle, func() {
	DescribeTable("completes before the tunnel is deleted, and leaves no object behind", func(ctx SpecContext, c *v1alpha1.Connector) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Connector: c}))
		env.useClassSettings("defaults")
		env.create(g)
		Eventually(env.pods).WithArguments("shared").ShouldNot(BeEmpty())
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		last := env.pods("shared")[0]
		update(&last, func(p *corev1.Pod) { controllerutil.AddFinalizer(p, holdFinalizer) })

		env.delete(g)
		Eventually(env.tunnelCondition(g, "Ready")).Should(Equal("False ConnectorsStopping"))
		env.waitUntilIdle(ctx)
		Expect(env.cloudflare.Count(http.MethodDelete, "")).To(BeZero(), "the controller deletes neither the tunnel nor its connections")
		Expect(env.tunnel("shared")).NotTo(BeEmpty())
		Expect(env.tunnelToken("shared")).NotTo(BeEmpty(), "a connector that restarts needs the token")

		update(&last, func(p *corev1.Pod) { controllerutil.RemoveFinalizer(p, holdFinalizer) })
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(env.cloudflare.Count(http.MethodDelete, tunnelPath)).To(Equal(1))
		Expect(env.tunnel("shared")).To(BeEmpty())
		Eventually(env.remainingObjects).WithArguments("shared").Should(BeEmpty())
	},
		Entry("if the number of replicas is fixed", &v1alpha1.Connector{Replicas: ptr.To[int32](3)}),
		Entry("if an autoscaler is enabled", &v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](1)}}),
	)

	DescribeTable("does not delete a tunnel with the deletion policy Retain", func(deleteSettings bool) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		useOwnSettings(g)
		settings := env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{
			Tunnel: &v1alpha1.TunnelSettings{DeletionPolicy: ptr.To(v1alpha1.DeletionPolicyRetain)},
		})
		env.create(settings, env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(env.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(env.pods).WithArguments("shared").Should(HaveLen(2))
		id := env.tunnel("shared")
		if deleteSettings {
			env.delete(settings)
			Eventually(accepted(g)).Should(Equal("False InvalidParameters"))
		}
		env.delete(g)
		Eventually(env.tunnelPhase(g)).Should(Equal("Retained"))
		Expect(env.tunnel("shared")).To(Equal(id))
		Expect(env.getThrough(id, "a.example.com", "/")).To(Equal("web"), "the configuration is retained")
		Eventually(env.pods).WithArguments("shared").Should(BeEmpty())
	},
		Entry("set in the settings", false),
		Entry("set in settings that are deleted before the Gateway", true),
	)

	It("does not happen when the same controller manages the new class", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		second := env.createSecondClass()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(env.pods).WithArguments("shared").Should(HaveLen(2))
		id, before := env.tunnel("shared"), env.deployment()
		update(g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(second) })
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.waitUntilIdle(ctx)
		Expect(env.deployment().UID).To(Equal(before.UID))
		Expect(env.tunnel("shared")).To(Equal(id))
		env.deleteAndWait(g)
		Eventually(env.remainingObjects).WithArguments("shared").Should(BeEmpty())
	})

	It("happens when another controller takes over the Gateway", func() {
		env, other := newEnvironment(), newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		former := env.deployment()
		Eventually(env.pods).WithArguments("shared").Should(HaveLen(2))
		update(g, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = gatewayv1.ObjectName(other.className) })
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		Expect(env.tunnel("shared")).To(BeEmpty())
		Eventually(env.isGone).WithArguments(former).Should(BeTrue())
		Eventually(env.remainingObjects).WithArguments("shared").Should(BeEmpty())
		other.start()
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(other.tunnelPhase(g)).Should(Equal("Serving"))
	})
})

// createSecondClass creates another GatewayClass for the same controller and returns its
// name.
func (env *environment) createSecondClass() string {
	GinkgoHelper()
	name := "second-" + env.className
	env.create(&gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(env.controllerName)},
	})
	return name
}

func accepted(g *gatewayv1.Gateway) func() string {
	return gatewayCondition(g, gatewayv1.GatewayConditionAccepted)
}
