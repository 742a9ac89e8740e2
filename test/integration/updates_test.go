package integration

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("the limit on configuration writes", slow, func() {
	const (
		burst    = 4
		interval = 5 * time.Second
		// Within 15 seconds, at most this many writes only revoke the route's previous
		// hostname. They belong to one namespace.
		revocations = 6
	)

	It("bounds writes for a flapping route and delays for other changes", func(ctx SpecContext) {
		env := newEnvironment()
		env.create(env.classSettings("defaults", v1alpha1.TunnelConfigurationSpec{
			Connector: &v1alpha1.Connector{Enabled: ptr.To(false)},
			Limits: &v1alpha1.Limits{
				ConfigurationUpdates:  &v1alpha1.ConfigurationUpdates{Burst: ptr.To[int32](burst), Interval: ptr.To(v1alpha1.Duration(interval.String()))},
				RulesPerTunnel:        ptr.To[int32](10000),
				ListenersPerNamespace: ptr.To[int32](1000),
			},
		}))
		env.useClassSettings("defaults")
		env.start()
		g, flapping := env.gateway("shared", "*.example.com"), env.route("flapping", "web", gatewayParent("shared"))
		env.create(env.service("web"), g, flapping)
		Eventually(programmed(g)).Should(Equal("True Programmed"))
		env.waitUntilIdle(ctx)
		env.cloudflare.ResetRequests()

		By("changing a route ten times per second")
		started, changes := time.Now(), 0
		Consistently(func() int {
			changes++
			changeHostname(flapping, fmt.Sprintf("flapping-%d.example.com", changes))
			return len(env.configurationWrites())
		}, 3*interval, 100*time.Millisecond).Should(BeNumerically("<=", burst+4+revocations))
		flapped := time.Since(started)
		Expect(len(env.configurationWrites())).To(And(BeNumerically(">=", burst), BeNumerically("<=", burst+int(flapped/interval)+revocations)))
		Expect(env.eventMessages(ctx, "shared", "ConfigurationThrottled")).To(ConsistOf(
			ContainSubstring(fmt.Sprintf("limits.configurationUpdates now delays each change by up to %s. Namespaces whose objects changed: %s (", interval, env.namespace))))

		By("creating many routes while the bucket is empty")
		const routes = 900
		env.createConcurrently(routes, func(i int) client.Object {
			route := env.route(fmt.Sprintf("r%03d", i), "web", gatewayParent("shared"))
			route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%03d.example.com", i))}
			return route
		})
		created := time.Now()
		Eventually(func() int { return len(env.hostnames("shared")) }).Should(Equal(routes + 1))
		writes := env.configurationWrites()
		before := len(slices.DeleteFunc(slices.Clone(writes), func(w simulator.Request) bool { return w.Time.After(created) }))
		Expect(len(writes)-before).To(BeNumerically("<=", 3), "the first write can begin before the controller has seen every route, after a revocation")
		Eventually(programmed(g)).Should(Equal("True Programmed"))

		By("changing a route after the bucket has refilled")
		Consistently(env.configurationWrites, burst*interval).Should(HaveLen(len(writes)))
		changed := time.Now()
		changeHostname(flapping, "last.example.com")
		Eventually(env.configurationWrites).Should(HaveLen(len(writes) + 1))
		Expect(env.configurationWrites()[len(writes)].Time).To(BeTemporally("<", changed.Add(interval/2)))
	})
})

func changeHostname(route *gatewayv1.HTTPRoute, hostname string) {
	GinkgoHelper()
	update(route, func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(hostname)} })
}

// configurationWrites returns the configuration writes since the last reset.
func (env *environment) configurationWrites() []simulator.Request {
	var writes []simulator.Request
	for _, r := range env.cloudflare.Requests() {
		if matched, _ := path.Match(configurationPath, r.Path); matched && r.Method == http.MethodPut {
			writes = append(writes, r)
		}
	}
	return writes
}
