package access

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
)

// modelWrite is how the decision about a Gateway ends.
type modelWrite uint8

const (
	writeSucceeds modelWrite = iota
	writeFails               // the configuration is not read, or not written
	writeLost                // it is written, and the answer is lost
	writeCrash               // it is written, and the process restarts
	writeBefore              // the process restarts before it is written
)

var modelWriteNames = [...]string{"", "-> the configuration is not read or written", "-> written, answer lost", "-> written, then the process restarts", "-> the process restarts before the write"}

// demanded returns what the decision about a Gateway passes to States.
func (in *modelInstall) demanded(n int) Demanded {
	g := &in.gateways[n]
	d := Demanded{Demands: map[string]Demand{}, Unknown: g.unread, Settings: in.settings(g.class)}
	for name, host := range g.hosts {
		decided := in.decides(n, name)
		switch {
		case !host.claimed:
		case !decided.spec.requires():
			d.Hostnames = append(d.Hostnames, modelNames[name])
		default:
			d.Demands[modelNames[name]] = in.demand(n, in.protector(n, name), decided)
		}
	}
	slices.Sort(d.Hostnames)
	return d
}

// protector returns the name whose application protects a demanded name.
func (in *modelInstall) protector(n, name int) int {
	if in.inherits(n, name) {
		return modelW
	}
	return name
}

// knownTo returns what the decision about a Gateway knows.
func (w *modelWorld) knownTo(i, n int) Known {
	in := &w.installs[i]
	g := &in.gateways[n]
	k := Known{Uptime: w.uptime(i), InEffect: g.configuration.access(), InEffectKnown: g.read, Frozen: g.state() == ownership.Frozen, Exposure: g.exposure}
	if r := in.report; r != nil {
		k.Read, k.Verdicts, k.Tagged, k.Allows = r.Read, r.Gateways[gatewayName(n)], r.Tagged, r.Allows
	}
	return k
}

// states decides about a Gateway's hostnames.
func (w *modelWorld) states(d Demanded, k Known) map[string]State {
	if w.rules != nil && w.rules.known != nil {
		d, k = w.rules.known(d, k)
	}
	states := States(d, k)
	if w.rules != nil && w.rules.states != nil {
		w.rules.states(states)
	}
	return states
}

// render returns the Gateway's rules.
func (in *modelInstall) render(n int, states map[string]State) modelTable {
	var t modelTable
	for name, host := range in.gateways[n].hosts {
		if !host.claimed {
			continue
		}
		s, decided := states[modelNames[name]]
		switch {
		case !decided || s.Status == Open:
			t[name] = modelRule{kind: ruleOpen}
		case s.Status == Protected:
			t[name] = modelRule{kind: ruleProtected, tag: firstOf(s.AUDTags)}
		default:
			t[name] = modelRule{kind: ruleClosed}
		}
	}
	return t
}

func firstOf(tags []string) string {
	if len(tags) != 1 {
		return fmt.Sprintf("%d tags", len(tags))
	}
	return tags[0]
}

// writes reports whether the decision about a Gateway would read or write the
// configuration, so that a fault can happen.
func (w *modelWorld) writes(i, n int) bool {
	in := &w.installs[i]
	g := &in.gateways[n]
	if !g.exists || g.state() == ownership.Rejected {
		return false
	}
	if !g.read {
		return true
	}
	d := in.demanded(n)
	desired := in.render(n, w.states(d, w.knownTo(i, n)))
	return g.state() != ownership.Frozen && g.configuration != desired.atCloudflare(g.envoy)
}

// build decides about a Gateway, as its reconcile does.
func (w *modelWorld) build(i, n int, o modelWrite) {
	in := &w.installs[i]
	g := &in.gateways[n]
	g.due, g.wake = false, 0
	switch {
	case !g.exists, g.state() == ownership.Rejected: // the configuration stays
	case !g.read && o == writeFails:
		g.wake = w.now + modelRetry
	default:
		if w.serve(i, n, o); w.violation != "" || o == writeCrash || o == writeBefore {
			return
		}
	}
	w.inform(i, n)
}

// inform gives the decision to the account, which decides again if it is another one.
func (w *modelWorld) inform(i, n int) {
	in := &w.installs[i]
	reported := in.tell(n)
	if before := in.gateways[n].reported; before == nil || !reflect.DeepEqual(before, reported) {
		w.requeue(i)
	}
	in.gateways[n].reported = reported
}

// serve decides about the hostnames of a Gateway, and publishes the rules.
func (w *modelWorld) serve(i, n int, o modelWrite) {
	in := &w.installs[i]
	g := &in.gateways[n]
	g.read = true
	d := in.demanded(n)
	k := w.knownTo(i, n)
	states := w.states(d, k)
	g.desired = in.render(n, states)
	w.note += fmt.Sprintf(" wants %s", g.desired.String())
	if w.checkStates(i, n, k, states); w.violation != "" {
		return
	}
	if g.envoy {
		g.published = g.desired
	}
	w.put(i, n, o)
	if o == writeCrash || o == writeBefore {
		w.restart(i)
		return
	}
	inEffect := g.read && g.configuration == g.desired.atCloudflare(g.envoy)
	g.exposure = g.exposure.Next(d, states, inEffect, w.uptime(i))
	w.wakeFor(i, n, states)
	for name := range g.guards {
		if g.configuration == g.desired.atCloudflare(g.envoy) {
			g.guards[name].decided = in.decides(n, name)
		}
		g.guards[name].open = g.hosts[name].claimed && g.effective(name).kind == ruleOpen && (g.guards[name].open || inEffect || g.envoy)
	}
}

// put writes the tunnel's configuration, unless the Gateway is frozen.
func (w *modelWorld) put(i, n int, o modelWrite) {
	g := &w.installs[i].gateways[n]
	configuration := g.desired.atCloudflare(g.envoy)
	if g.state() == ownership.Frozen || g.configuration == configuration {
		return
	}
	switch o {
	case writeFails, writeBefore:
		g.wake = w.now + modelRetry
	case writeLost:
		g.read, g.wake = false, w.now+modelRetry
		fallthrough
	default:
		g.configuration = configuration
	}
}

// wakeFor notes when a state changes on its own.
func (w *modelWorld) wakeFor(i, n int, states map[string]State) {
	g := &w.installs[i].gateways[n]
	for _, s := range states {
		if s.Until == 0 {
			continue
		}
		at := max(w.now+s.Until-w.uptime(i), w.now+time.Millisecond)
		if g.wake == 0 || at < g.wake {
			g.wake = at
		}
	}
}
