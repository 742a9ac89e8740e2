package integration

import (
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// faultInjection runs one scenario phase while the Cloudflare API has a fault, and waits
// for the phase's expected result.
type faultInjection func(*scenario, phase)

var faultInjections = map[string]faultInjection{
	"429 with Retry-After":    failRequests(1, simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 2 * time.Second}),
	"500":                     failRequests(failuresBeyondRetries, simulator.Fault{Status: http.StatusInternalServerError}),
	"502 in HTML":             failRequests(failuresBeyondRetries, simulator.Fault{Status: http.StatusBadGateway, Body: "<html>Bad gateway</html>"}),
	"reset before the write":  failRequests(failuresBeyondRetries, simulator.Fault{Drop: simulator.DropBeforeWrite}),
	"reset after the write":   failRequests(failuresBeyondRetries, simulator.Fault{Drop: simulator.DropAfterWrite}),
	"200 that is not JSON":    failRequests(1, simulator.Fault{Body: "OK"}),
	"stall before the write":  failWrites(simulator.Fault{Latency: 30 * time.Second}),
	"write that arrives late": failWrites(simulator.Fault{Latency: 10500 * time.Millisecond, Late: true}),
	"revoked API token":       runPhaseWithRevokedToken,
}

// After failuresBeyondRetries consecutive failures of a call, the client stops its
// retries and returns the error to the controller.
const failuresBeyondRetries = 6

var _ = Describe("a fault of the Cloudflare API", crashes, func() {
	It("does not change the result of a creation, change or deletion", func() {
		expectedConfigurations()
		type faultyScenario struct {
			*scenario
			name   string
			inject faultInjection
		}
		var scenarios []faultyScenario
		for name, inject := range faultInjections {
			scenarios = append(scenarios, faultyScenario{newScenario(), name, inject})
		}
		runConcurrently(scenarios, func(f faultyScenario) {
			f.start()
			for _, p := range f.phases() {
				p.name = f.name + ", " + p.name
				f.inject(f.scenario, p)
			}
		})
	})

	It("does not leave a late write in effect", func() {
		expectedConfigurations()
		s := newScenario()
		s.start()
		s.addGateway()
		expectSoon(s.expectServed)
		late := newLateWrite(s)
		fault := late.fault(15 * time.Second) // longer than the controller's request timeout and its backoff
		fault.Method, fault.Path, fault.Times = http.MethodPut, configurationPath, 1
		s.cloudflare.Inject(fault)
		before := s.cloudflare.Count(http.MethodPut, configurationPath)
		s.addRoute()
		Eventually(s.cloudflare.Count).WithArguments(http.MethodPut, configurationPath).Should(Equal(before + 1))
		late.expectRepair(func() { s.addRoute() })
	})
})

// failRequests makes the first requests fail for each method, but only one POST: the
// client does not retry when it creates a tunnel.
func failRequests(times int, fault simulator.Fault) faultInjection {
	return func(s *scenario, p phase) {
		s.runPhaseWithFault(p, fault, map[string]int{
			http.MethodGet: times, http.MethodPost: 1, http.MethodPut: times, http.MethodDelete: times,
		})
	}
}

// failWrites makes the first POST, PUT and DELETE request fail.
func failWrites(fault simulator.Fault) faultInjection {
	return func(s *scenario, p phase) {
		s.runPhaseWithFault(p, fault, map[string]int{http.MethodPost: 1, http.MethodPut: 1, http.MethodDelete: 1})
	}
}

// runPhaseWithFault runs a phase. The map says how often the fault occurs for each
// method.
func (s *scenario) runPhaseWithFault(p phase, fault simulator.Fault, times map[string]int) {
	GinkgoHelper()
	var hits atomic.Int64
	for method, n := range times {
		fault.Method, fault.Times = method, n
		fault.Before = func(simulator.Request) { hits.Add(1) }
		s.cloudflare.Inject(fault)
	}
	p.action()
	expectSoon(p.check, p.name)
	s.cloudflare.ClearFaults()
	Expect(hits.Load()).To(BeNumerically(">", 0), p.name)
}

// runPhaseWithRevokedToken starts a phase without a valid API token, and restores
// the token after the controller has reported the error.
func runPhaseWithRevokedToken(s *scenario, p phase) {
	GinkgoHelper()
	s.cloudflare.SetToken("another")
	p.action()
	Eventually(func() string {
		object := s.tunnelObject(s.gateway)
		if object == nil || exists(s.gateway) {
			return gatewayMessage(s.gateway)()
		}
		return meta.FindStatusCondition(object.Status.Conditions, "Ready").Message
	}).Should(ContainSubstring("rejects the API token"), p.name)
	s.cloudflare.SetToken("token")
	expectSoon(p.check, p.name)
}
