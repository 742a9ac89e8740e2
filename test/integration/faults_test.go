package integration

import (
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// faultInjection runs one phase of a scenario while the Cloudflare API has a
// fault, and waits for the expected result of the phase.
type disturbance func(*life, phase)

var disturbances = map[string]disturbance{
	"429 with Retry-After":    during(1, simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 2 * time.Second}),
	"500":                     during(pastRetries, simulator.Fault{Status: http.StatusInternalServerError}),
	"502 in HTML":             during(pastRetries, simulator.Fault{Status: http.StatusBadGateway, Body: "<html>Bad gateway</html>"}),
	"reset before the write":  during(pastRetries, simulator.Fault{Drop: simulator.DropBeforeWrite}),
	"reset after the write":   during(pastRetries, simulator.Fault{Drop: simulator.DropAfterWrite}),
	"200 that is not JSON":    during(1, simulator.Fault{Body: "OK"}),
	"stall before the write":  duringWrites(simulator.Fault{Latency: 30 * time.Second}),
	"write that arrives late": duringWrites(simulator.Fault{Latency: 10500 * time.Millisecond, Late: true}),
	"revoked API token":       whileRevoked,
}

// failuresBeyondRetries is the number of consecutive failures of a call after
// which the client stops its retries and returns the error to the controller.
const pastRetries = 6

var _ = Describe("a fault of the Cloudflare API", slow, func() {
	It("is repaired in each phase of a Gateway's life", func() {
		undisturbed()
		type faultyScenario struct {
			*life
			name   string
			inject disturbance
		}
		var scenarios []faultyScenario
		for name, inject := range disturbances {
			scenarios = append(scenarios, faultyScenario{newLife(), name, inject})
		}
		together(scenarios, func(f faultyScenario) {
			f.start()
			for _, p := range f.phases() {
				p.name = f.name + ", " + p.name
				f.inject(f.life, p)
			}
		})
	})

	It("does not keep an abandoned write in effect that arrives after a newer one", func() {
		undisturbed()
		l := newLife()
		l.start()
		l.addGateway()
		soon(l.right)
		arrived := make(chan struct{})
		l.edge.Inject(simulator.Fault{
			Method: http.MethodPut, Path: configurations, Times: 1,
			// Longer than the controller's request timeout and its backoff.
			Latency: 15 * time.Second, Late: true, After: func(simulator.Request) { close(arrived) },
		})
		before := l.edge.Count(http.MethodPut, configurations)
		l.addRoute()
		Eventually(l.edge.Count).WithArguments(http.MethodPut, configurations).Should(Equal(before + 1))
		l.addRoute()
		soon(l.right)
		Expect(arrived).NotTo(BeClosed(), "the newer configuration was written first")
		Eventually(arrived).Should(BeClosed())
		Expect(l.text()).To(Equal(undisturbed()[1]), "the configuration of the abandoned write")
		soon(l.right)
	})
})

// failRequests makes the first requests of each method fail, but only one POST:
// the client does not retry the creation of a tunnel.
func during(times int, fault simulator.Fault) disturbance {
	return func(l *life, p phase) {
		l.suffer(p, fault, map[string]int{
			http.MethodGet: times, http.MethodPost: 1, http.MethodPut: times, http.MethodDelete: times,
		})
	}
}

// failWrites makes the first POST, PUT and DELETE request fail.
func duringWrites(fault simulator.Fault) disturbance {
	return func(l *life, p phase) {
		l.suffer(p, fault, map[string]int{http.MethodPost: 1, http.MethodPut: 1, http.MethodDelete: 1})
	}
}

// runPhaseWithFault runs a phase. The fault occurs the given number of times for each method.
func (l *life) suffer(p phase, fault simulator.Fault, times map[string]int) {
	GinkgoHelper()
	var hits atomic.Int64
	for method, n := range times {
		fault.Method, fault.Times = method, n
		fault.Before = func(simulator.Request) { hits.Add(1) }
		l.edge.Inject(fault)
	}
	p.act()
	soon(p.outcome, p.name)
	l.edge.ClearFaults()
	Expect(hits.Load()).To(BeNumerically(">", 0), p.name)
}

// runPhaseWithRevokedToken starts a phase without a valid API token, and restores the token later.
func whileRevoked(l *life, p phase) {
	GinkgoHelper()
	l.edge.SetToken("another")
	p.act()
	Eventually(func() string {
		object := l.tunnelObject(l.gateway)
		if object == nil || exists(l.gateway) {
			return gatewayMessage(l.gateway)()
		}
		return meta.FindStatusCondition(object.Status.Conditions, v1alpha1.TunnelReady).Message
	}).Should(ContainSubstring("refuses the API token"), p.name)
	l.edge.SetToken("token")
	soon(p.outcome, p.name)
}
