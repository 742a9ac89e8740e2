package tunnel

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// outcome is what happens to a step.
type outcome uint8

const (
	outcomeSucceeds      outcome = iota
	outcomeFails                 // the call fails, and is not applied
	outcomeLost                  // the call is applied, and its answer is lost
	outcomeLate                  // the call fails, and is applied later
	outcomeLimited               // the API answers 429
	outcomeBudget                // the budget of requests is used up
	outcomeUnauthorized          // the API refuses the token
	outcomeRecordFails           // the record is not written
	outcomeRecordLost            // the record is written, and the answer is lost
	outcomeCrashRecorded         // the process ends after the record was written
	outcomeCrashActed            // the process ends after the call was applied
	outcomeCrashLate             // the process ends, and the call is applied later
	outcomeStatusFails           // the status is not written
	outcomes
)

var outcomeNames = [outcomes]string{
	"succeeds", "fails", "is applied, but its answer is lost", "fails, and is applied later", "gets 429", "finds the budget used up", "is refused (401)",
	"fails to write its record", "writes its record, but the answer is lost", "writes its record, then the process crashes",
	"is applied, then the process crashes", "is sent, then the process crashes; it is applied later", "ends with a status that is not written",
}

// maxSteps is how many steps a reconcile may have.
const maxSteps = 40

// plan gathers the Facts and decides, as the executor does before each step.
func (w *model) plan(a int) (Facts, Step) {
	me := &w.actors[a]
	if !me.running {
		me.running, me.dirty, me.steps = true, false, 0
	}
	f, s := w.decide(a)
	if s.Destructive() && !w.sameLive(a, f) {
		me.liveObject, me.liveGateway = true, true
		f, s = w.decide(a)
	}
	return f, s
}

func (w *model) decide(a int) (Facts, Step) {
	me := &w.actors[a]
	f := w.gather(a)
	f.Memory = Observe(f)
	me.memory = f.Memory
	w.noteMissing(a, f)
	if me.listing {
		return f, me.claim
	}
	return f, Decide(f)
}

// sameLive reports whether Tunnel and Gateway are as the Facts say.
func (w *model) sameLive(a int, f Facts) bool {
	live := w.actors[a].view
	return live.object != nil && live.object.ResourceVersion == f.Object.ResourceVersion && live.object.UID == f.Object.UID && live.gateway.facts() == f.Gateway
}

// possible returns the outcomes that the step can have.
func possible(s Step, listing bool) []outcome {
	if s.Ends() {
		return []outcome{outcomeSucceeds, outcomeStatusFails}
	}
	list := []outcome{outcomeSucceeds}
	if s.Record != nil && !listing {
		list = append(list, outcomeRecordFails, outcomeRecordLost, outcomeCrashRecorded)
	}
	switch s.Action {
	case ReadTunnel, FindByName, ReadConfiguration, ListConnections:
		list = append(list, outcomeFails, outcomeLimited, outcomeBudget, outcomeUnauthorized)
	case Create, Configure, RotateToken, Delete:
		list = append(list, outcomeFails, outcomeLost, outcomeLate, outcomeLimited, outcomeBudget, outcomeCrashActed, outcomeCrashLate)
	case ReadToken:
		list = append(list, outcomeFails, outcomeLost, outcomeLimited, outcomeBudget, outcomeCrashActed)
	case Disconnect:
		list = append(list, outcomeFails, outcomeLost, outcomeCrashActed)
	case Claim, RunConnectors, StopConnectors, WithdrawStatuses, DeleteObject:
		list = append(list, outcomeFails, outcomeLost, outcomeCrashActed)
	default: // a Record has no action
	}
	return list
}

// execute carries out a step and concludes from it.
func (w *model) execute(a int, f Facts, s Step, o outcome) {
	me := &w.actors[a]
	if s.Ends() {
		w.finish(a, f, s, o)
		return
	}
	if me.steps++; me.steps > maxSteps {
		w.violate("a reconcile has more than %d steps without a wait", maxSteps)
	}
	w.checkExternal(a, s)
	first := !me.listing
	if s.Action == Claim && first {
		goes := false
		if f, goes = w.claimObject(a, f, s, o); !goes {
			return
		}
	}
	if s.Record != nil && first && !w.record(a, f, s, o) {
		return
	}
	if s.Action == Claim && first && s.Record != nil {
		me.listing, me.claim = true, s // the Tunnels are listed in a step of its own
		return
	}
	w.act(a, f, s, o)
}

// claimObject creates the Tunnel object or updates its spec. It returns the Facts
// afterwards, and whether the step goes on.
func (w *model) claimObject(a int, f Facts, s Step, o outcome) (Facts, bool) {
	me := &w.actors[a]
	if o == outcomeFails {
		return f, w.conclude(a, s, Result{Err: kubernetesError})
	}
	if f.Object == nil {
		if me.object != nil {
			return f, w.stale(a, s)
		}
		t := v1alpha1.Tunnel{Spec: DesiredSpec(f)}
		t.Name = ObjectName(f.Name)
		me.object = w.newObject(w.newUID(), t)
	} else if spec := DesiredSpec(f); !equality.Semantic.DeepEqual(spec, f.Object.Spec) {
		if !w.current(a, f) {
			return f, w.stale(a, s)
		}
		if setting := Disagreement(me.object.Spec, spec); setting != "" {
			w.violate("the update of the spec changes %s, which the API server refuses", setting)
		}
		t := me.object.Tunnel
		t.Spec = spec
		me.object = w.newObject(me.object.uid, t)
		updated := me.object.Tunnel
		f.Object = &updated
	}
	me.liveObject = true
	return f, true
}

// current reports whether the Tunnel is as the Facts say.
func (w *model) current(a int, f Facts) bool {
	live := w.actors[a].object
	return live != nil && live.UID == f.Object.UID && live.ResourceVersion == f.Object.ResourceVersion
}

func (w *model) stale(a int, s Step) bool {
	me := &w.actors[a]
	me.liveObject, me.liveGateway, me.liveRivals = true, true, true
	w.said += "; conflict"
	return w.conclude(a, s, Result{Stale: true})
}

// record writes the record of a step. It reports whether the step goes on.
func (w *model) record(a int, f Facts, s Step, o outcome) bool {
	me := &w.actors[a]
	if o == outcomeRecordFails {
		return w.conclude(a, s, Result{Err: kubernetesError})
	}
	if !w.current(a, f) {
		return w.stale(a, s)
	}
	t := me.object.Tunnel
	t.Status = *s.Record
	me.object = w.newObject(me.object.uid, t)
	if c := w.recordedTunnel(a); s.Action == Configure && c != nil && t.Spec.Existing != nil && t.Spec.Existing.Takeover {
		c.original = false // it was permitted when that was recorded
	}
	if me.backup == nil && t.Status.TunnelID != "" {
		me.backup = me.object
	}
	switch o {
	case outcomeRecordLost:
		w.pass(provider.CallTimeout)
		return w.conclude(a, s, Result{Err: kubernetesError})
	case outcomeCrashRecorded:
		w.restart()
		return false
	default:
	}
	me.liveObject = true
	return true
}

// conclude ends a step. It returns false.
func (w *model) conclude(a int, s Step, r Result) bool {
	me := &w.actors[a]
	r.Uptime = w.uptime()
	me.memory = Conclude(me.memory, s, r)
	me.listing = false
	return false
}

// finish ends the reconcile: it writes the status and sleeps.
func (w *model) finish(a int, f Facts, s Step, o outcome) {
	me := &w.actors[a]
	me.running, me.steps = false, 0
	me.liveObject, me.liveGateway, me.liveRivals = false, false, false
	me.wake = 0
	if s.Action == Wait {
		wait := s.Delay
		me.repeated = wait == me.waited && wait < tick
		if me.waited = 0; wait < tick {
			me.waited = wait
		}
		if me.repeated {
			wait = tick
		}
		me.wake = w.now + wait
	}
	if f.Object == nil {
		return
	}
	status := Status(f)
	if equality.Semantic.DeepEqual(status, f.Object.Status) {
		return
	}
	if retry := w.now + time.Second; o == outcomeStatusFails || !w.current(a, f) {
		if me.wake == 0 || me.wake > retry {
			me.wake = retry
		}
		return
	}
	t := me.object.Tunnel
	t.Status = status
	me.object = w.newObject(me.object.uid, t)
	f.Object = &t
	if again := Status(f); !equality.Semantic.DeepEqual(again, status) {
		w.violate("the status changes although nothing else does\n%s\n%s", describeStatus(status), describeStatus(again))
	}
}

// restart begins a new process.
func (w *model) restart() {
	w.boot = w.now
	for a := range w.count {
		me := &w.actors[a]
		me.memory, me.running, me.steps, me.listing, me.claim = Memory{}, false, 0, false, Step{}
		me.liveObject, me.liveGateway, me.liveRivals = false, false, false
		me.missing, me.wake, me.waited, me.repeated = 0, 0, 0, false
	}
	w.thaw()
}

// thaw lets the cache catch up, which gives every actor a reason to reconcile.
func (w *model) thaw() {
	w.frozen, w.frozenRival, w.frozenSleeps = nil, rivalObject{}, 0
	w.touch()
}

// pass lets time pass.
func (w *model) pass(d time.Duration) {
	w.now += d
	w.settle()
}
