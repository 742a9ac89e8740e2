package integration

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

var _ = Describe("under load, a data plane change", underLoad, func() {
	It("loses no request, and waits for an unschedulable pod", func(ctx SpecContext) {
		env := newFaultEnvironment(0, nil)
		env.changeClass(func(c *v1alpha1.TunnelConfigurationSpec) { c.DataPlane = ptr.To(v1alpha1.DataPlaneIngressRules) })
		env.serveLoad()
		Expect(env.dataPlane()).To(Equal("IngressRules, DataPlaneApplied True Applied"))
		env.waitUntilIdle(ctx)
		puts := env.puts()

		env.expectNothingLost("a pod cannot be scheduled during the change to Envoy", func() {
			env.cordon(true)
			env.changeDataPlane(v1alpha1.DataPlaneEnvoy)
			Eventually(env.changeMessage).Should(ContainSubstring("node(s) were unschedulable"))
			Consistently(env.dataPlane, 5*time.Second).Should(Equal("IngressRules to Envoy AddingEnvoy, DataPlaneApplied False DataPlaneChanging"))
			Expect(programmed(env.gateway)()).To(Equal("True Programmed"))
			Expect(dataPlaneReady(env.gateway)()).To(Equal("False Pending"))
		})
		Expect(env.puts()).To(Equal(puts), "writes of the configuration")

		env.expectNoneFailed("the data plane changes to Envoy", 2, func() {
			env.cordon(false)
			Eventually(env.dataPlane).Should(Equal("Envoy, DataPlaneApplied True Applied"))
			Eventually(env.rolledOut).Should(BeTrue())
		})
		Expect(env.puts()).To(Equal(puts+1), "writes of the configuration")
		Expect(env.hostnames("shared")).To(BeEmpty(), "only the rule that leads to Envoy")
		env.expectFollowed()

		env.expectNoneFailed("the data plane changes to ingress rules", 2, func() {
			env.changeDataPlane(v1alpha1.DataPlaneIngressRules)
			Eventually(env.dataPlane).Should(Equal("IngressRules, DataPlaneApplied True Applied"))
			Eventually(env.rolledOut).Should(BeTrue())
		})
		Expect(env.hostnames("shared")).To(ContainElement(loadHost))
		for _, pod := range env.readyPods() {
			Expect(pod.Spec.InitContainers).To(BeEmpty())
		}
		Expect(programmed(env.gateway)()).To(Equal("True Programmed"))
	})
})

func (env *faultEnvironment) changeDataPlane(to v1alpha1.DataPlane) {
	GinkgoHelper()
	env.changeClass(func(c *v1alpha1.TunnelConfigurationSpec) { c.DataPlane = ptr.To(to) })
}

// dataPlane returns the data plane in effect, the recorded change, and the Tunnel
// condition about them.
func (env *faultEnvironment) dataPlane() string {
	GinkgoHelper()
	t := env.tunnelObject(env.gateway)
	text := string(t.Status.DataPlane)
	if c := t.Status.DataPlaneChange; c != nil {
		text += " to " + string(c.To) + " " + string(c.Phase)
	}
	return text + ", DataPlaneApplied " + formatCondition(t.Status.Conditions, "DataPlaneApplied")
}

// changeMessage returns the message about the data plane change.
func (env *faultEnvironment) changeMessage() string {
	GinkgoHelper()
	return conditionMessage(env.tunnelObject(env.gateway).Status.Conditions, "DataPlaneApplied")
}

// puts counts writes to the tunnel's configuration.
func (env *faultEnvironment) puts() int {
	return env.cloudflare.Count(http.MethodPut, configurationPath)
}

// cordon makes the node accept no pods, or accept them again. The node runs the pods for
// all specs.
func (env *faultEnvironment) cordon(unschedulable bool) {
	GinkgoHelper()
	set := func(unschedulable bool) {
		update(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable })
	}
	set(unschedulable)
	if unschedulable {
		DeferCleanup(func() { set(false) })
	}
}
