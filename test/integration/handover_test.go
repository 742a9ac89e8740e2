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

var _ = Describe("a change of the leader", func() {
	var (
		l      *life
		leader *controllerproc.Process
	)
	BeforeEach(func() {
		undisturbed()
		l = newLife()
		leader = l.launchReplica()
		l.addGateway()
		soon(l.right)
		l.launchReplica()
	})

	// changeLeader adds a route, and stops the leader before it receives the
	// response to its write.
	changeLeader := func(unanswered simulator.Fault) {
		GinkgoHelper()
		unanswered.Method, unanswered.Times = http.MethodPut, 1
		l.edge.Inject(unanswered)
		before := l.edge.Count(http.MethodPut, configurations)
		l.addRoute()
		Eventually(l.edge.Count).WithArguments(http.MethodPut, configurations).Should(Equal(before + 1))
		Expect(leader.Stop()).To(Succeed())
	}

	It("does not lose a write that the old leader did not complete", func() {
		var completed atomic.Bool
		changeLeader(simulator.Fault{
			Latency: 3 * time.Second, After: func(simulator.Request) { completed.Store(true) },
		})
		soon(l.right)
		Expect(completed.Load()).To(BeFalse(), "the write of the old leader")
	})

	It("repairs a late write of the old leader that arrives after a write of the new leader", func() {
		arrived := make(chan struct{})
		// The latest possible arrival of a request that the old leader sent before it stopped.
		changeLeader(simulator.Fault{
			Latency: 10 * time.Second, Late: true, After: func(simulator.Request) { close(arrived) },
		})
		l.addRoute()
		soon(l.right)
		Expect(arrived).NotTo(BeClosed(), "the new leader writes first")
		Eventually(arrived).Should(BeClosed())
		Expect(l.text()).To(Equal(undisturbed()[1]), "the configuration of the old leader")
		soon(l.right)
	})
})
