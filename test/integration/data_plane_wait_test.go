package integration

import (
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

var _ = Describe("the commands wait and plan", envoyRollouts, func() {
	It("follow data plane changes with the documented permissions", func(ctx SpecContext) {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, _ := env.serveWithEnvoy("*.example.com")
		user, err := createUser(ctx, kube, "commands.md", env.controllerNamespace, "")
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(impersonate(kubeconfig, user, path)).To(Succeed())
		name := env.namespace + "/shared"
		wait := func(flags ...string) *gexec.Session {
			GinkgoHelper()
			return env.operate(append([]string{"wait", name, "--kubeconfig", path}, flags...)...)
		}
		change := func(to v1alpha1.DataPlane) {
			GinkgoHelper()
			update(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: env.className}}, func(class *gatewayv1.GatewayClass) {
				metav1.SetMetaDataAnnotation(&class.ObjectMeta, v1alpha1.DataPlaneAnnotation, string(to))
			})
		}
		served := func(by string, session *gexec.Session) {
			GinkgoHelper()
			Eventually(session).Should(gexec.Exit(0), func() string { return string(session.Err.Contents()) })
			Expect(string(session.Out.Contents())).To(Equal("Gateway " + name + " is served by " + by + ": the configuration is in effect, connectors ready: 2/2\n"))
		}
		plan := func() string {
			GinkgoHelper()
			result := runCommand("plan", "--kubeconfig", kubeconfig, "--controller-name", env.controllerName, "--controller-namespace", env.controllerNamespace, "--gateway", name)
			Expect(result.status).To(BeZero(), result.stderr)
			return result.stdout
		}

		By("waiting for a Gateway whose data plane does not change")
		Eventually(func() string { return env.tunnelObject(g).Status.Connectors.Summary }).Should(Equal("2/2"))
		served("Envoy", wait())

		By("waiting immediately after the settings leave the data plane to the annotation of the GatewayClass")
		change(v1alpha1.DataPlaneIngressRules) // has no effect yet
		update(env.classSettings("envoy", v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.DataPlane, c.Spec.Connector.GracePeriod = nil, ptr.To(v1alpha1.Duration("1s"))
		})
		start := time.Now()
		served("ingress rules", wait())
		AddReportEntry(fmt.Sprintf("measured: ingress rules serve the Gateway %s after the settings changed", time.Since(start)))
		Expect(env.tunnelObject(g).Status.DataPlane).To(Equal(v1alpha1.DataPlaneIngressRules))
		Expect(env.tunnelObject(g).Status.DataPlaneChange).To(BeNil())
		Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))

		By("waiting while an unmanaged connector is connected")
		env.cloudflare.Connect(env.tunnel("shared"), 1)
		change(v1alpha1.DataPlaneEnvoy)
		blocked := wait()
		Eventually(blocked).Should(gexec.Exit(1))
		Expect(blocked.Err).To(gbytes.Say("changing the data plane to Envoy, phase AddingEnvoy: Connectors that this controller does not run are connected"))
		Expect(plan()).To(ContainSubstring("\nSettings: data plane IngressRules (changing to Envoy, phase AddingEnvoy), "))
		Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))

		By("reconciling after the connector was stopped")
		env.cloudflare.Disconnect(env.tunnel("shared"))
		reconcile := env.operate("reconcile", name, "--kubeconfig", path)
		Eventually(reconcile).Should(gexec.Exit(0), func() string { return string(reconcile.Err.Contents()) })
		served("Envoy", wait())
		Expect(env.tunnelObject(g).Status.DataPlane).To(Equal(v1alpha1.DataPlaneEnvoy))
		Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))

		By("waiting for a controller that does not run")
		env.stop()
		change(v1alpha1.DataPlaneIngressRules)
		Expect(plan()).To(ContainSubstring("\nSettings: data plane Envoy (changes to IngressRules), "))
		late := wait("--timeout", "2s")
		Eventually(late).Should(gexec.Exit(1))
		Expect(string(late.Err.Contents())).To(HaveSuffix("tunnel-gateway: Gateway " + name + ": timed out after 2s: the controller has not begun to change the data plane to IngressRules yet\n"))
	})
})
