package integration

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// edgeLag is the time in which Cloudflare's edge notices a connector, as its maintainers say.
const edgeLag = 10 * time.Second

// lateLag returns the lag of an edge that notices a new connector as late as it can, and
// the end of a connector after a random delay.
func lateLag() simulator.Lag {
	return simulator.Lag{Connected: edgeLag, Unregistered: rand.N(edgeLag)} // #nosec G404 -- a test
}

// newRolloutEnvironment is like newFaultEnvironment, with ingress rules, the default
// connector settings, and an edge with the lag of lateLag. Its load has no WebSockets,
// with which stopping connectors would serve until their grace period ends.
func newRolloutEnvironment(number int) *faultEnvironment {
	GinkgoHelper()
	env := newFaultEnvironment(number, lateLag)
	env.connections = 0
	env.changeClass(func(c *v1alpha1.TunnelConfigurationSpec) {
		c.DataPlane = ptr.To(v1alpha1.DataPlaneIngressRules)
		c.Connector.GracePeriod = nil
	})
	return env
}

// expectReplaced replaces the pods and expects that no request fails until they have ended and
// others are ready.
func (env *faultEnvironment) expectReplaced(name string, pods []corev1.Pod, replace func()) {
	GinkgoHelper()
	isReplaced := func(running corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == running.UID })
	}
	env.expectNothingLost(name, func() {
		replace()
		Eventually(func() bool { return !slices.ContainsFunc(env.connectorPods(), isReplaced) && env.rolledOut() }).Should(BeTrue())
	})
}

// replaceConnectors rolls the connectors out.
func replaceConnectors(_ context.Context, env *faultEnvironment) {
	env.expectReplaced("with a lag, a rollout", env.connectorPods(), func() {
		env.changeClass(func(c *v1alpha1.TunnelConfigurationSpec) {
			c.Connector.PodAnnotations = map[string]v1alpha1.AnnotationValue{"example.com/rollout": "1"}
		})
	})
}

func rotateToken(_ context.Context, env *faultEnvironment) {
	env.expectReplaced("with a lag, a rotation of the token", env.connectorPods(), func() {
		update(env.tunnelObject(env.gateway), func(t *v1alpha1.Tunnel) {
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1alpha1.RotateTokenAnnotation, "1")
		})
		Eventually(func() string {
			token := env.tunnelObject(env.gateway).Status.Token
			return token.Requested + string(token.Phase)
		}).Should(Equal("1"), "the rotation has ended")
	})
}

// evictConnectors evicts a connector, drains the node, and removes a connector.
func evictConnectors(ctx context.Context, env *faultEnvironment) {
	evict := func(pods []corev1.Pod) func() {
		return func() { runConcurrently(pods, func(pod corev1.Pod) { env.evict(ctx, pod) }) }
	}
	one := env.connectorPods()[:1]
	env.expectReplaced("with a lag, an eviction", one, evict(one))
	all := env.connectorPods()
	env.expectReplaced("with a lag, the drain of a node", all, evict(all))
	env.expectNothingLost("with a lag, scaling down", func() {
		env.changeClass(func(c *v1alpha1.TunnelConfigurationSpec) { c.Connector.Replicas = ptr.To[int32](1) })
		Eventually(env.connectorPods).Should(HaveLen(1))
	})
}

// evict evicts the pod as a drain does: it tries again until the PodDisruptionBudget permits it.
func (env *faultEnvironment) evict(ctx context.Context, pod corev1.Pod) {
	GinkgoHelper()
	Eventually(func() error {
		return kube.SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{})
	}).Should(Succeed())
}

// changeDataPlanes changes the data plane to Envoy and back.
func changeDataPlanes(_ context.Context, env *faultEnvironment) {
	for _, to := range []v1alpha1.DataPlane{v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneIngressRules} {
		env.expectReplaced("with a lag, a data plane change to "+string(to), env.connectorPods(), func() {
			env.changeDataPlane(to)
			Eventually(env.dataPlane).Should(Equal(string(to) + ", DataPlaneApplied True Applied"))
		})
	}
}
