package integration

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

var _ = Describe("connectors", func() {
	It("run as a Deployment owned by the Tunnel, with a restricted security context and the tunnel's token", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		deployment := w.deployment()
		Expect(metav1.IsControlledBy(deployment, w.tunnelObject(g))).To(BeTrue())
		Expect(deployment.Labels).To(HaveKeyWithValue(gatewayv1.GatewayNameLabelKey, "shared"))
		Expect(deployment.Labels).To(HaveKeyWithValue("tunnelgateway.dev/gateway-namespace", w.namespace))
		Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))

		pod := deployment.Spec.Template.Spec
		Expect(pod.ServiceAccountName).To(Equal(deployment.Name))
		Expect(pod.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		Expect(pod.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()))
		Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
		Expect(pod.TerminationGracePeriodSeconds).To(HaveValue(BeNumerically(">", 30)), "longer than cloudflared's grace period")
		c := pod.Containers[0]
		Expect(c.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
		Expect(c.ReadinessProbe.HTTPGet.Path).To(Equal("/ready"))
		Expect(c.LivenessProbe.HTTPGet.Path).To(Equal("/ready"))
		token := c.Env[0].ValueFrom.SecretKeyRef
		Expect(w.secret(token.Name).Data).To(HaveKeyWithValue(token.Key, []byte(w.token("shared"))))

		account, policy := named(w, &corev1.ServiceAccount{}), named(w, &networkingv1.NetworkPolicy{})
		Eventually(exists).WithArguments(account).Should(BeTrue())
		Eventually(exists).WithArguments(policy).Should(BeTrue())
		Expect(fresh(policy).Spec.PodSelector.MatchLabels).To(Equal(deployment.Spec.Selector.MatchLabels))
		Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
	})

	It("are reported ready when their pods are ready, and do not delay the Programmed condition", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(connectorsReady(g)).Should(Equal("False Unavailable"))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(connectorsReady(g)()).To(Equal("False Unavailable"), "Programmed does not wait for the connectors")
		w.runPods()
		Eventually(connectorsReady(g)).Should(Equal("True Ready"))
	})

	It("do not take over an object with the same name, and start when it is deleted", slow, func(ctx SpecContext) {
		w := newWorld()
		theirs := named(w, &corev1.ServiceAccount{})
		w.create(theirs)
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		Eventually(w.tunnelSays(g, v1alpha1.TunnelConnectorsReady)).Should(Equal("False ObjectTaken"))
		Eventually(w.notes).WithArguments(ctx, "shared", "ObjectTaken").Should(ContainElement(ContainSubstring("does not belong to Tunnel")))
		Expect(fresh(theirs).OwnerReferences).To(BeEmpty())

		w.delete(theirs) // the controller does not watch this object
		Eventually(connectorsReady(g)).WithTimeout(2 * time.Minute).Should(Equal("False Unavailable"))
	})

	It("have the permitted labels and annotations of spec.infrastructure on every object and pod", func() {
		w := newWorld()
		w.start()
		w.create(w.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{
			Autoscaling:             &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](1)},
			PodDisruptionBudget:     &v1alpha1.PodDisruptionBudget{MaxUnavailable: ptr.To(intstr.FromInt32(1))},
			AllowedMetadataPrefixes: []string{"example.com"},
		}}))
		w.referClass("defaults")
		g := w.gateway("shared", "a.example.com")
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{}
		g.Spec.Infrastructure.Labels = map[gatewayv1.LabelKey]gatewayv1.LabelValue{"example.com/team": "shop", "other.example/team": "no", "plain": "no"}
		g.Spec.Infrastructure.Annotations = map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{"example.com/cost-centre": "4711"}
		w.create(g)
		Eventually(w.pods).WithArguments("shared").ShouldNot(BeEmpty())
		objects := w.connectorObjects()
		for _, pod := range w.pods("shared") {
			objects = append(objects, &pod)
		}
		for _, object := range objects {
			Eventually(exists).WithArguments(object).Should(BeTrue(), "%T", object)
			Expect(object.GetLabels()).To(HaveKeyWithValue("example.com/team", "shop"), "%T", object)
			Expect(object.GetLabels()).To(HaveKeyWithValue(gatewayv1.GatewayNameLabelKey, "shared"), "%T", object)
			Expect(object.GetLabels()).NotTo(Or(HaveKey("plain"), HaveKey("other.example/team")), "%T", object)
			Expect(object.GetAnnotations()).To(HaveKeyWithValue("example.com/cost-centre", "4711"), "%T", object)
		}
		Expect(w.tokenSecret("shared").Labels).NotTo(HaveKey("example.com/team"), "other controllers may react to labels and annotations of a Secret")

		By("changing a label of spec.infrastructure")
		change(g, func(g *gatewayv1.Gateway) { g.Spec.Infrastructure.Labels["example.com/team"] = "till" })
		for _, object := range w.connectorObjects() {
			Eventually(func() map[string]string { return fresh(object).GetLabels() }).Should(HaveKeyWithValue("example.com/team", "till"), "%T", object)
		}
	})

	It("are removed when they are disabled, and the tunnel continues to serve", func() {
		w := newWorld()
		w.start()
		w.permit("connector.enabled")
		settings := w.settings("own", v1alpha1.TunnelConfigurationSpec{})
		g := w.gateway("shared", "a.example.com")
		referToOwn(g)
		w.create(settings, w.service("web"), g, w.route("web", "web", toGateway("shared")))
		Eventually(connectorsReady(g)).Should(Equal("False Unavailable"))
		change(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)}
		})
		Eventually(w.leftOver).WithArguments("shared").Should(HaveExactElements(HavePrefix("Secret ")), "users who run their own cloudflared need the token")
		Eventually(connectorsReady(g)).Should(Equal("none"))
		Expect(programmed(g)()).To(Equal("True Programmed"))
		Expect(w.get("shared", "a.example.com", "/")).To(Equal("web"))
	})

	It("do not restart when a route changes, except for the first GRPCRoute", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "*.example.com")
		w.create(w.service("web"), g)
		before := w.deployment().Generation
		Expect(w.arguments()).To(ContainSubstring("--protocol auto"))
		route := w.route("web", "web", toGateway("shared"))
		w.create(route)
		Eventually(w.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		change(route, func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames = []gatewayv1.Hostname{"b.example.com"} })
		Eventually(w.hostnames).WithArguments("shared").Should(ConsistOf("b.example.com"))
		w.settle(ctx)
		Expect(w.deployment().Generation).To(Equal(before))

		By("switching to HTTP/2 for the first GRPCRoute")
		first := w.grpcRoute("first")
		w.create(first)
		Eventually(w.arguments).Should(ContainSubstring("--protocol http2"))
		Eventually(w.notes).WithArguments(ctx, "shared", "ConnectorProtocol").Should(ContainElement(ContainSubstring("GRPCRoute")))

		By("deleting all GRPCRoutes and restarting the controller")
		w.create(w.grpcRoute("second"))
		w.delete(first, w.grpcRoute("second"))
		Eventually(w.hostnames).WithArguments("shared").Should(ConsistOf("b.example.com"))
		w.stop()
		w.start()
		w.settle(ctx)
		Expect(w.arguments()).To(ContainSubstring("--protocol http2"))
		Expect(w.deployment().Generation).To(Equal(before + 1))
		Expect(w.notes(ctx, "shared", "ConnectorProtocol")).To(HaveLen(1))
	})

	It("are replaced once when the tunnel's token is rotated", slow, func(ctx SpecContext) {
		w := newWorld()
		w.start("--inventory-interval=10s")
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		before := w.deployment()
		Eventually(func() string {
			w.runPods() // the pods are created after the Deployment
			return connectorsReady(g)()
		}).Should(Equal("True Ready"))
		held := w.token("shared")
		w.edge.RotateToken(w.tunnel("shared"))
		w.edge.Connect(w.tunnel("shared"), 1)
		w.edge.Disconnect(w.tunnel("shared"))
		version := func() string {
			return w.deployment().Spec.Template.Annotations[connector.TokenVersionAnnotation]
		}
		Eventually(version).ShouldNot(Equal(before.Spec.Template.Annotations[connector.TokenVersionAnnotation]))
		Expect(w.token("shared")).NotTo(Equal(held))

		By("waiting until all pods are replaced and the controller has listed the tunnels twice more")
		Eventually(func() string {
			w.runPods()
			return connectorsReady(g)()
		}).Should(Equal("True Ready"))
		Eventually(func(g Gomega) {
			w.runPods()
			for _, pod := range w.pods("shared") {
				g.Expect(pod.Annotations).To(HaveKeyWithValue(connector.TokenVersionAnnotation, version()))
			}
		}).Should(Succeed())
		lists := w.edge.Count(http.MethodGet, allTunnels)
		Eventually(w.edge.Count).WithArguments(http.MethodGet, allTunnels).Should(BeNumerically(">", lists+1))
		w.settle(ctx)
		Expect(w.deployment().Generation).To(Equal(before.Generation + 1))
	})

	It("leave the number of replicas to an autoscaler as soon as it is enabled", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		w.permit("connector.replicas", "connector.autoscaling", "connector.logLevel")
		settings := w.settings("own", v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{Replicas: ptr.To[int32](4)}})
		g := w.gateway("shared", "a.example.com")
		referToOwn(g)
		w.create(settings, g)
		Eventually(w.replicas).Should(BeEquivalentTo(4))
		least := w.leastReplicas(ctx)
		change(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector = &v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](2), MaxReplicas: ptr.To[int32](9)}}
		})
		Eventually(exists).WithArguments(named(w, &autoscalingv2.HorizontalPodAutoscaler{})).Should(BeTrue())

		By("scaling as an autoscaler does, with reconciles in between")
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
		Expect(kube.SubResource("scale").Update(ctx, w.deployment(), client.WithSubResourceBody(scale))).To(Succeed())
		change(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector.LogLevel = ptr.To(v1alpha1.LogLevelDebug)
		})
		Eventually(w.arguments).Should(ContainSubstring("--loglevel debug"))
		Expect(w.replicas()).To(BeEquivalentTo(7))
		w.stop()
		w.start()
		w.settle(ctx)
		Expect(w.replicas()).To(BeEquivalentTo(7))
		Expect(least()).To(BeEquivalentTo(4), "the number of replicas never drops")
	})
})
