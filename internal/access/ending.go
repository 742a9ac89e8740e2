package access

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// addUndemanded adds the states of the hostnames without a demand that stay protected or
// closed for a while, that have a verdict, or that are below a hostname with a state.
func (s *stating) addUndemanded(states map[string]State) {
	if len(states)+len(s.Verdicts) == 0 && s.Exposure.areOpen(s.Hostnames) {
		return // most decisions without Access
	}
	var open []string
	for _, hostname := range s.Hostnames {
		if _, ok := s.Demands[hostname]; ok {
			continue
		}
		if state, ok := s.ending(hostname); ok {
			states[hostname] = state
		} else {
			open = append(open, hostname)
		}
	}
	below := map[string]State{}
	for _, hostname := range open {
		v, _ := s.verdict(hostname)
		if v.Reason == conditions.ReasonProtected {
			v = Verdict{} // it is about a former demand
		}
		if v.Reason != (conditions.Reason{}) || routing.HasWider(states, hostname) {
			below[hostname] = State{Status: Open, Reason: v.Reason, Message: v.Message}
		}
	}
	for hostname, state := range below {
		states[hostname] = state
	}
}

// ending returns the state of a hostname whose demand has gone. It returns false if the
// hostname is open: it never had a demand, or its protection has ended.
//
// Protection ends openingDelay after the demand has gone. It does not end while the Gateway
// is frozen, or while demands are unknown.
func (s *stating) ending(hostname string) (State, bool) {
	state, ok := s.held(hostname)
	if !ok {
		return State{}, false
	}
	opens := s.Exposure.of(hostname).goneSince(s.Uptime) + s.Settings.OpeningDelay
	if s.Unknown || s.Frozen {
		state.Message, state.Until = messageHeld, 0
		return state, true
	}
	if s.Uptime >= opens {
		return State{}, false
	}
	state.Message, state.Until = messageEnding, opens
	return state, true
}

// held returns the protection that a hostname without a demand had until now.
func (s *stating) held(hostname string) (State, bool) {
	r := s.Exposure.of(hostname)
	switch {
	case r.held != nil:
		return *r.held, true
	case r.open || r.byHand:
		return State{}, false
	}
	if rule := s.inEffect(hostname); rule.IsClosed() && s.Settings.AreManaged() || rule.DemandsToken() && s.mayBeManaged(rule) {
		return stateOf(rule), true
	}
	if v := s.Verdicts[hostname]; s.Read && v.Application != nil && v.Application.issuesTokensFor(hostname) {
		return stateOf(&routing.Requirement{TeamName: v.Application.TeamName, AUDTags: []string{v.Application.AUDTag}}), true
	}
	return State{}, false
}

func (s *stating) inEffect(hostname string) *routing.Requirement {
	if !s.InEffectKnown {
		return nil
	}
	return s.InEffect.Of(hostname)
}

// mayBeManaged reports whether a rule in effect may demand tokens of an application of this
// installation. With applications disabled, the account is not read, and only the team tells.
func (s *stating) mayBeManaged(rule *routing.Requirement) bool {
	if !s.Read {
		return s.Settings.AreManaged() || s.Settings.TeamName != "" && rule.TeamName == s.Settings.TeamName
	}
	for _, tag := range rule.AUDTags {
		if _, ok := s.Tagged[tag]; ok {
			return true
		}
	}
	return false
}

// issuesTokensFor reports whether the application is for exactly this hostname, and its
// visitors have tokens.
func (a *Application) issuesTokensFor(hostname string) bool {
	return a.Hostname == hostname && a.AUDTag != "" && !a.Last.Bypass
}

func stateOf(r *routing.Requirement) State {
	if r.Closed {
		return closed(conditions.ReasonPending, "")
	}
	return State{Status: Protected, TeamName: r.TeamName, AUDTags: r.AUDTags, Reason: conditions.ReasonProtected}
}

// Exposure is what a process remembers about the hostnames of a Gateway: which of them it
// has served open, since when a demand waits, and since when a demand has gone. The zero
// value is the Exposure after a start. It is never changed.
type Exposure struct {
	hostnames map[string]exposed
	// open are the hostnames, in the order of the last decision, if all of them are open and
	// none has or had a demand; otherwise nil. Decisions about thousands of hostnames without a demand
	// compare only this list.
	open []string
}

// exposed is what a process remembers about one hostname.
type exposed struct {
	// open reports whether this process has served the hostname open under exactly this
	// name, and nothing has protected or closed it since.
	open bool
	// waits reports whether protection is demanded for the open hostname, since this
	// uptime.
	waits bool
	since time.Duration
	// held is the last state of the hostname's demand if the hostname was protected or
	// closed, until the hostname is open again; otherwise nil.
	held *State
	// decider is the [Demand.DeciderKey] with which the hostname was last protected, as long
	// as it has a demand.
	decider string
	// isGone reports whether the demand has gone, since this uptime.
	isGone bool
	gone   time.Duration
	// byHand reports whether an entry demands the AUD tag of an application
	// made by hand.
	byHand bool
}

func (e Exposure) of(hostname string) exposed { return e.hostnames[hostname] }

// areOpen reports whether these are the hostnames, in this order, and nothing but that they are open is
// remembered about them. It can return false for other reasons.
func (e Exposure) areOpen(hostnames []string) bool {
	if len(e.open) == 0 || len(e.open) != len(hostnames) {
		return false
	}
	return &e.open[0] == &hostnames[0] || slices.Equal(e.open, hostnames) // usually the same list
}

// listOpen lists the hostnames if nothing but that they are open is remembered.
func (e *Exposure) listOpen(hostnames []string) {
	if len(hostnames) != len(e.hostnames) {
		return
	}
	for _, hostname := range hostnames {
		if e.hostnames[hostname] != (exposed{open: true}) {
			return
		}
	}
	e.open = hostnames
}

func (r exposed) application() *Application {
	if r.held == nil {
		return nil
	}
	return r.held.Application
}

// hasOtherDecider reports whether this process has protected the hostname for another level or
// owner, whose backends have seen tokens.
func (r exposed) hasOtherDecider(d *Demand) bool {
	return r.decider != "" && r.decider != d.DeciderKey()
}

// waitsSince returns since when the demand waits; now if it is new.
func (r exposed) waitsSince(now time.Duration) time.Duration {
	if r.waits {
		return r.since
	}
	return now
}

// goneSince returns since when the demand has gone; now if that was not noticed before.
func (r exposed) goneSince(now time.Duration) time.Duration {
	if r.isGone {
		return r.gone
	}
	return now
}

// OpenSince returns, by hostname, the uptime since when protection is demanded for the
// hostnames that may still be open.
func (e Exposure) OpenSince() map[string]time.Duration {
	since := map[string]time.Duration{}
	if len(e.open) > 0 {
		return since // nothing else is remembered
	}
	for hostname, r := range e.hostnames {
		if r.waits {
			since[hostname] = r.since
		}
	}
	return since
}

// Next returns the Exposure after a decision was published. inEffect reports whether the
// data plane has the states: the tunnel's configuration in effect is the desired one, and
// the Envoys' resources are published.
func (e Exposure) Next(d Demanded, states map[string]State, inEffect bool, uptime time.Duration) Exposure {
	if len(d.Demands)+len(d.ByHand)+len(states) == 0 && e.areOpen(d.Hostnames) {
		return e
	}
	next := Exposure{hostnames: make(map[string]exposed, len(e.hostnames))}
	for hostname := range d.Demands {
		demand := d.Demands[hostname]
		next.hostnames[hostname] = e.of(hostname).demanded(states[hostname], demand.DeciderKey(), inEffect, uptime)
	}
	for _, hostname := range d.ByHand {
		r := e.of(hostname).waiting(uptime)
		r.held, r.isGone, r.byHand = nil, false, true
		next.hostnames[hostname] = r.ended(inEffect)
	}
	for _, hostname := range d.Hostnames {
		if _, ok := d.Demands[hostname]; !ok {
			next.hostnames[hostname] = e.of(hostname).undemanded(states[hostname], d.Unknown, inEffect, uptime)
		}
	}
	for hostname, r := range e.hostnames {
		if _, ok := next.hostnames[hostname]; ok || r.held == nil {
			continue
		}
		if r = r.undemanded(*r.held, d.Unknown, false, uptime); uptime < r.gone+d.Settings.OpeningDelay || d.Unknown {
			next.hostnames[hostname] = r // it may come back to the table, and is still protected then
		}
	}
	next.listOpen(d.Hostnames)
	return next
}

// demanded returns what to remember about a hostname with a demand.
func (r exposed) demanded(s State, decider string, inEffect bool, uptime time.Duration) exposed {
	r = r.waiting(uptime)
	r.isGone, r.byHand = false, false
	switch s.Status {
	case Open:
		r.held = nil
	case Protected:
		r.held, r.decider = &s, decider
		r = r.ended(inEffect)
	default:
		r.held = &s
		r = r.ended(true) // it never opens again for this demand
	}
	return r
}

// waiting starts the clock of an open hostname.
func (r exposed) waiting(uptime time.Duration) exposed {
	if r.open {
		r.waits, r.since = true, r.waitsSince(uptime)
	}
	return r
}

// ended ends the time that an open hostname had.
func (r exposed) ended(inEffect bool) exposed {
	if inEffect {
		r.open, r.waits, r.since = false, false, 0
	}
	return r
}

// undemanded returns what to remember about a hostname without a demand.
func (r exposed) undemanded(s State, unknown, inEffect bool, uptime time.Duration) exposed {
	r.waits, r.since, r.byHand = false, 0, r.byHand && !inEffect
	switch {
	case s.Status == Protected || s.Status == Closed:
		r.held = &s
		r.isGone, r.gone = !unknown, r.goneSince(uptime)
	case inEffect:
		return exposed{open: true}
	}
	return r
}
