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

// life is a world with one Gateway and what hangs on it. All lives have the
// same objects, so that what a fault left behind can be compared with what
// comes of them without one.
type life struct {
	*world
	gateway *gatewayv1.Gateway // nil before the first
	set     *gatewayv1.ListenerSet
	routes  []*gatewayv1.HTTPRoute
	extra   int // how many of the routes were added
}

// extraRoutes are the names of the routes that can be added.
var extraRoutes = [...]string{"more", "other"}

// newLife makes one in which there is no Gateway yet, but all that waits for
// it. No controller runs.
func newLife() *life {
	GinkgoHelper()
	l := &life{world: newWorld()}
	l.set = l.listenerSet("team", "team.example.com")
	l.routes = []*gatewayv1.HTTPRoute{l.hostRoute("home"), l.route("team", "web", toSet("team"))}
	l.create(l.service("web"), l.set, l.routes[0], l.routes[1])
	return l
}

// addGateway makes the Gateway, anew if there was one.
func (l *life) addGateway() {
	GinkgoHelper()
	l.gateway = l.world.gateway("shared", "*.example.com")
	l.create(l.gateway)
}

func (l *life) deleteGateway() {
	GinkgoHelper()
	l.delete(l.gateway)
}

// addRoute adds the next of the extra routes.
func (l *life) addRoute() {
	GinkgoHelper()
	route := l.hostRoute(extraRoutes[l.extra])
	l.create(route)
	l.routes = append(l.routes, route)
	l.extra++
}

// dropRoutes takes back what addRoute added.
func (l *life) dropRoutes() {
	GinkgoHelper()
	for ; l.extra > 0; l.extra-- {
		last := len(l.routes) - 1
		l.delete(l.routes[last])
		l.routes = l.routes[:last]
	}
}

// phase is a step of a life: what happens, and what must come of it.
type phase struct {
	name    string
	act     func()
	outcome func(Gomega)
}

// phases are those that call the API, in their order.
func (l *life) phases() []phase {
	return []phase{
		{"creation", l.addGateway, l.right},
		{"change", l.addRoute, l.right},
		{"deletion", l.deleteGateway, l.gone},
	}
}

// soon waits for the outcome, longer than the pauses after several failed
// attempts last.
func soon(outcome func(Gomega), what ...any) {
	GinkgoHelper()
	Eventually(outcome).WithTimeout(time.Minute).WithPolling(100*time.Millisecond).Should(Succeed(), what...)
}

// right is what every fault has to end in: the document is what the cluster
// asks for, the Gateway's tunnel is the only one, and all statuses say so.
func (l *life) right(g Gomega) {
	g.Expect(l.liveTunnels()).To(HaveExactElements(l.tunnelName("shared")))
	g.Expect(l.text()).To(Equal(undisturbed()[l.extra]), "the document")
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
	g.Expect(object.Spec.Existing).To(BeNil(), "the tunnel was created, so it is deleted with the Gateway")
	g.Expect(object.Status.TunnelID).To(Equal(id))
	g.Expect(string(object.Status.Phase)).To(Equal("Serving"))
}

// gone is what every deletion has to end in.
func (l *life) gone(g Gomega) {
	err := kube.Get(context.Background(), client.ObjectKeyFromObject(l.gateway), &gatewayv1.Gateway{})
	g.Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	l.withdrawn(g)
}

// withdrawn: nothing is left of what the controller created or reported.
func (l *life) withdrawn(g Gomega) {
	g.Expect(l.liveTunnels()).To(BeEmpty())
	g.Expect(l.tunnelObject(l.gateway)).To(BeNil())
	for _, route := range l.routes {
		g.Expect(fresh(route).Status.Parents).To(BeEmpty(), route.Name)
	}
	g.Expect(say(fresh(l.set).Status.Conditions, gatewayv1.ListenerSetConditionAccepted)).To(Equal("Unknown Pending"))
}

// current returns the statuses of the conditions; a condition of an earlier
// generation of the object says so instead.
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

// text returns the document of the Gateway's tunnel as it is stored, but for
// the world's own namespace.
func (l *life) text() string {
	id := l.tunnel("shared")
	if id == "" {
		return "no tunnel"
	}
	text, _ := l.edge.StoredConfiguration(id)
	return strings.ReplaceAll(string(text), l.namespace, "namespace")
}

// undisturbed returns the documents that come without any fault, by how many
// routes were added. Requests through the tunnel vouch for them.
var undisturbed = sync.OnceValue(func() (documents [len(extraRoutes) + 1]string) {
	GinkgoHelper()
	l := newLife()
	l.start()
	l.addGateway()
	served := []string{"home.example.com", "team.example.com"}
	for i := range documents {
		Eventually(l.hostnames).WithArguments("shared").Should(ConsistOf(served))
		for _, host := range served {
			Expect(l.get("shared", host, "/")).To(Equal("web"), host)
		}
		documents[i] = l.text()
		if i < len(extraRoutes) {
			served = append(served, extraRoutes[i]+".example.com")
			l.addRoute()
		}
	}
	l.stop()
	return documents
})

// together runs the function for every element at once. The elements and what
// they need are made before: only one goroutine may register a cleanup.
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
