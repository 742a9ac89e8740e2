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
	outcomeFails                 // the call fails and is not applied
	outcomeLost                  // the call is applied, but its response is lost
	outcomeLate                  // the call fails, but is applied later
	outcomeLimited               // the API responds with 429
	outcomeBudget                // the API request budget is exhausted
	outcomeUnauthorized          // the API refuses the token
	outcomeRecordFails           // the record is not written
	outcomeRecordLost            // the record is written, but the response is lost
	outcomeCrashRecorded         // the process crashes after the record was written
	outcomeCrashActed            // the process crashes after the call was applied
	outcomeCrashLate             // the process crashes, and the call is applied later
	outcomeStatusFails           // the status is not written
	outcomes
)

var outcomeNames = [outcomes]string{
	"succeeds", "fails", "is applied, but its response is lost", "fails, but is applied later", "gets 429", "exceeds the API request budget", "is refused (401)",
	"fails to write its record", "writes its record, but the response is lost", "writes its record, then the process crashes",
	"is applied, then the process crashes", "is sent, then the process crashes, then it is applied", "fails to write the status",
}

// maxSteps limits the steps in a reconcile.
const maxSteps = 40

// plan gathers the Facts and decides, as the executor does before each step.
func (m *model) plan(a int) (Facts, Step) {
	actor := &m.actors[a]
	if !actor.running {
		actor.running, actor.reconcileDue, actor.steps = true, false, 0
		m.build(a)
	}
	f, s := m.decide(a)
	if s.Destructive() && !m.sameLive(a, f) {
		actor.liveObject, actor.liveGateway = true, true
		f, s = m.decide(a)
	}
	return f, s
}

func (m *model) decide(a int) (Facts, Step) {
	actor := &m.actors[a]
	f := m.gather(a)
	f.Memory = Observe(f)
	actor.memory = f.Memory
	m.updateMissing(a, f)
	if actor.mustList {
		return f, actor.claim
	}
	return f, Decide(f)
}

// sameLive reports whether the live Tunnel and Gateway are equal to the Facts.
func (m *model) sameLive(a int, f Facts) bool {
	live := m.actors[a].view
	return live.object != nil && live.object.ResourceVersion == f.Object.ResourceVersion && live.object.UID == f.Object.UID && live.gateway.facts() == f.Gateway
}

// possibleOutcomes lists what can happen to the step.
func possibleOutcomes(s Step, listing bool) []outcome {
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

// execute executes a step and concludes its result.
func (m *model) execute(a int, f Facts, s Step, o outcome) {
	actor := &m.actors[a]
	if s.Ends() {
		m.finish(a, f, s, o)
		return
	}
	if actor.steps++; actor.steps > maxSteps {
		m.violate("a reconcile has more than %d steps without a wait", maxSteps)
	}
	m.checkExternal(a, s)
	first := !actor.mustList
	if s.Action == Claim && first {
		ok := false
		if f, ok = m.claimObject(a, f, s, o); !ok {
			return
		}
	}
	if s.Record != nil && first && !m.record(a, f, s, o) {
		return
	}
	if s.Action == Claim && first && s.Record != nil {
		actor.mustList, actor.claim = true, s // the Tunnels are listed in a separate step
		return
	}
	m.act(a, f, s, o)
}

// claimObject creates the Tunnel object or updates its spec. It returns the new Facts, and
// whether the step continues.
func (m *model) claimObject(a int, f Facts, s Step, o outcome) (Facts, bool) {
	actor := &m.actors[a]
	if o == outcomeFails {
		return f, m.conclude(a, s, Result{Err: kubernetesError})
	}
	if f.Object == nil {
		if actor.object != nil {
			return f, m.stale(a, s)
		}
		t := v1alpha1.Tunnel{Spec: DesiredSpec(f)}
		t.Name = ObjectName(f.Name)
		actor.object = m.newObject(m.newUID(), t)
	} else if spec := DesiredSpec(f); !equality.Semantic.DeepEqual(spec, f.Object.Spec) {
		if !m.current(a, f) {
			return f, m.stale(a, s)
		}
		if setting := Disagreement(actor.object.Spec, spec); setting != "" {
			m.violate("the update of the spec changes %s, which the API server rejects", setting)
		}
		t := actor.object.Tunnel
		t.Spec = spec
		actor.object = m.newObject(actor.object.uid, t)
		updated := actor.object.Tunnel
		f.Object = &updated
	}
	actor.liveObject = true
	return f, true
}

// current reports whether the live Tunnel is equal to the Facts.
func (m *model) current(a int, f Facts) bool {
	live := m.actors[a].object
	return live != nil && live.UID == f.Object.UID && live.ResourceVersion == f.Object.ResourceVersion
}

func (m *model) stale(a int, s Step) bool {
	actor := &m.actors[a]
	actor.liveObject, actor.liveGateway, actor.liveRivals = true, true, true
	m.description += "; conflict"
	return m.conclude(a, s, Result{Stale: true})
}

// record writes the record of a step. It reports whether the step continues.
func (m *model) record(a int, f Facts, s Step, o outcome) bool {
	actor := &m.actors[a]
	if o == outcomeRecordFails {
		return m.conclude(a, s, Result{Err: kubernetesError})
	}
	if !m.current(a, f) {
		return m.stale(a, s)
	}
	t := actor.object.Tunnel
	m.checkRecordedDataPlane(a, t.Status, *s.Record)
	t.Status = *s.Record
	actor.object = m.newObject(actor.object.uid, t)
	if c := m.recordedTunnel(a); s.Action == Configure && c != nil && t.Spec.Existing != nil && t.Spec.Existing.Takeover {
		c.original = false // takeover was permitted when the write was recorded
	}
	if actor.backup == nil && t.Status.TunnelID != "" {
		actor.backup = actor.object
	}
	switch o {
	case outcomeRecordLost:
		m.sleep(provider.CallTimeout)
		return m.conclude(a, s, Result{Err: kubernetesError})
	case outcomeCrashRecorded:
		m.restart()
		return false
	default:
	}
	actor.liveObject = true
	return true
}

// conclude ends a step. It returns false.
func (m *model) conclude(a int, s Step, r Result) bool {
	actor := &m.actors[a]
	r.Uptime = m.uptime()
	actor.memory = Conclude(actor.memory, s, r)
	actor.mustList = false
	return false
}

// finish ends the reconcile: it writes the status and sleeps.
func (m *model) finish(a int, f Facts, s Step, o outcome) {
	actor := &m.actors[a]
	actor.running, actor.steps = false, 0
	actor.liveObject, actor.liveGateway, actor.liveRivals = false, false, false
	actor.nextReconcile, actor.built, actor.builtBoth = 0, "", false
	if s.Action == Wait {
		wait := s.Delay
		actor.waitRepeated = wait == actor.lastWait && wait < tick
		if actor.lastWait = 0; wait < tick {
			actor.lastWait = wait
		}
		if actor.waitRepeated {
			wait = tick
		}
		actor.nextReconcile = m.now + wait
	}
	m.checkExposure(a, f, s)
	if f.Object == nil {
		return
	}
	status := Status(f)
	if equality.Semantic.DeepEqual(status, f.Object.Status) {
		return
	}
	if retry := m.now + time.Second; o == outcomeStatusFails || !m.current(a, f) {
		if actor.nextReconcile == 0 || actor.nextReconcile > retry {
			actor.nextReconcile = retry
		}
		return
	}
	m.checkReconciled(a, f, status)
	t := actor.object.Tunnel
	m.checkRecordedDataPlane(a, t.Status, status)
	t.Status = status
	actor.object = m.newObject(actor.object.uid, t)
	f.Object = &t
	if repeated := Status(f); !equality.Semantic.DeepEqual(repeated, status) {
		m.violate("the status changes without a change of the Facts\n%s\n%s", describeStatus(status), describeStatus(repeated))
	}
}

// restart starts a new process.
func (m *model) restart() {
	m.boot = m.now
	for a := range m.count {
		actor := &m.actors[a]
		actor.memory, actor.running, actor.steps, actor.mustList, actor.claim = Memory{}, false, 0, false, Step{}
		actor.built, actor.builtBoth = "", false
		actor.liveObject, actor.liveGateway, actor.liveRivals = false, false, false
		actor.missing, actor.nextReconcile, actor.lastWait, actor.waitRepeated = 0, 0, 0, false
		actor.revokedAt, actor.exposedSince = 0, 0
	}
	m.refreshCache()
}

// refreshCache brings the cache up to date, which makes every actor's reconcile due.
func (m *model) refreshCache() {
	m.staleCache, m.staleRival, m.staleSleeps = nil, rivalObject{}, 0
	m.requeueAll()
}

// sleep advances the time.
func (m *model) sleep(d time.Duration) {
	m.now += d
	m.settle()
}
