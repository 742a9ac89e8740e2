package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("a crash", slow, func() {
	// Round by round the controller is killed at a later call of every phase,
	// until no phase has that many.
	DescribeTable("leaves nothing wrong behind, whichever call of the API it meets", func(at func(*controllerproc.Process) simulator.Fault) {
		undisturbed()
		l := newLife()
		l.start()
		crashes := map[string]int{}
		for call := 0; l.crashRound(call, at, crashes); call++ {
			Expect(call).To(BeNumerically("<", 20), "a phase of so many calls: %v", crashes)
		}
		Expect(crashes).To(And(
			HaveKeyWithValue("creation", BeNumerically(">=", 3)), // find, create, configure
			HaveKeyWithValue("change", BeNumerically(">=", 1)),   // configure
			HaveKeyWithValue("deletion", BeNumerically(">=", 2)), // look, delete
		))
	}, moments)

	DescribeTable("leaves no tunnel behind when its Gateway is deleted before the controller is back", func(at func(*controllerproc.Process) simulator.Fault) {
		l := newLife()
		l.start()
		for call := range 3 { // find, create, configure
			l.killAt(call, at)
			l.addGateway()
			Eventually(l.process.Exited()).Should(BeClosed(), "crash at call %d", call)
			l.deleteGateway()
			l.start()
			soon(l.gone, fmt.Sprintf("crash at call %d", call))
		}
	}, moments)
})

// moments are those of a crash around a call.
var moments = []TableEntry{
	Entry("just before it is carried out", func(p *controllerproc.Process) simulator.Fault {
		return simulator.Fault{Drop: simulator.DropBeforeWrite, Before: func(simulator.Request) { p.Kill() }}
	}),
	Entry("just after it was carried out", func(p *controllerproc.Process) simulator.Fault {
		return simulator.Fault{Drop: simulator.DropAfterWrite, After: func(simulator.Request) { p.Kill() }}
	}),
}

// killAt kills the process that runs at the call of that number from now on.
func (l *life) killAt(call int, at func(*controllerproc.Process) simulator.Fault) {
	fault := at(l.process)
	fault.Skip, fault.Times = call, 1
	l.edge.Inject(fault)
}

// crashRound goes through all phases and counts in which of them there was a
// call of that number to crash at. It reports whether there was any.
func (l *life) crashRound(call int, at func(*controllerproc.Process) simulator.Fault, crashes map[string]int) bool {
	GinkgoHelper()
	met := false
	for _, p := range l.phases() {
		crashed := l.process.Exited()
		l.killAt(call, at)
		p.act()
		soon(func(g Gomega) {
			select {
			case <-crashed:
				met = true
				crashes[p.name]++
				l.start()
				crashed = nil // once
			default:
			}
			p.outcome(g)
		}, fmt.Sprintf("%s, crash at call %d", p.name, call))
		l.edge.ClearFaults()
	}
	l.dropRoutes()
	return met
}
