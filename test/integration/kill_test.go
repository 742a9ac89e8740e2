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
	// changesPerKill times kills are the changes.
	changesPerKill = 40
)

var _ = Describe("a controller that is killed while routes change", slow, func() {
	It("ends with the right configuration and with one tunnel", func() {
		k := newKilled()
		for round := range kills {
			before := k.edge.Count(http.MethodPut, configurations)
			k.changeRoutes(changesPerKill)
			if round%2 == 0 { // in the other rounds it is killed while it starts
				Eventually(k.edge.Count).WithArguments(http.MethodPut, configurations).Should(BeNumerically(">", before))
			}
			k.process.Kill()
			k.start()
		}
		Eventually(k.wrong).Should(BeEmpty())
		k.changeRoutes(1)
		since := time.Now()
		Eventually(k.wrong).Should(BeEmpty())
		AddReportEntry(fmt.Sprintf("measured: %v from the last change to its configuration", time.Since(since)))
		Expect(k.edge.Tunnels()).To(HaveLen(1))
	})
})

// killed is a world whose controller is killed, with a Gateway of many routes.
type killed struct {
	*world
	routes []*gatewayv1.HTTPRoute
	// changes is how often routes were changed.
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

// path is what a route serves after so many changes of all routes.
func path(generation int) string { return fmt.Sprintf("/generation-%d", generation) }

// changeRoutes makes the next n changes: one route after the other serves its
// next path.
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

// wrong returns the routes that are not served as they are.
func (k *killed) wrong() []string {
	GinkgoHelper()
	var wrong []string
	for i, route := range k.routes {
		generation := k.changes / len(k.routes)
		if i < k.changes%len(k.routes) {
			generation++
		}
		host := route.Name + ".example.com"
		now, before := k.get("shared", host, path(generation)), k.get("shared", host, path(generation-1))
		if now != "web" || before != "404" {
			wrong = append(wrong, fmt.Sprintf("%s: %s, and %s before", host, now, before))
		}
	}
	return wrong
}
