package integration

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

var _ = Describe("the readiness of the controller", func() {
	It("names watched resources without read access", func() {
		env := newEnvironment()
		role := latest(newObject(rbacAPI, "ClusterRole", "", cluster.ControllerNamespace))
		rules, _, err := unstructured.NestedSlice(role.Object, "rules")
		Expect(err).NotTo(HaveOccurred())
		limited := newObject(rbacAPI, "ClusterRole", "", env.namespace)
		limited.Object["rules"] = slices.DeleteFunc(slices.Clone(rules), func(rule any) bool {
			return slices.Contains(rule.(map[string]any)["resources"].([]any), any("services"))
		})
		Expect(limited.Object["rules"]).To(HaveLen(len(rules) - 1))
		binding := newObject(rbacAPI, "ClusterRoleBinding", "", env.namespace)
		binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": env.namespace}
		binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": env.namespace, "name": "limited"}}
		env.create(limited, binding, &corev1.ServiceAccount{ObjectMeta: env.objectMeta("limited")})
		admin, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		config := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		_, err = cluster.Identity(context.Background(), admin, env.namespace, "limited", config)
		Expect(err).NotTo(HaveOccurred())

		address := freeAddress()
		env.start("--kubeconfig="+config, "--health-address="+address)
		for _, kind := range []string{"services", "tunnels"} {
			reason := func() string { _, body := fetch(address, "/readyz/watch-"+kind); return body }
			Eventually(reason).Should(ContainSubstring(`cannot list resource "` + kind + `"`))
		}
		for _, kind := range []string{"httproutes", "gateways"} {
			Eventually(func() int { return getStatusCode("http://" + address + "/readyz/watch-" + kind) }).Should(Equal(http.StatusOK))
		}
		status, body := fetch(address, "/readyz")
		Expect(status).To(Equal(http.StatusInternalServerError))
		Expect(body).To(And(ContainSubstring("[-]watch-services failed"), ContainSubstring("[+]watch-gateways ok")))
		Expect(getStatusCode("http://" + address + "/healthz")).To(Equal(http.StatusOK))

		By("granting the missing permissions")
		tunnels := newObject(rbacAPI, "RoleBinding", env.controllerNamespace, "limited")
		tunnels.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": cluster.ControllerNamespace + "-tunnels"}
		tunnels.Object["subjects"] = binding.Object["subjects"]
		env.create(tunnels)
		update(newObject(rbacAPI, "ClusterRole", "", env.namespace), func(u *unstructured.Unstructured) { u.Object["rules"] = rules })
		Eventually(func() int { return getStatusCode("http://" + address + "/readyz") }).Should(Equal(http.StatusOK))
	})

	It("does not depend on leadership", func() {
		env := newEnvironment()
		env.startReplica()
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		address, metrics := freeAddress(), freeAddress()
		env.startReplica("--health-address="+address, "--metrics-address="+metrics)
		Eventually(func() int { return getStatusCode("http://" + address + "/readyz") }).Should(Equal(http.StatusOK))
		Expect(metricValue(metrics, "leader_election_master_status")()).To(BeZero())
	})
})
