package integration

import (
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// lateWrite is a configuration write that arrives after a newer one, even if the newer one is
// late because the machine is busy.
type lateWrite struct {
	*scenario
	newer   chan struct{} // closed when the newer configuration is in effect
	release func()        // closes newer
	arrived chan string   // receives the configuration when the late write arrives
}

func newLateWrite(s *scenario) *lateWrite {
	newer := make(chan struct{})
	l := &lateWrite{s, newer, sync.OnceFunc(func() { close(newer) }), make(chan string, 1)}
	DeferCleanup(l.release) // the simulator waits for its requests
	return l
}

// fault delays a write until the latency has passed and the newer configuration is in effect.
func (l *lateWrite) fault(latency time.Duration) simulator.Fault {
	return simulator.Fault{
		Latency: latency, Late: true,
		Before: func(simulator.Request) { <-l.newer },
		After:  func(simulator.Request) { l.arrived <- l.configurationText() },
	}
}

// expectRepair makes a change, whose configuration is the newer one, and expects the controller
// to write it again after the late write.
func (l *lateWrite) expectRepair(change func()) {
	GinkgoHelper()
	previous := expectedConfigurations()[l.addedRoutes]
	change()
	Eventually(l.configurationText).Should(Equal(expectedConfigurations()[l.addedRoutes]))
	l.release()
	var atArrival string
	Eventually(l.arrived).Should(Receive(&atArrival))
	Expect(atArrival).To(Equal(previous), "the configuration of the late write")
	expectSoon(l.expectServed)
}
