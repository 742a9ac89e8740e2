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

// disturbance goes through one phase of a life while something is wrong, and
// returns when the phase has come to its right end.
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

// pastRetries is how many times in a row a call has to fail until its retries
// have ended and the controller has to deal with it.
const pastRetries = 6

var _ = Describe("a fault of the API", slow, func() {
	It("leaves nothing wrong behind, whichever it is and whenever it comes", func() {
		undisturbed()
		type disturbed struct {
			*life
			name    string
			disturb disturbance
		}
		var lives []disturbed
		for name, disturb := range disturbances {
			lives = append(lives, disturbed{newLife(), name, disturb})
		}
		together(lives, func(d disturbed) {
			d.start()
			for _, p := range d.phases() {
				p.name = d.name + ", " + p.name
				d.disturb(d.life, p)
			}
		})
	})

	It("does not let a push that was given up win when it arrives after a newer one", func() {
		undisturbed()
		l := newLife()
		l.start()
		l.addGateway()
		soon(l.right)
		arrived := make(chan struct{})
		l.edge.Inject(simulator.Fault{
			Method: http.MethodPut, Path: configurations, Times: 1,
			// Longer than the controller waits for an answer, and for its next attempt.
			Latency: 15 * time.Second, Late: true, After: func(simulator.Request) { close(arrived) },
		})
		before := l.edge.Count(http.MethodPut, configurations)
		l.addRoute()
		Eventually(l.edge.Count).WithArguments(http.MethodPut, configurations).Should(Equal(before + 1))
		l.addRoute()
		soon(l.right)
		Expect(arrived).NotTo(BeClosed(), "the newer one was written first")
		Eventually(arrived).Should(BeClosed())
		Expect(l.text()).To(Equal(undisturbed()[1]), "the document that was given up")
		soon(l.right)
	})
})

// during lets the first so many requests of every method fail; of creations
// only one, since they are never repeated at once.
func during(times int, fault simulator.Fault) disturbance {
	return func(l *life, p phase) {
		l.suffer(p, fault, map[string]int{
			http.MethodGet: times, http.MethodPost: 1, http.MethodPut: times, http.MethodDelete: times,
		})
	}
}

// duringWrites lets the first request of every method that changes something
// fail.
func duringWrites(fault simulator.Fault) disturbance {
	return func(l *life, p phase) {
		l.suffer(p, fault, map[string]int{http.MethodPost: 1, http.MethodPut: 1, http.MethodDelete: 1})
	}
}

// suffer goes through a phase with the fault, so many times by method.
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

// whileRevoked goes through a phase that begins without a valid token.
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
