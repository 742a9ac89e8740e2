package access

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
)

// decision is what becomes of one application, ignoring limits of time and other
// applications.
type decision struct {
	name string
	// app is the application; nil if there is none.
	app *owned
	// target is the claim for which the application exists or will exist; nil if there is
	// none.
	target *claim
	// kind is what has to happen.
	kind kind
	// due is the uptime at which it may happen.
	due time.Duration
	// waits is why nothing happens yet, as a message, or "".
	waits string
}

// kind is what has to happen to an application.
type kind int

const (
	// keep changes nothing.
	keep kind = iota
	// create creates the application for the target.
	create
	// update gives the application the fields and the tag of the target, if it has others.
	update
	// remake deletes the application, because another owner or another level decides.
	remake
	// remove deletes the application.
	remove
	// orphan changes nothing: no Gateway demands the application, and its Gateway has no Tunnel.
	orphan
)

// decide returns what becomes of the hostname's application.
func (s *situation) decide(name string) decision {
	d := decision{name: name, app: s.remote.byName[name]}
	if d.app == nil {
		return s.decideWithout(d)
	}
	if s.isKept(d.app, name) {
		return s.keptFor(d)
	}
	d.target = s.heir(d.app, name)
	switch {
	case d.target == nil && s.isDemanded(name):
		d.kind = keep // for a demand that cannot be met now
	case d.target == nil:
		d = s.ended(d)
	case d.app.decider != d.target.decider:
		d.kind, d.due = remake, s.passes(d.app, d.target)
	case d.app.holder != d.target.party:
		d.kind, d.due = update, s.passes(d.app, d.target)
		if d.target.matches(d.app) && d.app.holder != nil && d.app.holder.State == ownership.Accepted {
			d.due = 0 // only the tag changes
		}
	default:
		d.kind = update
	}
	return s.hold(d)
}

// decideWithout returns what becomes of a hostname without an application.
func (s *situation) decideWithout(d decision) decision {
	d.target = s.winner(d.name)
	if d.target != nil && s.covering(d.target) == nil {
		d.kind = create
		if !s.GatewaysKnown && !s.immediate && d.target.spec.BindingCookie {
			d.waits = "the controller creates the application of a wildcard when it has processed all Gateways, because it makes exceptions for other hostnames before."
		}
	}
	return d
}

// isKept reports whether the state of the Gateway in the tag keeps the application as it is.
// An application that lets every request pass does not protect the Gateway, so that a demand
// replaces it.
func (s *situation) isKept(o *owned, name string) bool {
	if o.holder == nil {
		return false
	}
	if demand := s.winner(name); o.Bypass && demand != nil && !demand.bypass {
		return o.holder.State == ownership.Unknown
	}
	switch o.holder.State {
	case ownership.Unknown, ownership.Frozen, ownership.Rejected:
		return true
	default: // Accepted, Departed, Retiring
		return o.holder.DemandsUnknown && s.claimOf(name, o.holder) == nil
	}
}

// keptFor returns the decision to keep the application for the claim of its Gateway.
func (s *situation) keptFor(d decision) decision {
	if held := s.claimOf(d.name, d.app.holder); held != nil && held.isLive() {
		d.target = held
	}
	return d
}

// heir returns the claim for which the application exists from now on: that of the Gateway in
// its tag, unless another demand precedes and differs; nil if there is none.
func (s *situation) heir(o *owned, name string) *claim {
	winner := s.winner(name)
	if o.holder == nil || o.holder.State != ownership.Accepted && !o.Bypass {
		return winner
	}
	held := s.claimOf(name, o.holder)
	if held == nil || !held.isLive() || winner != nil && winner.precedes(held) && !winner.agrees(held) {
		return winner
	}
	if !held.isViable() {
		return nil
	}
	return held
}

// passes returns the uptime from which the application passes to the claim's Gateway.
func (s *situation) passes(o *owned, to *claim) time.Duration {
	holder := o.holder
	if holder == nil || holder == to.party || holder.State == ownership.Retiring || s.immediate || o.Bypass {
		return 0
	}
	if held := s.claimOf(to.demand.Hostname, holder); held != nil && held.isLive() {
		return 0 // the other demand precedes
	}
	return s.afterDelay(s.Memory.traces[o.key()].unheld)
}

// afterDelay returns the uptime at which the opening delay has passed since the instant. If
// that is unset, it has not begun.
func (s *situation) afterDelay(since Instant) time.Duration {
	if !since.IsSet() {
		return s.Uptime + s.delay()
	}
	return since.at + s.delay()
}

// ended returns the decision about an application without a demand.
func (s *situation) ended(d decision) decision {
	holder := d.app.holder
	switch {
	case holder == nil:
		d.kind = orphan
	case holder.State == ownership.Departed:
		d.kind = keep
	case holder.State == ownership.Retiring:
		d.kind = remove
	case !holder.HasTunnel:
		d.kind = orphan
	default:
		d.kind = remove
		if !s.immediate {
			d.due = s.afterDelay(s.Memory.traces[d.app.key()].unwanted)
		}
	}
	return d
}

// decideExtra returns what becomes of an application of the installation for which another
// one has its hostname.
func (s *situation) decideExtra(o *owned) decision {
	d := decision{name: o.covers(), app: o}
	if s.isKept(o, "") {
		return d
	}
	return s.hold(s.ended(d))
}

// hold returns the decision, with the reason why it must wait.
func (s *situation) hold(d decision) decision {
	switch {
	case s.immediate || d.kind == keep || d.kind == orphan:
	case !s.GatewaysKnown && s.needsAllGateways(d):
		d.waits = "the controller changes the application when it has processed all Gateways."
	case d.kind == update && s.widensForOthers(d):
		d.waits = "another Gateway still uses the application. The controller changes it when that Gateway's configuration in effect no longer demands its tokens."
	case (d.kind == remake || d.kind == remove) && s.inEffect(d):
		d.waits = "the controller deletes the application when no configuration in effect demands its tokens."
	}
	return d
}

// needsAllGateways reports whether the decision deletes, hands over or weakens the
// application.
func (s *situation) needsAllGateways(d decision) bool {
	if d.kind != update {
		return true
	}
	return d.app.holder != d.target.party || !d.target.matches(d.app) && !s.isStricter(d.app, d.target)
}

// inEffect reports whether a rule in effect demands the application's tokens, or may demand
// them. The tunnel of a Gateway that retires has gone, and a retained one keeps its last
// rules for ever, which must not keep others from the hostname.
func (s *situation) inEffect(d decision) bool {
	return slices.ContainsFunc(s.parties, func(p *party) bool {
		return p.demandsTokens(d) && (p.State != ownership.Departed || d.kind == remove)
	})
}

// demandsTokens reports whether a rule of the Gateway in effect demands the tokens of the
// decision's application, or may demand them.
func (p *party) demandsTokens(d decision) bool {
	switch {
	case p.State == ownership.Retiring || !p.HasTunnel && !p.InEffectKnown:
		return false
	case p.InEffectKnown:
		return containsSorted(p.InEffect, d.app.AUDTag) && p.mayUse(d)
	}
	// The table of an unknown Gateway is the last one that was known, or empty.
	return p == d.app.holder || p.hostnames[d.name] != nil || p.State == ownership.Unknown && len(p.hostnames) == 0
}

// mayUse reports whether the rules of the Gateway can demand the tokens of the decision's
// application because of a demand. An entry with the AUD tag, which any owner of a Gateway
// can make, must not keep the application from those who demand it.
func (p *party) mayUse(d decision) bool {
	h := p.hostnames[d.name]
	return p == d.app.holder || h != nil && !h.ByHand || p.State == ownership.Departed || p.State == ownership.Unknown
}

// widensForOthers reports whether the update lets the application issue tokens that the demand
// of another Gateway does not admit, while a rule of that Gateway accepts them.
func (s *situation) widensForOthers(d decision) bool {
	after, before := d.target.asApplication(), specOfApplication(d.app.Application)
	if !stricter(&after, &before, s.allows) {
		return false // it only becomes stricter
	}
	return slices.ContainsFunc(s.parties, func(p *party) bool {
		if p == d.target.party || p.State == ownership.Departed || !p.demandsTokens(d) {
			return false
		}
		held := s.claimOf(d.name, p)
		return held == nil || held.bypass || stricter(&after, &held.spec, s.allows)
	})
}
