package integration

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const adminHost, openHost = "admin.example.com", "open.example.com"

// forEmployees is an entry that requires the employees' policy.
func forEmployees(hostname string) v1alpha1.ListenerConfiguration {
	return v1alpha1.ListenerConfiguration{
		ProtocolPort: v1alpha1.EveryPort, Hostname: hostname, Access: &v1alpha1.Access{Required: true, Policies: []v1alpha1.PolicyName{"employees"}},
	}
}

// domains returns the hostnames of the account's applications, sorted.
func (env *accessEnvironment) domains() []string {
	domains := []string{}
	for _, app := range env.applications.Applications(accessAccount) {
		domains = append(domains, app.Domains...)
	}
	slices.Sort(domains)
	return domains
}

var _ = Describe("An application of Cloudflare Access", func() {
	It("outlasts an AccessPolicy that is deleted and created again under load", slow, func() {
		env := newAccessEnvironment(func(s *v1alpha1.TunnelConfigurationSpec) { s.Access.OpeningDelay = ptr.To(v1alpha1.Duration("15s")) })
		env.start()
		env.serve(adminHost, openHost)
		policy := env.policy("admin", "l0", "employees")
		env.protect(policy)
		Eventually(env.behind).WithArguments(adminHost).Should(Equal(http.StatusForbidden))
		before := env.application()

		edge, connector := env.keepAsking(func() int { return env.ask(adminHost) }), env.keepAsking(func() int { return env.behind(adminHost) })
		admitted := func() []int64 { return []int64{edge.admitted.Load(), connector.admitted.Load()} }
		const withoutToken = "requests without a token that reached the backend, by the edge and by the connector"
		env.delete(policy)
		Consistently(admitted).WithTimeout(10*time.Second).Should(HaveEach(BeZero()), withoutToken) // within openingDelay
		again := env.policy("admin", "l0", "employees")
		env.protect(again)
		Consistently(admitted).WithTimeout(7*time.Second).Should(HaveEach(BeZero()), withoutToken) // longer than what was left of it
		for _, counted := range []*counted{edge, connector} {
			Expect(counted.all.Load()).To(BeNumerically(">", 100))
		}
		Expect(env.application().AUD).To(Equal(before.AUD))
		Expect(env.application().Revocations).To(Equal(before.Revocations))

		By("deleting the AccessPolicy for good")
		protected := env.keepAsking(func() int {
			status := env.ask(adminHost)
			if _, ok := env.applications.Covering(accessAccount, adminHost, "/"); !ok {
				return http.StatusFound // the application has ended, perhaps during the request
			}
			return status
		})
		env.delete(again)
		Eventually(env.ask).WithTimeout(time.Minute).WithArguments(adminHost).Should(Equal(http.StatusOK))
		Expect(protected.admitted.Load()).To(BeZero(), "requests that got through the edge before the application's end")
		Expect(env.domains()).To(BeEmpty())
	})

	It("is missing only for demanded hostnames if the token lacks the permission", func() {
		env := newAccessEnvironment(func(s *v1alpha1.TunnelConfigurationSpec) {
			s.ListenerConfigurations = []v1alpha1.ListenerConfiguration{forEmployees(adminHost)}
		})
		env.cloudflare.Restrict("token", simulator.Grant{Permissions: []simulator.Permission{simulator.TunnelEdit}})
		env.start()
		g := env.serve(adminHost, openHost)
		Eventually(gatewayCondition(g, accessReady)).Should(Equal("False Forbidden"))
		Expect(conditionMessage(latest(g).Status.Conditions, accessReady)).To(ContainSubstring(adminHost))
		Expect(env.behind(adminHost)).To(Equal(http.StatusForbidden))
		Expect(env.ask(openHost)).To(Equal(http.StatusOK))

		By("granting the permission")
		env.cloudflare.Restrict("token", simulator.Grant{Permissions: []simulator.Permission{simulator.TunnelEdit, simulator.AccessEdit}})
		env.stop()
		env.start()
		Eventually(gatewayCondition(g, accessReady)).Should(Equal("True Protected"))
		Expect(env.domains()).To(Equal([]string{adminHost}))
	})

	It("is not changed by a backup restored in another cluster", func(ctx SpecContext) {
		env := newAccessEnvironment()
		env.start()
		g := env.serve(adminHost, openHost)
		env.protect(env.policy("admin", "l0", "employees"))
		env.waitUntilIdle(ctx)
		env.stop() // so that all further requests come from the other cluster
		before := env.applications.Applications(accessAccount)
		Expect(before).To(HaveLen(1))

		object := env.tunnelObject(g)
		copied := env.restore(ctx, restoredKind{projectAPI, "AccessPolicy", env.namespace})
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.namespace}}
		Expect(updateAs(copied.client, namespace, func(n *corev1.Namespace) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, "tunnelgateway.dev/hostnames", "*.example.com")
		})).To(Succeed())
		env.cloudflare.ResetRequests()
		env.start("--kubeconfig=" + copied.identity)
		Eventually(copied.tunnelReady).WithArguments(ctx, object).Should(Equal("False OtherCluster"))

		By("deleting the restored Tunnel, so that the restored Gateway gets a tunnel of its own")
		Expect(copied.client.Delete(ctx, object)).To(Succeed())
		Eventually(copied.gatewayCondition).WithArguments(ctx, g, accessReady).Should(Equal("False ApplicationExists"))
		Consistently(env.applications.Applications).WithTimeout(3 * time.Second).WithArguments(accessAccount).Should(Equal(before))

		By("deleting the restored Gateway")
		Expect(copied.client.Delete(ctx, g)).To(Succeed())
		Consistently(env.applications.Applications).WithTimeout(3 * time.Second).WithArguments(accessAccount).Should(Equal(before))
		for request := range env.accessRequests() {
			Expect(request).To(HavePrefix("GET "))
		}
	})

	// With 10 and 20 hostnames, as many as make test can afford.
	It("protects many hostnames with few writes of the tunnel's configuration", slow, func(ctx SpecContext) {
		env := newAccessEnvironment(func(s *v1alpha1.TunnelConfigurationSpec) {
			s.Limits = &v1alpha1.Limits{RulesPerTunnel: ptr.To[int32](2000), ListenersPerNamespace: ptr.To[int32](400)}
		})
		env.start()
		env.protectMany(ctx, 10, 20)
	})
})

// protectMany serves hostnames of the Gateway and of ListenerSets, demands applications for
// all of them at once, and compares what that costs if each request for applications takes 300 ms.
func (env *accessEnvironment) protectMany(ctx context.Context, ofGateway, ofSets int) {
	GinkgoHelper()
	var hosts []string
	for i := range ofGateway {
		hosts = append(hosts, fmt.Sprintf("h%d.g.example.com", i))
	}
	g := env.serve(hosts...)
	env.permit(env.namespace, "*.example.com")
	hosts = append(hosts, env.serveInSets(ofSets)...)
	Eventually(func() (open int) {
		for _, host := range hosts {
			if env.ask(host) == http.StatusOK {
				open++
			}
		}
		return open
	}).WithTimeout(time.Minute).Should(Equal(len(hosts)))
	env.waitUntilIdle(ctx)
	env.cloudflare.ResetRequests()
	for _, pattern := range []string{"/accounts/*/access/apps", "/accounts/*/access/apps/*", "/accounts/*/access/tags"} {
		env.cloudflare.Inject(simulator.Fault{Path: pattern, Latency: 300 * time.Millisecond})
	}
	var forbidden atomic.Int64
	asked := env.keepAsking(func() int {
		for _, host := range hosts {
			if env.ask(host) == http.StatusForbidden {
				forbidden.Add(1)
			}
		}
		return http.StatusOK
	})

	start := time.Now()
	env.create(env.gatewaySettings("own", v1alpha1.TunnelConfigurationSpec{ListenerConfigurations: []v1alpha1.ListenerConfiguration{forEmployees("*.g.example.com")}}))
	update(g, useOwnSettings)
	settings := &v1alpha1.TunnelConfiguration{}
	settings.Namespace, settings.Name = env.controllerNamespace, "access"
	update(settings, func(s *v1alpha1.TunnelConfiguration) {
		s.Spec.ListenerConfigurations = []v1alpha1.ListenerConfiguration{forEmployees("*.c.example.com")}
	})
	Eventually(gatewayCondition(g, accessReady)).WithTimeout(5 * time.Minute).Should(Equal("True Protected"))
	took := time.Since(start)
	Expect(env.domains()).To(HaveLen(len(hosts)))
	Expect(env.behind(hosts[0])).To(Equal(http.StatusForbidden))
	writes := env.sparseWrites(start)
	Expect(asked.all.Load()).To(BeNumerically(">", 0))
	Expect(forbidden.Load()).To(BeZero(), "requests for hostnames that were open got 403")
	AddReportEntry(fmt.Sprintf("measured: %d hostnames were protected after %s, with writes of the configuration after %s and these requests: %v",
		len(hosts), took.Round(time.Millisecond), strings.Join(writes, ", "), env.accessRequests()))
}

// serveInSets serves hostnames of ListenerSets, which it returns.
func (env *accessEnvironment) serveInSets(count int) (hosts []string) {
	GinkgoHelper()
	const perSet = 50
	for first := 0; first < count; first += perSet {
		name := fmt.Sprintf("set%d", first)
		set := env.listenerSet(name, "")
		set.Spec.Listeners = nil
		for i := first; i < min(count, first+perSet); i++ {
			host := fmt.Sprintf("h%d.c.example.com", i)
			hosts = append(hosts, host)
			set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry{
				Name: gatewayv1.SectionName(fmt.Sprintf("l%d", i)), Hostname: ptr.To(gatewayv1.Hostname(host)), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
			})
		}
		env.create(set, env.route(name, "web", listenerSetParent(name)))
	}
	return hosts
}

// sparseWrites expects about 10 s or more between the writes of tunnels' configurations, and
// returns after which times since the start they were.
func (env *accessEnvironment) sparseWrites(start time.Time) (writes []string) {
	GinkgoHelper()
	last := time.Time{}
	for _, r := range env.cloudflare.Requests() {
		if matches, _ := path.Match(configurationPath, r.Path); !matches || r.Method != http.MethodPut {
			continue
		}
		writes = append(writes, r.Time.Sub(start).Round(100*time.Millisecond).String())
		Expect(last.IsZero() || r.Time.Sub(last) >= 9900*time.Millisecond).To(BeTrue(), "writes after %v", writes)
		last = r.Time
	}
	return writes
}

// counted counts requests without a token, and the requests that reached the backend.
type counted struct{ all, admitted atomic.Int64 }

// keepAsking sends requests until the spec ends.
func (env *accessEnvironment) keepAsking(ask func() int) *counted {
	c, done, ended := &counted{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				c.all.Add(1)
				if ask() == http.StatusOK {
					c.admitted.Add(1)
				}
			}
		}
	}()
	DeferCleanup(func() {
		close(done)
		<-ended
	})
	return c
}
