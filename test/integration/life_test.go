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

// scenario is an environment with one Gateway, a ListenerSet and routes. All
// scenarios have the same objects, so that a test can compare the configuration
// after a fault with the configuration of a scenario without faults.
type life struct {
	*world
	gateway *gatewayv1.Gateway // nil before the first addGateway
	set     *gatewayv1.ListenerSet
	routes  []*gatewayv1.HTTPRoute
	extra   int // number of routes that addRoute added
}

// extraRouteNames are the names of the routes that addRoute adds.
var extraRoutes = [...]string{"more", "other"}

// newScenario creates the objects of a scenario except for the Gateway, and does
// not start a controller.
func newLife() *life {
	GinkgoHelper()
	l := &life{world: newWorld()}
	l.set = l.listenerSet("team", "team.example.com")
	l.routes = []*gatewayv1.HTTPRoute{l.hostRoute("home"), l.route("team", "web", toSet("team"))}
	l.create(l.service("web"), l.set, l.routes[0], l.routes[1])
	return l
}

// addGateway creates the Gateway, or recreates it after its deletion.
func (l *life) addGateway() {
	GinkgoHelper()
	l.gateway = l.world.gateway("shared", "*.example.com")
	l.create(l.gateway)
}

func (l *life) deleteGateway() {
	GinkgoHelper()
	l.delete(l.gateway)
}

// addRoute creates the next route of extraRouteNames.
func (l *life) addRoute() {
	GinkgoHelper()
	route := l.hostRoute(extraRoutes[l.extra])
	l.create(route)
	l.routes = append(l.routes, route)
	l.extra++
}

// deleteAddedRoutes deletes the routes that addRoute created.
func (l *life) dropRoutes() {
	GinkgoHelper()
	for ; l.extra > 0; l.extra-- {
		last := len(l.routes) - 1
		l.delete(l.routes[last])
		l.routes = l.routes[:last]
	}
}

// phase is a step of a scenario: an action, and a check of its result.
type phase struct {
	name    string
	act     func()
	outcome func(Gomega)
}

// phases returns the phases that call the Cloudflare API, in their order.
func (l *life) phases() []phase {
	return []phase{
		{"creation", l.addGateway, l.right},
		{"change", l.addRoute, l.right},
		{"deletion", l.deleteGateway, l.gone},
	}
}

// expectSoon waits until the check succeeds. The timeout exceeds the backoff
// after several failed attempts.
func soon(outcome func(Gomega), what ...any) {
	GinkgoHelper()
	Eventually(outcome).WithTimeout(time.Minute).WithPolling(100*time.Millisecond).Should(Succeed(), what...)
}

// expectServed checks that the configuration is the one without faults, that the
// Gateway's tunnel is the only one, and that each status is current.
func (l *life) right(g Gomega) {
	g.Expect(l.liveTunnels()).To(HaveExactElements(l.tunnelName("shared")))
	g.Expect(l.text()).To(Equal(undisturbed()[l.extra]), "configuration")
	l.rightGateway(g)
	set := fresh(l.set)
	g.Expect(current(set.Status.Conditions, set, "Accepted", "Programmed")).To(HaveEach("True"), "ListenerSet")
	for _, route := range l.routes {
		entries := fresh(route).Status.Parents
		g.Expect(entries).To(HaveLen(1), route.Name)
		g.Expect(string(entries[0].ControllerName)).To(Equal(l.controller))
		g.Expect(current(entries[0].Conditions, route, "Accepted", "ResolvedRefs")).To(HaveEach("True"), route.Name)
	}
}

func (l *life) rightGateway(g Gomega) {
	gw := fresh(l.gateway)
	g.Expect(current(gw.Status.Conditions, gw, "Accepted", "Programmed")).To(HaveEach("True"), "Gateway")
	id := l.tunnel("shared")
	g.Expect(gw.Status.Addresses).To(HaveLen(1))
	g.Expect(gw.Status.Addresses[0].Value).To(Equal(id + ".cfargotunnel.com"))
	g.Expect(gw.Status.AttachedListenerSets).To(HaveValue(BeEquivalentTo(1)))
	object := l.tunnelObject(gw)
	g.Expect(object).NotTo(BeNil())
	g.Expect(object.Spec.Existing).To(BeNil(), "the controller created the tunnel, so it deletes it with the Gateway")
	g.Expect(object.Status.TunnelID).To(Equal(id))
	g.Expect(string(object.Status.Phase)).To(Equal("Serving"))
}

// expectDeleted checks that the Gateway is deleted and that the controller has cleaned up.
func (l *life) gone(g Gomega) {
	err := kube.Get(context.Background(), client.ObjectKeyFromObject(l.gateway), &gatewayv1.Gateway{})
	g.Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	l.withdrawn(g)
}

// expectCleanedUp checks that no tunnel, no Tunnel and no status of the
// controller remain.
func (l *life) withdrawn(g Gomega) {
	g.Expect(l.liveTunnels()).To(BeEmpty())
	g.Expect(l.tunnelObject(l.gateway)).To(BeNil())
	for _, route := range l.routes {
		g.Expect(fresh(route).Status.Parents).To(BeEmpty(), route.Name)
	}
	g.Expect(say(fresh(l.set).Status.Conditions, gatewayv1.ListenerSetConditionAccepted)).To(Equal("Unknown Pending"))
}

// conditionStatuses returns the status of each condition, with the message unless
// it is True, or a note that the condition describes an earlier generation.
func current(conditions []metav1.Condition, o client.Object, kinds ...string) map[string]string {
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
func (l *life) liveTunnels() []string {
	var names []string
	for _, t := range l.edge.Tunnels() {
		if !t.Deleted {
			names = append(names, t.Name)
		}
	}
	return names
}

// configurationText returns the stored configuration of the Gateway's tunnel,
// with a placeholder for the namespace of the environment.
func (l *life) text() string {
	id := l.tunnel("shared")
	if id == "" {
		return "no tunnel"
	}
	text, _ := l.edge.StoredConfiguration(id)
	return strings.ReplaceAll(string(text), l.namespace, "namespace")
}

// expectedConfigurations returns the configurations of a scenario without
// faults, by the number of added routes. Requests through the tunnel confirm
// them.
var undisturbed = sync.OnceValue(func() (configurations [len(extraRoutes) + 1]string) {
	GinkgoHelper()
	l := newLife()
	l.start()
	l.addGateway()
	hosts := []string{"home.example.com", "team.example.com"}
	for i := range configurations {
		Eventually(l.hostnames).WithArguments("shared").Should(ConsistOf(hosts))
		for _, host := range hosts {
			Expect(l.get("shared", host, "/")).To(Equal("web"), host)
		}
		configurations[i] = l.text()
		if i < len(extraRoutes) {
			hosts = append(hosts, extraRoutes[i]+".example.com")
			l.addRoute()
		}
	}
	l.stop()
	return configurations
})

// runConcurrently runs the function for all elements concurrently. The function
// must not call DeferCleanup, because only one goroutine may register cleanups.
func together[T any](elements []T, run func(T)) {
	var running sync.WaitGroup
	for _, element := range elements {
		running.Go(func() {
			defer GinkgoRecover()
			run(element)
		})
	}
	running.Wait()
}
