package integration

import (
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("a leader change", func() {
	var (
		s      *scenario
		leader *controllerproc.Process
	)
	BeforeEach(func() {
		expectedConfigurations()
		s = newScenario()
		leader = s.startReplica()
		s.addGateway()
		expectSoon(s.expectServed)
		s.startReplica()
	})

	// changeLeader adds a route, and stops the leader before it receives the
	// response to its write.
	changeLeader := func(unanswered simulator.Fault) {
		GinkgoHelper()
		unanswered.Method, unanswered.Times = http.MethodPut, 1
		s.cloudflare.Inject(unanswered)
		before := s.cloudflare.Count(http.MethodPut, configurationPath)
		s.addRoute()
		Eventually(s.cloudflare.Count).WithArguments(http.MethodPut, configurationPath).Should(Equal(before + 1))
		Expect(leader.Stop()).To(Succeed())
	}

	It("does not lose a write that the old leader did not complete", func() {
		var completed atomic.Bool
		changeLeader(simulator.Fault{
			Latency: 3 * time.Second, After: func(simulator.Request) { completed.Store(true) },
		})
		expectSoon(s.expectServed)
		Expect(completed.Load()).To(BeFalse(), "the write of the old leader")
	})

	It("repairs a late write of the old leader that arrives after a write of the new leader", func() {
		arrived := make(chan struct{})
		// The latest time at which a request of the old leader can arrive.
		changeLeader(simulator.Fault{
			Latency: 10 * time.Second, Late: true, After: func(simulator.Request) { close(arrived) },
		})
		s.addRoute()
		expectSoon(s.expectServed)
		Expect(arrived).NotTo(BeClosed(), "the new leader writes first")
		Eventually(arrived).Should(BeClosed())
		Expect(s.configurationText()).To(Equal(expectedConfigurations()[1]), "the configuration of the old leader")
		expectSoon(s.expectServed)
	})
})
