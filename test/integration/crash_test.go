package integration

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var _ = Describe("a crash of the controller", slow, func() {
	// Each round kills the controller at a later call of each phase, until no
	// phase makes that many calls.
	DescribeTable("is repaired after the restart, at each call of the Cloudflare API", func(at func(*controllerproc.Process) simulator.Fault) {
		undisturbed()
		l := newLife()
		l.start()
		crashes := map[string]int{}
		for call := 0; l.crashRound(call, at, crashes); call++ {
			Expect(call).To(BeNumerically("<", 20), "the phases make too many calls: %v", crashes)
		}
		Expect(crashes).To(And(
			HaveKeyWithValue("creation", BeNumerically(">=", 3)), // find, create, configure
			HaveKeyWithValue("change", BeNumerically(">=", 1)),   // configure
			HaveKeyWithValue("deletion", BeNumerically(">=", 2)), // read, delete
		))
	}, moments)

	DescribeTable("leaves no tunnel behind if the Gateway is deleted before the controller restarts", func(at func(*controllerproc.Process) simulator.Fault) {
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

// crashPoints are the points at which the controller crashes around a call.
var moments = []TableEntry{
	Entry("just before the call takes effect", func(p *controllerproc.Process) simulator.Fault {
		return simulator.Fault{Drop: simulator.DropBeforeWrite, Before: func(simulator.Request) { p.Kill() }}
	}),
	Entry("just after the call takes effect", func(p *controllerproc.Process) simulator.Fault {
		return simulator.Fault{Drop: simulator.DropAfterWrite, After: func(simulator.Request) { p.Kill() }}
	}),
}

// killAtCall kills the running controller after this number of further calls.
func (l *life) killAt(call int, at func(*controllerproc.Process) simulator.Fault) {
	fault := at(l.process)
	fault.Skip, fault.Times = call, 1
	l.edge.Inject(fault)
}

// crashRound runs all phases and crashes the controller at the call with this
// number in each. It counts the crashes by phase, and reports whether there was
// any.
func (l *life) crashRound(call int, at func(*controllerproc.Process) simulator.Fault, crashes map[string]int) bool {
	GinkgoHelper()
	crashedOnce := false
	for _, p := range l.phases() {
		crashed := l.process.Exited()
		l.killAt(call, at)
		p.act()
		soon(func(g Gomega) {
			select {
			case <-crashed:
				crashedOnce = true
				crashes[p.name]++
				l.start()
				crashed = nil // count the crash once
			default:
			}
			p.outcome(g)
		}, fmt.Sprintf("%s, crash at call %d", p.name, call))
		l.edge.ClearFaults()
	}
	l.dropRoutes()
	return crashedOnce
}
