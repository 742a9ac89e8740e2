package integration

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	routesUnderKills = 200
	kills            = 50
	// The total number of changes is kills * changesPerKill.
	changesPerKill = 40
)

var _ = Describe("a controller that is killed repeatedly while routes change", slow, func() {
	It("ends with the right configuration and with one tunnel", func() {
		k := newKilled()
		for round := range kills {
			before := k.edge.Count(http.MethodPut, configurations)
			k.changeRoutes(changesPerKill)
			if round%2 == 0 { // in the other rounds, the kill interrupts the start
				Eventually(k.edge.Count).WithArguments(http.MethodPut, configurations).Should(BeNumerically(">", before))
			}
			k.process.Kill()
			k.start()
		}
		Eventually(k.unserved).Should(BeEmpty())
		k.changeRoutes(1)
		since := time.Now()
		Eventually(k.unserved).Should(BeEmpty())
		AddReportEntry(fmt.Sprintf("measured: %v from the last route change to its configuration", time.Since(since)))
		Expect(k.edge.Tunnels()).To(HaveLen(1))
	})
})

// killEnvironment is an environment with a Gateway that has many routes.
type killed struct {
	*world
	routes []*gatewayv1.HTTPRoute
	// changes is the number of route changes so far.
	changes int
}

func newKilled() *killed {
	GinkgoHelper()
	k := &killed{world: newWorld()}
	k.create(k.service("web"), k.gateway("shared", "*.example.com"))
	for i := range routesUnderKills {
		route := k.route(fmt.Sprintf("route-%03d", i), "web", toGateway("shared"))
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(route.Name + ".example.com")}
		k.create(route)
		k.routes = append(k.routes, route)
	}
	k.start()
	return k
}

// pathAfter returns the path of a route that was changed this many times.
func path(generation int) string { return fmt.Sprintf("/generation-%d", generation) }

// changeRoutes makes the next n changes. Each change gives the next route a new
// path.
func (k *killed) changeRoutes(n int) {
	GinkgoHelper()
	for range n {
		next := path(k.changes/len(k.routes) + 1)
		change(k.routes[k.changes%len(k.routes)], func(r *gatewayv1.HTTPRoute) {
			r.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: ptr.To(next)}}}
		})
		k.changes++
	}
}

// unserved returns the routes whose current path is not served, or whose previous path still is.
func (k *killed) unserved() []string {
	GinkgoHelper()
	var unserved []string
	for i, route := range k.routes {
		generation := k.changes / len(k.routes)
		if i < k.changes%len(k.routes) {
			generation++
		}
		host := route.Name + ".example.com"
		current, previous := k.get("shared", host, path(generation)), k.get("shared", host, path(generation-1))
		if current != "web" || previous != "404" {
			unserved = append(unserved, fmt.Sprintf("%s: %s for the current path, %s for the previous path", host, current, previous))
		}
	}
	return unserved
}
