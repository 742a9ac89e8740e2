package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("a crash of the controller", crashes, func() {
	// Each round kills the controller at a later call in each phase, until no phase makes
	// that many calls.
	DescribeTable("does not change the result of a phase", func(crash func(*controllerproc.Process) simulator.Fault) {
		expectedConfigurations()
		s := newScenario()
		s.start()
		crashes := map[string]int{}
		for call := 0; s.crashRound(call, crash, crashes); call++ {
			Expect(call).To(BeNumerically("<", 20), "the phases make too many calls: %v", crashes)
		}
		Expect(crashes).To(And(
			HaveKeyWithValue("creation", BeNumerically(">=", 3)), // find, create, configure
			HaveKeyWithValue("change", BeNumerically(">=", 1)),   // configure
			HaveKeyWithValue("deletion", BeNumerically(">=", 2)), // read, delete
		))
	}, crashPoints)

	DescribeTable("leaves no tunnel if the Gateway is deleted before the restart", func(crash func(*controllerproc.Process) simulator.Fault) {
		s := newScenario()
		s.start()
		for call := range 3 { // find, create, configure
			s.killAtCall(call, crash)
			s.addGateway()
			Eventually(s.process.Exited()).Should(BeClosed(), "crash at call %d", call)
			s.deleteGateway()
			s.start()
			expectSoon(s.expectDeleted, fmt.Sprintf("crash at call %d", call))
		}
	}, crashPoints)
})

// crashPoints are the points at which the controller crashes around a call.
var crashPoints = []TableEntry{
	Entry("during a call without effect", func(p *controllerproc.Process) simulator.Fault {
		return simulator.Fault{Drop: simulator.DropBeforeWrite, Before: func(simulator.Request) { p.Kill() }}
	}),
	Entry("during a call with effect", func(p *controllerproc.Process) simulator.Fault {
		return simulator.Fault{Drop: simulator.DropAfterWrite, After: func(simulator.Request) { p.Kill() }}
	}),
}

// killAtCall kills the running controller after this number of further calls.
func (s *scenario) killAtCall(call int, crash func(*controllerproc.Process) simulator.Fault) {
	fault := crash(s.process)
	fault.Skip, fault.Times = call, 1
	s.cloudflare.Inject(fault)
}

// crashRound runs all phases and crashes the controller at the call with this
// number in each. It counts the crashes by phase, and reports whether there was
// any.
func (s *scenario) crashRound(call int, crash func(*controllerproc.Process) simulator.Fault, crashes map[string]int) bool {
	GinkgoHelper()
	crashedOnce := false
	for _, p := range s.phases() {
		crashed := s.process.Exited()
		s.killAtCall(call, crash)
		p.action()
		expectSoon(func(g Gomega) {
			select {
			case <-crashed:
				crashedOnce = true
				crashes[p.name]++
				s.start()
				crashed = nil // count the crash once
			default:
			}
			p.check(g)
		}, fmt.Sprintf("%s, crash at call %d", p.name, call))
		s.cloudflare.ClearFaults()
	}
	s.deleteAddedRoutes()
	return crashedOnce
}
