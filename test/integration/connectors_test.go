package integration

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
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
	It("run as a restricted Deployment that the Tunnel owns", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		deployment := env.deployment()
		Expect(metav1.IsControlledBy(deployment, env.tunnelObject(g))).To(BeTrue())
		Expect(deployment.Labels).To(HaveKeyWithValue(gatewayv1.GatewayNameLabelKey, "shared"))
		Expect(deployment.Labels).To(HaveKeyWithValue("tunnelgateway.dev/gateway-namespace", env.namespace))
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
		Expect(env.readSecret(token.Name).Data).To(HaveKeyWithValue(token.Key, []byte(env.tunnelToken("shared"))))

		account, policy := connectorObject(env, &corev1.ServiceAccount{}), connectorObject(env, &networkingv1.NetworkPolicy{})
		Eventually(exists).WithArguments(account).Should(BeTrue())
		Eventually(exists).WithArguments(policy).Should(BeTrue())
		Expect(latest(policy).Spec.PodSelector.MatchLabels).To(Equal(deployment.Spec.Selector.MatchLabels))
		Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))
		Expect(policy.Spec.Ingress).To(BeEmpty(), "only the kubelet may connect")
	})

	It("admit the metricsFrom peers without a restart", func() {
		env := newEnvironment()
		env.start()
		env.create(env.gateway("shared", "a.example.com"))
		before := env.deployment().Generation
		policy := connectorObject(env, &networkingv1.NetworkPolicy{})
		Eventually(exists).WithArguments(policy).Should(BeTrue())

		prometheus := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "prometheus"}}
		settings := env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{
			MetricsFrom: []v1alpha1.MetricsPeer{{NamespaceSelector: &metav1.LabelSelector{}, PodSelector: prometheus}},
		}})
		env.create(settings)
		env.useClassSettings("defaults")
		ingress := func() []networkingv1.NetworkPolicyIngressRule { return latest(policy).Spec.Ingress }
		Eventually(ingress).Should(HaveLen(1))
		Expect(ingress()[0].From).To(HaveExactElements(networkingv1.NetworkPolicyPeer{
			NamespaceSelector: &metav1.LabelSelector{}, PodSelector: prometheus,
		}))

		update(settings, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Connector = nil })
		Eventually(ingress).Should(BeEmpty())
		Expect(env.deployment().Generation).To(Equal(before))
	})

	It("serve metrics only inside the pod with Loopback", func() {
		env := newEnvironment()
		env.start()
		env.create(env.gateway("shared", "a.example.com"))
		before := env.deployment()
		Expect(before.Spec.Template.Spec.Containers[0].Args).To(ContainElement(":2000"))

		settings := env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{Metrics: ptr.To(v1alpha1.MetricsLoopback)}})
		env.create(settings)
		env.useClassSettings("defaults")
		Eventually(func() int64 { return latest(before).Generation }).Should(BeNumerically(">", 1))
		c := env.deployment().Spec.Template.Spec.Containers[0]
		Expect(c.Args).To(ContainElement("127.0.0.1:2000"))
		Expect(c.Ports).To(BeEmpty())
		for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
			Expect(probe.HTTPGet).To(BeNil())
			Expect(probe.Exec.Command).To(HaveExactElements("cloudflared", "tunnel", "--metrics", "127.0.0.1:2000", "ready"))
		}

		update(settings, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Connector = nil })
		Eventually(func() corev1.Container { return env.deployment().Spec.Template.Spec.Containers[0] }).Should(HaveField("ReadinessProbe.HTTPGet.Path", "/ready"))
		Expect(env.deployment().Spec.Template.Spec.Containers[0].ReadinessProbe.Exec).To(BeNil())
	})

	It("are reported when ready, and do not delay Programmed", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(connectorsReady(g)).Should(Equal("False Unavailable"))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Expect(connectorsReady(g)()).To(Equal("False Unavailable"), "Programmed does not wait for the connectors")
		env.markPodsReady()
		Eventually(connectorsReady(g)).Should(Equal("True Ready"))
	})

	It("do not take over an object with the same name", slow, func(ctx SpecContext) {
		env := newEnvironment()
		unrelated := connectorObject(env, &corev1.ServiceAccount{})
		env.create(unrelated)
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(env.tunnelCondition(g, "ConnectorsReady")).Should(Equal("False ObjectTaken"))
		Eventually(env.eventMessages).WithArguments(ctx, "shared", "ObjectTaken").Should(ContainElement(ContainSubstring("does not belong to Tunnel")))
		Expect(latest(unrelated).OwnerReferences).To(BeEmpty())

		env.delete(unrelated) // the controller does not watch this object
		Eventually(connectorsReady(g)).Should(Equal("False Unavailable"))
	})

	It("have the permitted spec.infrastructure labels and annotations", func() {
		env := newEnvironment()
		env.start()
		env.create(env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{
			Autoscaling:             &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](1)},
			PodDisruptionBudget:     &v1alpha1.PodDisruptionBudget{MaxUnavailable: ptr.To(intstr.FromInt32(1))},
			AllowedMetadataPrefixes: []string{"example.com"},
		}}))
		env.useClassSettings("defaults")
		g := env.gateway("shared", "a.example.com")
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{}
		g.Spec.Infrastructure.Labels = map[gatewayv1.LabelKey]gatewayv1.LabelValue{"example.com/team": "shop", "other.example/team": "no", "plain": "no"}
		g.Spec.Infrastructure.Annotations = map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{"example.com/cost-centre": "4711"}
		env.create(g)
		Eventually(env.pods).WithArguments("shared").ShouldNot(BeEmpty())
		objects := env.connectorObjects()
		for _, pod := range env.pods("shared") {
			objects = append(objects, &pod)
		}
		for _, object := range objects {
			Eventually(exists).WithArguments(object).Should(BeTrue(), "%T", object)
			Expect(object.GetLabels()).To(HaveKeyWithValue("example.com/team", "shop"), "%T", object)
			Expect(object.GetLabels()).To(HaveKeyWithValue(gatewayv1.GatewayNameLabelKey, "shared"), "%T", object)
			Expect(object.GetLabels()).NotTo(Or(HaveKey("plain"), HaveKey("other.example/team")), "%T", object)
			Expect(object.GetAnnotations()).To(HaveKeyWithValue("example.com/cost-centre", "4711"), "%T", object)
		}
		Expect(env.tokenSecret("shared").Labels).NotTo(HaveKey("example.com/team"), "other controllers may react to labels and annotations of a Secret")

		By("changing a label of spec.infrastructure")
		update(g, func(g *gatewayv1.Gateway) { g.Spec.Infrastructure.Labels["example.com/team"] = "till" })
		for _, object := range env.connectorObjects() {
			Eventually(func() map[string]string { return latest(object).GetLabels() }).Should(HaveKeyWithValue("example.com/team", "till"), "%T", object)
		}
	})

	It("are removed when they are disabled, and the tunnel continues to serve", func() {
		env := newEnvironment()
		env.start()
		env.allowGatewayFields("connector.enabled")
		settings := env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{})
		g := env.gateway("shared", "a.example.com")
		useOwnSettings(g)
		env.create(settings, env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		Eventually(connectorsReady(g)).Should(Equal("False Unavailable"))
		update(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)}
		})
		Eventually(env.remainingObjects).WithArguments("shared").Should(HaveExactElements(HavePrefix("Secret ")), "users who run their own cloudflared need the token")
		Eventually(connectorsReady(g)).Should(Equal("none"))
		Expect(programmed(g)()).To(Equal("True Programmed"))
		Expect(env.get("shared", "a.example.com", "/")).To(Equal("web"))
	})

	It("do not restart when a route changes, except for the first GRPCRoute", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "*.example.com")
		env.create(env.service("web"), g)
		before := env.deployment().Generation
		Expect(env.connectorArguments()).To(ContainSubstring("--protocol auto"))
		route := env.route("web", "web", gatewayParent("shared"))
		env.create(route)
		Eventually(env.get).WithArguments("shared", "a.example.com", "/").Should(Equal("web"))
		update(route, func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames = []gatewayv1.Hostname{"b.example.com"} })
		Eventually(env.hostnames).WithArguments("shared").Should(ConsistOf("b.example.com"))
		env.waitUntilIdle(ctx)
		Expect(env.deployment().Generation).To(Equal(before))

		By("switching to HTTP/2 for the first GRPCRoute")
		first := env.grpcRoute("first")
		env.create(first)
		Eventually(env.connectorArguments).Should(ContainSubstring("--protocol http2"))
		Eventually(env.eventMessages).WithArguments(ctx, "shared", "ConnectorProtocol").Should(ContainElement(ContainSubstring("GRPCRoute")))

		By("deleting all GRPCRoutes and restarting the controller")
		env.create(env.grpcRoute("second"))
		env.delete(first, env.grpcRoute("second"))
		Eventually(env.hostnames).WithArguments("shared").Should(ConsistOf("b.example.com"))
		env.stop()
		env.start()
		env.waitUntilIdle(ctx)
		Expect(env.connectorArguments()).To(ContainSubstring("--protocol http2"))
		Expect(env.deployment().Generation).To(Equal(before + 1))
		Expect(env.eventMessages(ctx, "shared", "ConnectorProtocol")).To(HaveLen(1))
	})

	It("lose an Envoy to which a user has rolled back", func() {
		env := newEnvironment()
		env.start()
		env.create(env.gateway("shared", "a.example.com"))
		update(env.deployment(), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.InitContainers = []corev1.Container{{
				Name: "envoy", Image: "envoyproxy/envoy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
			}}
		})
		containers := func() []corev1.Container { return env.deployment().Spec.Template.Spec.InitContainers }
		Eventually(containers).Should(BeEmpty())
	})

	It("are replaced once when the tunnel's token is rotated", slow, func(ctx SpecContext) {
		env := newEnvironment()
		env.start("--inventory-interval=10s")
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		before := env.deployment()
		Eventually(func() string {
			env.markPodsReady() // the pods are created after the Deployment
			return connectorsReady(g)()
		}).Should(Equal("True Ready"))
		previous := env.tunnelToken("shared")
		env.cloudflare.RotateToken(env.tunnel("shared"))
		env.cloudflare.Connect(env.tunnel("shared"), 1)
		env.cloudflare.Disconnect(env.tunnel("shared"))
		version := func() string {
			return env.deployment().Spec.Template.Annotations[connector.TokenVersionAnnotation]
		}
		Eventually(version).ShouldNot(Equal(before.Spec.Template.Annotations[connector.TokenVersionAnnotation]))
		Expect(env.tunnelToken("shared")).NotTo(Equal(previous))

		By("waiting until all pods are replaced and for two more tunnel lists")
		Eventually(func() string {
			env.markPodsReady()
			return connectorsReady(g)()
		}).Should(Equal("True Ready"))
		Eventually(func(g Gomega) {
			env.markPodsReady()
			for _, pod := range env.pods("shared") {
				g.Expect(pod.Annotations).To(HaveKeyWithValue(connector.TokenVersionAnnotation, version()))
			}
		}).Should(Succeed())
		lists := env.cloudflare.Count(http.MethodGet, tunnelsPath)
		Eventually(env.cloudflare.Count).WithArguments(http.MethodGet, tunnelsPath).Should(BeNumerically(">", lists+1))
		env.waitUntilIdle(ctx)
		Expect(env.deployment().Generation).To(Equal(before.Generation + 1))
	})

	It("leave the number of replicas to an autoscaler", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		env.allowGatewayFields("connector.replicas", "connector.autoscaling", "connector.logLevel")
		settings := env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{Replicas: ptr.To[int32](4)}})
		g := env.gateway("shared", "a.example.com")
		useOwnSettings(g)
		env.create(settings, g)
		Eventually(env.connectorReplicas).Should(BeEquivalentTo(4))
		minimum := env.watchMinReplicas(ctx)
		update(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector = &v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](2), MaxReplicas: ptr.To[int32](9)}}
		})
		Eventually(exists).WithArguments(connectorObject(env, &autoscalingv2.HorizontalPodAutoscaler{})).Should(BeTrue())

		By("scaling as an autoscaler does, with reconciles in between")
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
		Expect(kube.SubResource("scale").Update(ctx, env.deployment(), client.WithSubResourceBody(scale))).To(Succeed())
		update(settings, func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector.LogLevel = ptr.To(v1alpha1.LogLevelDebug)
		})
		Eventually(env.connectorArguments).Should(ContainSubstring("--loglevel debug"))
		Expect(env.connectorReplicas()).To(BeEquivalentTo(7))
		env.stop()
		env.start()
		env.waitUntilIdle(ctx)
		Expect(env.connectorReplicas()).To(BeEquivalentTo(7))
		Expect(minimum()).To(BeEquivalentTo(4), "the number of replicas never drops")

		By("replacing the autoscaler by an external one")
		update(env.classSettings(permissionsName, v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector = &v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{Autoscaler: ptr.To(v1alpha1.AutoscalerExternal)}}
		})
		Eventually(exists).WithArguments(connectorObject(env, &autoscalingv2.HorizontalPodAutoscaler{})).Should(BeFalse())
		scale = &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
		Expect(kube.SubResource("scale").Update(ctx, env.deployment(), client.WithSubResourceBody(scale))).To(Succeed())
		env.waitUntilIdle(ctx)
		Expect(env.connectorReplicas()).To(BeEquivalentTo(3))
	})
})
