package integration

import (
	"net/http"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
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

	It("does not lose the old leader's incomplete write", func() {
		var completed atomic.Bool
		// The old leader cancels the request before the simulator executes it.
		changeLeader(simulator.Fault{
			Latency: 2 * provider.CallTimeout, After: func(simulator.Request) { completed.Store(true) },
		})
		expectSoon(s.expectServed)
		Expect(completed.Load()).To(BeFalse(), "the write of the old leader")
	})

	It("repairs the old leader's late write", func() {
		late := newLateWrite(s)
		// The latest time at which a request from the old leader can arrive.
		changeLeader(late.fault(provider.CallTimeout))
		late.expectRepair(func() { s.addRoute() })
	})
})
