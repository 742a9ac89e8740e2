package integration

import (
	"context"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// scenario is an environment with one Gateway, a ListenerSet and routes. All scenarios
// have the same objects, so that a test can compare the configuration after a fault with
// the configuration in a scenario without faults.
type scenario struct {
	*environment
	gateway     *gatewayv1.Gateway // nil before the first addGateway
	set         *gatewayv1.ListenerSet
	routes      []*gatewayv1.HTTPRoute
	addedRoutes int // counts the routes that addRoute added
}

// extraRouteNames are the names for the routes that addRoute adds.
var extraRouteNames = [...]string{"more", "other"}

// newScenario creates a scenario's objects except for the Gateway, and does not start a
// controller.
func newScenario() *scenario {
	GinkgoHelper()
	s := &scenario{environment: newEnvironment()}
	s.set = s.listenerSet("team", "team.example.com")
	s.routes = []*gatewayv1.HTTPRoute{s.hostRoute("home"), s.route("team", "web", listenerSetParent("team"))}
	s.create(s.service("web"), s.set, s.routes[0], s.routes[1])
	return s
}

// addGateway creates the Gateway, or recreates it after its deletion.
func (s *scenario) addGateway() {
	GinkgoHelper()
	s.gateway = s.environment.gateway("shared", "*.example.com")
	s.create(s.gateway)
}

func (s *scenario) deleteGateway() {
	GinkgoHelper()
	s.delete(s.gateway)
}

// addRoute creates the next route in extraRouteNames.
func (s *scenario) addRoute() {
	GinkgoHelper()
	route := s.hostRoute(extraRouteNames[s.addedRoutes])
	s.create(route)
	s.routes = append(s.routes, route)
	s.addedRoutes++
}

// deleteAddedRoutes deletes the routes that addRoute created.
func (s *scenario) deleteAddedRoutes() {
	GinkgoHelper()
	for ; s.addedRoutes > 0; s.addedRoutes-- {
		last := len(s.routes) - 1
		s.delete(s.routes[last])
		s.routes = s.routes[:last]
	}
}

// phase is a step in a scenario: an action, and a check for its result.
type phase struct {
	name   string
	action func()
	check  func(Gomega)
}

// phases returns the phases that call the Cloudflare API, in their order.
func (s *scenario) phases() []phase {
	return []phase{
		{"creation", s.addGateway, s.expectServed},
		{"change", s.addRoute, s.expectServed},
		{"deletion", s.deleteGateway, s.expectDeleted},
	}
}

// expectSoon waits until the check succeeds. The timeout exceeds the backoff
// after several failed attempts.
func expectSoon(check func(Gomega), description ...any) {
	GinkgoHelper()
	Eventually(check).WithPolling(100*time.Millisecond).Should(Succeed(), description...)
}

// expectServed checks that the configuration is the one without faults, that the
// Gateway's tunnel is the only one, and that each status is current.
func (s *scenario) expectServed(g Gomega) {
	g.Expect(s.liveTunnels()).To(HaveExactElements(s.tunnelName("shared")))
	g.Expect(s.configurationText()).To(Equal(expectedConfigurations()[s.addedRoutes]), "configuration")
	s.expectGatewayServed(g)
	set := latest(s.set)
	g.Expect(conditionStatuses(set.Status.Conditions, set, "Accepted", "Programmed")).To(HaveEach("True"), "ListenerSet")
	for _, route := range s.routes {
		entries := latest(route).Status.Parents
		g.Expect(entries).To(HaveLen(1), route.Name)
		g.Expect(string(entries[0].ControllerName)).To(Equal(s.controllerName))
		g.Expect(conditionStatuses(entries[0].Conditions, route, "Accepted", "ResolvedRefs")).To(HaveEach("True"), route.Name)
	}
}

func (s *scenario) expectGatewayServed(g Gomega) {
	gw := latest(s.gateway)
	g.Expect(conditionStatuses(gw.Status.Conditions, gw, "Accepted", "Programmed")).To(HaveEach("True"), "Gateway")
	id := s.tunnel("shared")
	g.Expect(gw.Status.Addresses).To(HaveLen(1))
	g.Expect(gw.Status.Addresses[0].Value).To(Equal(id + ".cfargotunnel.com"))
	g.Expect(gw.Status.AttachedListenerSets).To(HaveValue(BeEquivalentTo(1)))
	object := s.tunnelObject(gw)
	g.Expect(object).NotTo(BeNil())
	g.Expect(object.Spec.Existing).To(BeNil(), "the controller created the tunnel, so it deletes it with the Gateway")
	g.Expect(object.Status.TunnelID).To(Equal(id))
	g.Expect(string(object.Status.Phase)).To(Equal("Serving"))
}

// expectDeleted checks that the Gateway is deleted and that the controller has
// cleaned up.
func (s *scenario) expectDeleted(g Gomega) {
	err := kube.Get(context.Background(), client.ObjectKeyFromObject(s.gateway), &gatewayv1.Gateway{})
	g.Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	s.expectCleanedUp(g)
}

// expectCleanedUp checks that no tunnel, no Tunnel and no status from the controller
// remain.
func (s *scenario) expectCleanedUp(g Gomega) {
	g.Expect(s.liveTunnels()).To(BeEmpty())
	g.Expect(s.tunnelObject(s.gateway)).To(BeNil())
	for _, route := range s.routes {
		g.Expect(latest(route).Status.Parents).To(BeEmpty(), route.Name)
	}
	g.Expect(formatCondition(latest(s.set).Status.Conditions, gatewayv1.ListenerSetConditionAccepted)).To(Equal("Unknown Pending"))
}

// conditionStatuses returns the status of each condition, with the message unless it is
// True, or a note that the condition describes an earlier generation.
func conditionStatuses(conditions []metav1.Condition, o client.Object, kinds ...string) map[string]string {
	found := map[string]string{}
	for _, kind := range kinds {
		c := meta.FindStatusCondition(conditions, kind)
		switch {
		case c == nil:
			found[kind] = "none"
		case c.ObservedGeneration != o.GetGeneration():
			found[kind] = "of an earlier generation"
		case c.Status == metav1.ConditionTrue:
			found[kind] = "True"
		default:
			found[kind] = string(c.Status) + ": " + c.Message
		}
	}
	return found
}

// liveTunnels returns the names of all tunnels that are not deleted.
func (s *scenario) liveTunnels() []string {
	var names []string
	for _, t := range s.cloudflare.Tunnels() {
		if !t.Deleted {
			names = append(names, t.Name)
		}
	}
	return names
}

// configurationText returns the stored configuration for the Gateway's tunnel, with a
// placeholder for the environment's namespace.
func (s *scenario) configurationText() string {
	id := s.tunnel("shared")
	if id == "" {
		return "no tunnel"
	}
	text, _ := s.cloudflare.StoredConfiguration(id)
	return strings.ReplaceAll(string(text), s.namespace, "namespace")
}

// expectedConfigurations returns the configurations in a scenario without faults, by the
// number of added routes. Requests through the tunnel confirm them.
var expectedConfigurations = sync.OnceValue(func() (configurations [len(extraRouteNames) + 1]string) {
	GinkgoHelper()
	s := newScenario()
	s.start()
	s.addGateway()
	hosts := []string{"home.example.com", "team.example.com"}
	for i := range configurations {
		Eventually(s.hostnames).WithArguments("shared").Should(ConsistOf(hosts))
		for _, host := range hosts {
			Expect(s.get("shared", host, "/")).To(Equal("web"), host)
		}
		configurations[i] = s.configurationText()
		if i < len(extraRouteNames) {
			hosts = append(hosts, extraRouteNames[i]+".example.com")
			s.addRoute()
		}
	}
	s.stop()
	return configurations
})

// runConcurrently runs the function for all elements concurrently. The function
// must not call DeferCleanup, because only one goroutine may register cleanups.
func runConcurrently[T any](elements []T, run func(T)) {
	var running sync.WaitGroup
	for _, element := range elements {
		running.Go(func() {
			defer GinkgoRecover()
			run(element)
		})
	}
	running.Wait()
}
