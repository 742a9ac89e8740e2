package integration

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("while the Cloudflare API is unavailable", lifecycle, func() {
	It("the deletion of a Gateway completes", func() {
		env := newEnvironment()
		env.start()
		g := env.gateway("shared", "a.example.com")
		env.create(env.service("web"), g, env.route("web", "web", gatewayParent("shared")))
		tunnel := env.waitUntilServed(g).tunnel
		env.cloudflare.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		env.delete(g)
		Eventually(env.isGone).WithArguments(g).Should(BeTrue())

		By("deleting the tunnel when the Cloudflare API is available again")
		Expect(env.isLive(tunnel)).To(BeTrue())
		env.cloudflare.ClearFaults()
		Eventually(env.isLive).WithArguments(tunnel).Should(BeFalse())
		Eventually(env.isGone).WithArguments(g).Should(BeTrue())
	})

	It("the deletion of a Gateway's namespace completes", func(ctx SpecContext) {
		env := newEnvironment()
		env.start()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.namespace + "-team"}}
		g, service := env.gateway("shared", "a.example.com"), env.service("web")
		route := env.route("web", "web", gatewayParent("shared"))
		g.Namespace, service.Namespace, route.Namespace = namespace.Name, namespace.Name, namespace.Name
		env.create(namespace, g, service, route)
		tunnel := env.waitUntilServed(g).tunnel
		env.cloudflare.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		env.delete(namespace)
		// The namespace controller needs five seconds.
		Eventually(namespaceIsGone, 20*time.Second).WithArguments(ctx, namespace).Should(BeTrue())

		By("deleting the tunnel when the Cloudflare API is available again")
		Expect(env.isLive(tunnel)).To(BeTrue())
		env.cloudflare.ClearFaults()
		Eventually(env.isLive).WithArguments(tunnel).Should(BeFalse())
		Eventually(env.isGone).WithArguments(namespace).Should(BeTrue())
	})
})

// namespaceIsGone reports whether the namespace is deleted. It fails immediately if one
// of the controller's finalizers blocks the deletion.
func namespaceIsGone(ctx context.Context, namespace *corev1.Namespace) (bool, error) {
	err := kube.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if err != nil {
		return true, client.IgnoreNotFound(err)
	}
	for _, c := range namespace.Status.Conditions {
		if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue && strings.Contains(c.Message, "tunnelgateway.dev/") {
			return false, StopTrying(c.Message)
		}
	}
	return false, nil
}
