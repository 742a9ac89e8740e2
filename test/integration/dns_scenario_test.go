package integration

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// recordScenario is an environment with Gateways whose records change.
type recordScenario struct {
	*dnsEnvironment
	external           []string // records of others
	certificate        *corev1.Secret
	shared, old, other *gatewayv1.Gateway
	secure             *gatewayv1.ListenerSet
	wildcards          string // ID of the zone wild.test
}

func newRecordScenario() *recordScenario {
	GinkgoHelper()
	s := &recordScenario{
		dnsEnvironment: newDNSEnvironment(), external: []string{"taken.example.com A 192.0.2.1", `text.example.com TXT "note"`},
	}
	s.addRecord("taken.example.com", "A", "192.0.2.1")
	s.addRecord("text.example.com", "TXT", "note")
	s.wildcards = s.addZone(zones.Zone{Name: "wild.test"})
	s.certificate = s.tlsSecret("cert")
	s.secure = s.listenerSet("secure", "secure.example.com")
	listener := &s.secure.Spec.Listeners[0]
	listener.Port, listener.Protocol = 443, gatewayv1.HTTPSProtocolType
	listener.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "cert"}}}
	s.create(s.certificate)
	s.start()
	return s
}

// publish creates the Gateways and waits for their records.
func (s *recordScenario) publish() {
	GinkgoHelper()
	By("publishing the hostnames of three Gateways")
	s.shared = s.serve("shared", "one.example.com", "two.example.com", "taken.example.com")
	s.old = s.serve("old", "old.example.com", "handed.example.com")
	wild := s.serve("wild", "*.wild.test")
	s.create(s.secure, s.route("secure", "web", listenerSetParent("secure")))
	expectSoon(func(g Gomega) {
		g.Expect(s.records()).To(ConsistOf(slices.Concat(s.external, []string{
			s.cname("one.example.com", "shared"), s.cname("two.example.com", "shared"), s.cname("secure.example.com", "shared"),
			s.cname("old.example.com", "old"), s.cname("handed.example.com", "old"),
		})))
	})
	Eventually(dnsCondition(s.old)).Should(Equal(published))
	Eventually(dnsCondition(wild)).Should(Equal(published))
	Eventually(listenerSetCondition(s.secure, dnsReady)).Should(Equal(published))
	Eventually(dnsCondition(s.shared)).Should(Equal("False RecordConflict"))
	Expect(conditionMessage(latest(s.shared).Status.Conditions, dnsReady)).To(And(
		ContainSubstring("taken.example.com: "), ContainSubstring("Adopt it, delete it, or exclude the hostname."),
		Not(ContainSubstring("192.0.2.1")), Not(ContainSubstring("one.example.com"))))
	Expect(programmed(s.shared)()).To(Equal("True Programmed"))
	hosts := []string{"one.example.com", "two.example.com", "secure.example.com", "old.example.com"}
	for _, host := range hosts {
		Expect(s.request(host)).To(Equal("web"), host)
	}
	s.expectMarks(hosts...)
}

// restart restarts the controller, which must not change a record.
func (s *recordScenario) restart(ctx context.Context) {
	GinkgoHelper()
	By("restarting")
	s.waitUntilIdle(ctx)
	s.stop()
	before := s.database.Records(s.zone)
	s.cloudflare.ResetRequests()
	s.start()
	Eventually(s.zoneRequests).ShouldNot(BeEmpty())
	s.waitUntilIdle(ctx)
	Expect(s.zoneWrites()).To(BeZero())
	Expect(s.database.Records(s.zone)).To(Equal(before))
}

// recordChange is what change leaves for expectChanged.
type recordChange struct {
	id        string   // of the record of one.example.com
	atRemoval []string // the records in example.com when the tunnel of the Gateway "old" was deleted
	lookups   func()   // fails unless a.b.wild.test always resolved
	team      *gatewayv1.Gateway
}

// change serves hostnames with further Gateways, and deletes routes, a Gateway and a certificate.
func (s *recordScenario) change() *recordChange {
	GinkgoHelper()
	By("serving hostnames that other Gateways have")
	c := &recordChange{id: s.recordID("one.example.com")}
	s.other = s.serve("other", "one.example.com")
	c.team = s.serveTeam("handed.example.com")
	covered := s.route("covered", "web", gatewayParent("wild"))
	covered.Spec.Hostnames = []gatewayv1.Hostname{"a.b.wild.test"}
	s.create(covered)
	Eventually(s.hostnames).WithArguments("wild").Should(ContainElement("a.b.wild.test"))
	Eventually(dnsCondition(s.other)).Should(Equal("False HeldByAnotherGateway"))
	Eventually(dnsCondition(c.team)).Should(Equal("False HeldByAnotherGateway"))
	Expect(s.records()).To(ContainElements(s.cname("one.example.com", "shared"), s.cname("handed.example.com", "old")))
	Expect(s.recordsIn(s.wildcards)).To(ConsistOf(s.cname("*.wild.test", "wild")))

	By("ending the wildcard for a hostname, and deleting two routes, a Gateway and a certificate")
	s.delay.Store(int64(2 * time.Second))
	c.lookups = s.keepLookingUp("a.b.wild.test", s.tunnel("wild"))
	s.serve("blocker", "b.wild.test")
	var once sync.Once
	old := s.tunnel("old")
	s.cloudflare.Inject(simulator.Fault{Method: "DELETE", Path: "/accounts/*/cfd_tunnel/" + old, Before: func(simulator.Request) {
		once.Do(func() { c.atRemoval = s.records() })
	}})
	s.delete(s.sectionRoute("shared", 0), s.sectionRoute("shared", 1), s.old, s.certificate)
	return c
}

// expectChanged waits for the results of change.
func (s *recordScenario) expectChanged(c *recordChange) {
	GinkgoHelper()
	handed := "handed.example.com CNAME " + s.tunnelIDIn(c.team) + ".cfargotunnel.com"
	Eventually(s.records).Should(ConsistOf(append(s.external, s.cname("one.example.com", "other"), s.cname("secure.example.com", "shared"), handed)))
	Expect(s.recordID("one.example.com")).To(Equal(c.id), "the record was changed, not replaced")
	Eventually(dnsCondition(s.other)).Should(Equal(published))
	Eventually(dnsCondition(c.team)).Should(Equal(published))
	Eventually(s.tunnelPhase(s.old)).Should(Equal("no Tunnel"))
	Expect(c.atRemoval).To(And(ContainElement(HavePrefix("handed.example.com CNAME ")), Not(ContainElement(HavePrefix("old.example.com ")))),
		"the tunnel was deleted after the record that no Gateway wants")
	Eventually(s.recordsIn).WithArguments(s.wildcards).Should(ConsistOf(
		s.cname("*.wild.test", "wild"), s.cname("a.b.wild.test", "wild"), s.cname("b.wild.test", "blocker")))
	c.lookups()
	all := s.database.Records(s.wildcards)
	Expect(all[2].CreatedOn.Sub(all[1].CreatedOn)).To(BeNumerically(">=", time.Minute), "b.wild.test waits for a.b.wild.test")
}

// serveTeam creates a Gateway for the hostname in the namespace of a team.
func (s *recordScenario) serveTeam(hostname string) *gatewayv1.Gateway {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-records"}}
	g, route, service := s.gateway("team", hostname), s.route("team", "web", gatewayParent("team")), s.service("web")
	g.Namespace, route.Namespace, service.Namespace = namespace.Name, namespace.Name, namespace.Name
	s.create(namespace, service, g, route)
	DeferCleanup(func() { s.delete(g, route, service, namespace) })
	return g
}

// tunnelIDIn returns the ID of the Gateway's tunnel.
func (s *recordScenario) tunnelIDIn(g *gatewayv1.Gateway) string {
	id, _ := s.cloudflare.TunnelID(s.tunnelNameIn(g.Namespace, g.Name))
	return id
}

// keepLookingUp looks the name up all the time. The returned function stops that, and fails
// unless every lookup led to the tunnel.
func (env *dnsEnvironment) keepLookingUp(name, tunnel string) (check func()) {
	env.database.Settle()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	lookups, failures, first := 0, 0, zones.Answer{}
	running.Go(func() {
		wait.UntilWithContext(ctx, func(context.Context) {
			answer := env.database.Lookup(name)
			if lookups++; answer.Outcome != zones.Found || answer.Target != tunnel+".cfargotunnel.com" {
				if failures++; failures == 1 {
					first = answer
				}
			}
		}, 5*time.Millisecond)
	})
	DeferCleanup(stop)
	return func() {
		GinkgoHelper()
		Eventually(env.database.Pending).Should(BeZero())
		stop()
		running.Wait()
		Expect(failures).To(BeZero(), "of %d lookups; the first: %+v", lookups, first)
		Expect(lookups).To(BeNumerically(">", 100))
	}
}
