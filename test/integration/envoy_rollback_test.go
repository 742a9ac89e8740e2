package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// patchStatus changes the Tunnel's status as another controller version does, or as an
// administrator does with kubectl.
func (env *environment) patchStatus(g *gatewayv1.Gateway, status string) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":%s}`, status))
	Expect(kube.Status().Patch(context.Background(), env.tunnelObject(g), patch)).To(Succeed())
}

// future returns the fields in the Tunnel's status that this version does not know.
func (env *environment) future(g *gatewayv1.Gateway) []any {
	GinkgoHelper()
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tunnel"))
	Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(env.tunnelObject(g)), raw)).To(Succeed())
	var found []any
	for _, path := range [][]string{{"status", "future", "phase"}, {"status", "token", "future"}, {"status", "schemaVersion"}} {
		value, _, err := unstructured.NestedFieldNoCopy(raw.Object, path...)
		Expect(err).NotTo(HaveOccurred())
		found = append(found, value)
	}
	return found
}

var _ = Describe("with the data plane Envoy, a controller of an older version", envoyRollouts, func() {
	It("changes nothing that a newer version serves, and keeps its Envoys connected", func(ctx SpecContext) {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, route := env.serveWithEnvoy("*.example.com")
		env.waitUntilIdle(ctx)
		env.stop()
		// The version that runs next is the older one.
		env.patchStatus(g, `{"schemaVersion":1000,"future":{"phase":"Growing"},"token":{"future":"kept"}}`)
		before, address := env.deployment(), g.Status.Addresses
		env.cloudflare.ResetRequests()

		update(route, toService("two"))
		update(env.classSettings("envoy", v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector.Replicas = ptr.To[int32](3)
		})
		metrics := freeAddress()
		env.startWithEnvoy("--metrics-address=" + metrics)
		Eventually(programmed(g)).Should(Equal("False NewerVersion"))
		Eventually(env.tunnelCondition(g, "Ready")).Should(Equal("False NewerVersion"))
		connected := metricValue(metrics, "tunnel_gateway_connected_envoys", "gateway=shared")
		Eventually(connected).Should(BeEquivalentTo(2))
		Consistently(func(check Gomega) {
			check.Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))
			check.Expect(connected()).To(BeEquivalentTo(2))
		}, 5*time.Second, 200*time.Millisecond).Should(Succeed())
		Expect(env.cloudflare.Count("", "")).To(BeZero())
		Expect(env.deployment().Generation).To(Equal(before.Generation))
		Expect(env.future(g)).To(Equal([]any{"Growing", "kept", int64(1000)}))
		Expect(exists(g)).To(BeTrue())
		Expect(g.Status.Addresses).To(Equal(address))

		// An administrator stays on the older version.
		env.patchStatus(g, `{"schemaVersion":1}`)
		Eventually(env.visit).WithArguments("shared", "a.example.com", "/").Should(Equal("two"))
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		Eventually(func() int32 { return ptr.Deref(env.deployment().Spec.Replicas, 0) }).Should(BeEquivalentTo(3))
	})
})
