package integration

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/top"
)

// topUser returns a kubeconfig of a new user with the role for top, except the rules about
// the omitted resource.
func (env *environment) topUser(ctx context.Context, omitted string) (path, name string) {
	GinkgoHelper()
	name, err := createUserWith(ctx, kube, "commands.md", "tunnel-gateway-top", env.controllerNamespace, omitted)
	Expect(err).NotTo(HaveOccurred())
	path = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(impersonate(kubeconfig, name, path)).To(Succeed())
	return path, name
}

// connectors returns the connectors of the Gateway as the user of the kubeconfig reads them.
func (env *environment) connectors(kubeconfig string, gateway client.Object) *top.Connectors {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	connectors, err := top.NewConnectors(config, env.controllerNamespace, client.ObjectKeyFromObject(gateway))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(connectors.Close)
	return connectors
}

// requestsSince returns how many requests the connectors have counted since a reading, by
// the number of pods.
func requestsSince(ctx context.Context, connectors *top.Connectors, before top.Reading) func(Gomega) map[int]float64 {
	return func(g Gomega) map[int]float64 {
		after, err := connectors.Read(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		m := top.Compare(before, after, top.Options{By: top.ByGateway})
		g.Expect(m.Problems).To(BeEmpty())
		requests := 0.0
		for _, row := range m.Rows {
			requests += row.Requests
		}
		return map[int]float64{m.Connectors: requests}
	}
}

var _ = Describe("the command top", envoyRollouts, func() {
	It("counts requests exactly, with only the documented permissions", func(ctx SpecContext) {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, _ := env.serveWithEnvoy("*.example.com")
		Eventually(func() string { return env.tunnelObject(g).Status.Connectors.Summary }).Should(Equal("2/2"))
		path, user := env.topUser(ctx, "")

		By("adding up the connectors' requests")
		connectors := env.connectors(path, g)
		before, err := connectors.Read(ctx)
		Expect(err).NotTo(HaveOccurred())
		for range 23 {
			Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))
		}
		Eventually(requestsSince(ctx, connectors, before)).Should(Equal(map[int]float64{2: 23}))

		By("printing what Envoy counts by default")
		name := env.namespace + "/shared"
		flags := []string{"--kubeconfig", path, "--controller-namespace", env.controllerNamespace}
		printed := runCommand(append([]string{"top", name, "-o", "json"}, flags...)...)
		Expect(printed.status).To(BeZero(), printed.stderr)
		var measurement top.Measurement
		Expect(json.Unmarshal([]byte(printed.stdout), &measurement)).To(Succeed())
		Expect(measurement.By).To(Equal(top.ByGateway))
		Expect(measurement.Connectors).To(Equal(2))
		Expect(measurement.Rows).To(ConsistOf(HaveField("Gateway", name)))
		Expect(measurement.Problems).To(ConsistOf(HavePrefix("Gateway " + name + " has no metrics by route.")))

		By("printing one table after the other, until a signal")
		watch, err := gexec.Start(exec.Command(binary, append([]string{"top", name, "--by", "gateway"}, flags...)...), nil, nil)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watch.Kill)
		for range 2 {
			Eventually(watch.Out).Should(gbytes.Say(`2 connectors, [0-9.]+ requests/s in the last \d+ s\nGATEWAY +REQUESTS/S +ERRORS +P50 +P99\n` + name))
		}
		Eventually(watch.Interrupt()).Should(gexec.Exit(0))
		Expect(watch.Err.Contents()).NotTo(ContainSubstring("interrupted"))

		By("connecting by SPDY, without the permission for WebSocket")
		update(newObject(rbacAPI, "Role", env.controllerNamespace, user), func(role *unstructured.Unstructured) {
			rules := role.Object["rules"].([]any)
			rules[len(rules)-1].(map[string]any)["verbs"] = []any{"create"}
		})
		connectors = env.connectors(path, g)
		Eventually(func() error {
			before, err = connectors.Read(ctx)
			return err
		}).Should(Succeed())
		Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))
		Eventually(requestsSince(ctx, connectors, before)).Should(Equal(map[int]float64{2: 1}))
	})

	It("counts requests by route and backend", func(ctx SpecContext) {
		env := newEnvoyEnvironment()
		update(env.classSettings("envoy", v1alpha1.TunnelConfigurationSpec{}), func(c *v1alpha1.TunnelConfiguration) {
			c.Spec.Connector.Envoy = &v1alpha1.EnvoyProxy{Image: ptr.To(meteredEnvoyImage), Metrics: &v1alpha1.EnvoyMetrics{
				By: []v1alpha1.MetricsDimension{v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend}, AllowWorkInProgress: ptr.To(true),
			}}
		})
		env.startWithEnvoy()
		g, route := env.serveWithEnvoy("*.example.com")
		Eventually(func() string { return env.tunnelObject(g).Status.Connectors.Summary }).Should(Equal("2/2"))
		path, _ := env.topUser(ctx, "")
		connectors := env.connectors(path, g)
		before, err := connectors.Read(ctx)
		Expect(err).NotTo(HaveOccurred())
		uncounted := func(g Gomega) {
			after, err := connectors.Read(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			m := top.Compare(before, after, top.Options{By: top.ByBackend})
			before = after
			g.Expect(m.Problems).To(BeEmpty())
			g.Expect(m.RequestsPerSecond).To(BeZero())
		}
		// A visitor who gave up while the Gateway started can leave a request that ends late.
		Eventually(uncounted).WithPolling(500 * time.Millisecond).MustPassRepeatedly(4).Should(Succeed())
		gateway := client.ObjectKeyFromObject(g).String()
		counts := func(by top.By) func(Gomega) map[string]float64 {
			return func(g Gomega) map[string]float64 {
				after, err := connectors.Read(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				m := top.Compare(before, after, top.Options{By: by})
				found := map[string]float64{}
				for _, row := range m.Rows {
					g.Expect(row.Gateway).To(Equal(gateway))
					found[row.Name] = row.Requests
				}
				return found
			}
		}
		for range 9 {
			Expect(env.visit("shared", "a.example.com", "/")).To(Equal("one"))
		}
		for range 4 {
			Expect(env.visit("shared", "a.b.example.org", "/")).To(Equal("404"))
		}
		Eventually(counts(top.ByRoute)).Should(Equal(map[string]float64{"HTTPRoute " + client.ObjectKeyFromObject(route).String(): 9, top.Other: 4}))
		Expect(counts(top.ByBackend)(NewGomega(Fail))).To(Equal(map[string]float64{env.namespace + "/one:80": 9, top.Other: 4}))
		Expect(counts(top.ByHostname)(NewGomega(Fail))).To(Equal(map[string]float64{"*.example.com": 9, top.Other: 4}))
		Expect(counts(top.ByNamespace)(NewGomega(Fail))).To(Equal(map[string]float64{env.namespace: 9, top.Other: 4}))
	})

	It("names the missing permission", func(ctx SpecContext) {
		env := newEnvoyEnvironment()
		env.startWithEnvoy()
		g, _ := env.serveWithEnvoy("*.example.com")
		for _, resource := range []string{"pods", "pods/portforward"} {
			path, user := env.topUser(ctx, resource)
			got := runCommand("top", client.ObjectKeyFromObject(g).String(), "--once", "--kubeconfig", path, "--controller-namespace", env.controllerNamespace)
			Expect(got.status).To(Equal(1))
			Expect(got.stdout).To(BeEmpty())
			Expect(got.stderr).To(And(ContainSubstring(`User "`+user+`" cannot `), ContainSubstring(`resource "`+resource+`"`)))
		}
		path, _ := env.topUser(ctx, "")
		got := runCommand("top", types.NamespacedName{Namespace: env.namespace, Name: "other"}.String(), "--once", "--kubeconfig", path, "--controller-namespace", env.controllerNamespace)
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(ContainSubstring("no connector for Gateway " + env.namespace + "/other found in namespace " + env.controllerNamespace))
	})
})
