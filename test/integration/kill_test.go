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
	// The routes change kills * changesPerKill times in total.
	changesPerKill = 40
)

var _ = Describe("a controller that is killed repeatedly while routes change", crashes, func() {
	It("ends with the current configuration and a single tunnel", func() {
		env := newKillEnvironment()
		for round := range kills {
			before := env.cloudflare.Count(http.MethodPut, configurationPath)
			env.changeRoutes(changesPerKill)
			if round%2 == 0 { // in the other rounds, the kill interrupts the start
				Eventually(env.cloudflare.Count).WithArguments(http.MethodPut, configurationPath).Should(BeNumerically(">", before))
			}
			env.process.Kill()
			env.start()
		}
		Eventually(env.unserved).Should(BeEmpty())
		env.changeRoutes(1)
		since := time.Now()
		Eventually(env.unserved).Should(BeEmpty())
		AddReportEntry(fmt.Sprintf("measured: %v from the last route change to its configuration", time.Since(since)))
		Expect(env.cloudflare.Tunnels()).To(HaveLen(1))
	})
})

// killEnvironment is an environment with a Gateway that has many routes.
type killEnvironment struct {
	*environment
	routes []*gatewayv1.HTTPRoute
	// changes counts the route changes so far.
	changes int
}

func newKillEnvironment() *killEnvironment {
	GinkgoHelper()
	env := &killEnvironment{environment: newEnvironment()}
	env.create(env.service("web"), env.gateway("shared", "*.example.com"))
	for i := range routesUnderKills {
		route := env.route(fmt.Sprintf("route-%03d", i), "web", gatewayParent("shared"))
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(route.Name + ".example.com")}
		env.create(route)
		env.routes = append(env.routes, route)
	}
	env.start()
	return env
}

func pathAfter(changes int) string { return fmt.Sprintf("/generation-%d", changes) }

// changeRoutes makes the next n changes. Each change gives the next route a new
// path.
func (env *killEnvironment) changeRoutes(n int) {
	GinkgoHelper()
	for range n {
		next := pathAfter(env.changes/len(env.routes) + 1)
		update(env.routes[env.changes%len(env.routes)], func(r *gatewayv1.HTTPRoute) {
			r.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: ptr.To(next)}}}
		})
		env.changes++
	}
}

// unserved returns the routes whose current path is not served, or whose
// previous path is still served.
func (env *killEnvironment) unserved() []string {
	GinkgoHelper()
	var unserved []string
	for i, route := range env.routes {
		generation := env.changes / len(env.routes)
		if i < env.changes%len(env.routes) {
			generation++
		}
		host := route.Name + ".example.com"
		current, previous := env.get("shared", host, pathAfter(generation)), env.get("shared", host, pathAfter(generation-1))
		if current != "web" || previous != "404" {
			unserved = append(unserved, fmt.Sprintf("%s: %s for the current path, %s for the previous path", host, current, previous))
		}
	}
	return unserved
}
