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
	It("the deletion of a Gateway completes immediately", func() {
		w := newWorld()
		w.start()
		g := w.gateway("shared", "a.example.com")
		w.create(w.service("web"), g, w.route("web", "web", toGateway("shared")))
		tunnel := w.served(g).tunnel
		w.edge.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		w.delete(g)
		Eventually(w.isGone, soonEnough).WithArguments(g).Should(BeTrue())

		By("deleting the tunnel when the Cloudflare API is available again")
		Expect(w.isLive(tunnel)).To(BeTrue())
		w.edge.ClearFaults()
		Eventually(w.isLive).WithArguments(tunnel).WithTimeout(90 * time.Second).Should(BeFalse())
		Eventually(w.isGone).WithArguments(g).Should(BeTrue())
	})

	It("the deletion of a Gateway's namespace completes within seconds", func(ctx SpecContext) {
		w := newWorld()
		w.start()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-team"}}
		g, service := w.gateway("shared", "a.example.com"), w.service("web")
		route := w.route("web", "web", toGateway("shared"))
		g.Namespace, service.Namespace, route.Namespace = namespace.Name, namespace.Name, namespace.Name
		w.create(namespace, g, service, route)
		tunnel := w.served(g).tunnel
		w.edge.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})
		w.delete(namespace)
		// The namespace controller needs five seconds.
		Eventually(namespaceIsGone, 20*time.Second).WithArguments(ctx, namespace).Should(BeTrue())

		By("deleting the tunnel when the Cloudflare API is available again")
		Expect(w.isLive(tunnel)).To(BeTrue())
		w.edge.ClearFaults()
		Eventually(w.isLive).WithArguments(tunnel).WithTimeout(90 * time.Second).Should(BeFalse())
		Eventually(w.isGone, time.Minute).WithArguments(namespace).Should(BeTrue())
	})
})

// namespaceIsGone reports whether the namespace is deleted. It fails immediately
// if a finalizer of the controller blocks the deletion.
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
