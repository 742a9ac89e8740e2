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

var _ = Describe("the hand-over to another leader", func() {
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

	// handOver adds a route, whose push is not answered, and ends the leader.
	handOver := func(unanswered simulator.Fault) {
		GinkgoHelper()
		unanswered.Method, unanswered.Times = http.MethodPut, 1
		l.edge.Inject(unanswered)
		before := l.edge.Count(http.MethodPut, configurations)
		l.addRoute()
		Eventually(l.edge.Count).WithArguments(http.MethodPut, configurations).Should(Equal(before + 1))
		Expect(leader.Stop()).To(Succeed())
	}

	It("carries out a push that ended with the leader", func() {
		var carriedOut atomic.Bool
		handOver(simulator.Fault{
			Latency: 3 * time.Second, After: func(simulator.Request) { carriedOut.Store(true) },
		})
		soon(l.right)
		Expect(carriedOut.Load()).To(BeFalse(), "the push of the old leader")
	})

	It("puts a push of the old leader right that arrives after one of the new leader", func() {
		arrived := make(chan struct{})
		// As late as a request can be that was sent just before its leader ended.
		handOver(simulator.Fault{
			Latency: 10 * time.Second, Late: true, After: func(simulator.Request) { close(arrived) },
		})
		l.addRoute()
		soon(l.right)
		Expect(arrived).NotTo(BeClosed(), "the new leader wrote first")
		Eventually(arrived).Should(BeClosed())
		Expect(l.text()).To(Equal(undisturbed()[1]), "the document of the old leader")
		soon(l.right)
	})
})
