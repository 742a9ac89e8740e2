package ingress

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// maxPossible is how many configurations may be in use by connectors. Above it, the
// configuration counts as unknown.
const maxPossible = 64

// Observed is what a process knows about a tunnel configuration.
type Observed struct {
	// Last is the configuration that Cloudflare last reported or acknowledged, or nil.
	Last *provider.Configuration
	// Known reports whether no failed write can have replaced Last.
	Known bool
	// Late are the hashes of earlier configurations that Cloudflare may still apply.
	Late []string
	// Applied reports whether an earlier process had the desired configuration
	// acknowledged.
	Applied bool
	// Elsewhere reports whether no tunnel configuration can lead requests to Envoy yet.
	Elsewhere bool
	// OpenSince are, by hostname, the uptimes since when hostnames that may still be open
	// wait for their protection; see [access.Exposure.OpenSince].
	OpenSince map[string]time.Duration
}

// AccessChanges is what a process remembers about the hostnames on one Gateway while the
// rules for their new Access settings are outstanding. The zero value is the state after
// a start.
type AccessChanges struct {
	// possible are the configurations that connectors may have. complete means that they have no
	// other one, and overflow that there are too many to remember.
	possible           []indexedRules
	complete, overflow bool
	// since is, by hostname, the uptime at which a hostname that is still open became
	// protected.
	since map[string]time.Duration
}

// Exposure is how the two Envoy listeners serve the hostnames in a table.
type Exposure struct {
	envoy.Transition
	// Kept are the protected hostnames that the open listener still serves, and Closed
	// the hostnames for which it returns 403, in order.
	Kept, Closed []string
	// Waiting are the open hostnames that wait for an application, in order.
	Waiting []string
	// Until is the uptime at which the next kept or waiting hostname closes; 0 if there is
	// none.
	Until time.Duration
}

// Next returns how Envoy serves the hostnames in a table until the connectors have the
// desired configuration, and what to remember once this is published. last is what this
// process last published for the same Tunnel, or nil. uptime is the time since the
// process started.
//
// The protected listener serves a hostname only if all rules that lead there demand its
// Access settings. A protected hostname stays on the open listener only if this process
// served it there under exactly this name, with the routes that it had then, and no
// longer than [access.MaxOpen]. An unprotected hostname is also served where the rules still lead.
func (a AccessChanges) Next(t *routing.Table, desired provider.Configuration, o Observed, last *envoy.Resources, uptime time.Duration) (AccessChanges, Exposure) {
	wanted := indexRules(desired, desired.Hash())
	possible, complete := a.candidates(o, wanted)
	next := AccessChanges{possible: add(possible, wanted), complete: complete, overflow: a.overflow && !complete, since: map[string]time.Duration{}}
	if len(next.possible) > maxPossible {
		next = AccessChanges{overflow: true, since: next.since}
	}
	e := exposing{possible: possible, unknown: !complete, before: earlier(a.since, o.OpenSince), since: next.since, uptime: uptime, isOpen: last.IsOpen}
	var x Exposure
	if !complete || len(next.possible) > 1 {
		x = e.exposure(t)
	}
	e.addWaiting(t, &x)
	x.Until = next.until()
	return next, x
}

// earlier returns the earlier one of the uptimes for each hostname.
func earlier(a, b map[string]time.Duration) map[string]time.Duration {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]time.Duration{}
	}
	for hostname, since := range b {
		if other, ok := all[hostname]; !ok || since < other {
			all[hostname] = since
		}
	}
	return all
}

// Close returns how Envoy serves the last table once it closes the kept and the waiting
// hostnames that have been open for too long, and what to remember once this is published.
func (a AccessChanges) Close(x Exposure, uptime time.Duration) (AccessChanges, Exposure) {
	closed := func(name string) bool { return uptime >= a.since[hostnameOf(name)]+access.MaxOpen }
	x.Closed, x.Kept, x.Waiting = slices.Clone(x.Closed), slices.Clone(x.Kept), slices.Clone(x.Waiting)
	for _, name := range slices.Concat(x.Kept, x.Waiting) {
		if closed(name) {
			x.Closed = append(x.Closed, name)
		}
	}
	x.Kept, x.Waiting = slices.DeleteFunc(x.Kept, closed), slices.DeleteFunc(x.Waiting, closed)
	a.since = maps.Clone(a.since)
	maps.DeleteFunc(a.since, func(_ string, since time.Duration) bool { return uptime >= since+access.MaxOpen })
	x.Until = a.until()
	return a, x
}

// until returns the uptime at which the next kept hostname closes; 0 if there is none.
func (a AccessChanges) until() (until time.Duration) {
	for _, since := range a.since {
		if until == 0 || since+access.MaxOpen < until {
			until = since + access.MaxOpen
		}
	}
	return until
}

// nameOf returns a hostname for a list: the empty hostname is "*". hostnameOf is the
// reverse.
func nameOf(hostname string) string { return cmp.Or(hostname, "*") }

func hostnameOf(name string) string {
	if name == "*" {
		return ""
	}
	return name
}

// candidates returns the configurations that connectors may have before the next write, and
// whether they have no other one.
func (a AccessChanges) candidates(o Observed, wanted indexedRules) (possible []indexedRules, complete bool) {
	switch {
	case o.Elsewhere:
		return nil, true
	case a.overflow && !o.Known:
		return nil, false
	case o.Last != nil:
		return a.afterResponse(o, wanted)
	case o.Applied && !a.complete:
		return []indexedRules{wanted}, true
	default:
		return a.possible, a.complete
	}
}

// afterResponse is candidates once Cloudflare has reported or acknowledged a
// configuration, which another write may have replaced, or may still replace.
func (a AccessChanges) afterResponse(o Observed, wanted indexedRules) (possible []indexedRules, complete bool) {
	last := indexRules(*o.Last, o.Last.Hash())
	possible = add(a.possible, last)
	named := add(possible, wanted)
	isUnknown := func(hash string) bool {
		return !slices.ContainsFunc(named, func(x indexedRules) bool { return x.hash == hash })
	}
	switch {
	case slices.ContainsFunc(o.Late, isUnknown):
		// An earlier process wrote it, or it combines rules from two configurations.
		return possible, a.complete
	case !o.Known:
		return possible, true
	}
	isSettled := func(x indexedRules) bool { return !slices.Contains(o.Late, x.hash) }
	return add(slices.DeleteFunc(slices.Clone(a.possible), isSettled), last), true
}

// add adds a configuration, unless it is already in the list.
func add(list []indexedRules, x indexedRules) []indexedRules {
	if slices.ContainsFunc(list, func(y indexedRules) bool { return y.hash == x.hash }) {
		return list
	}
	return append(slices.Clone(list), x)
}

// IsSettled reports whether each hostname is served only by the listener for its Access
// settings, as before and after a change.
func (x *Exposure) IsSettled() bool { return len(x.Placements) == 0 }

// exposing decides how the listeners serve each hostname.
type exposing struct {
	possible []indexedRules
	unknown  bool
	// isOpen reports whether this process serves a hostname on the open listener. For the
	// protected hostnames among them, before and since are the times at which they became
	// protected.
	isOpen        func(hostname string) bool
	before, since map[string]time.Duration
	uptime        time.Duration
}

func (e *exposing) exposure(t *routing.Table) Exposure {
	x := Exposure{Transition: envoy.Transition{Placements: map[string]envoy.Placement{}}}
	distinguished := map[string]struct{}{}
	for _, rules := range e.possible {
		for _, hostname := range rules.hostnames() {
			distinguished[hostname] = struct{}{}
		}
	}
	x.Hostnames = slices.Sorted(maps.Keys(distinguished))
	for _, host := range t.Hosts(x.Hostnames...) {
		p := e.place(host)
		if p == envoy.PlacementOf(host.Access) {
			continue
		}
		x.Placements[host.Hostname] = p
		if name := nameOf(host.Hostname); p.Open == envoy.Kept && host.Access.DemandsToken() {
			x.Kept = append(x.Kept, name)
		} else if p.Open == envoy.Closed {
			x.Closed = append(x.Closed, name)
		}
	}
	return x
}

// addWaiting adds the hostnames that wait for an application. They close in time although no
// rule is outstanding, and even if no more decision about the Gateway can be made.
func (e *exposing) addWaiting(t *routing.Table, x *Exposure) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(t.Access)), (*routing.Requirement).IsWaiting) {
		return // nearly always
	}
	if x.Placements == nil {
		x.Placements = map[string]envoy.Placement{}
	}
	for _, hostname := range t.Hostnames(x.Hostnames...) {
		if !t.Access.Of(hostname).IsWaiting() {
			continue
		}
		if e.placeOpen(hostname) == envoy.Kept {
			x.Waiting = append(x.Waiting, nameOf(hostname))
			continue
		}
		x.Placements[hostname] = envoy.Placement{Open: envoy.Closed, Protected: envoy.Closed}
		x.Closed = append(x.Closed, nameOf(hostname))
	}
}

func (e *exposing) place(host *routing.Host) envoy.Placement {
	toOpen, toProtected, demanded := e.unknown, e.unknown, !e.unknown
	for _, rules := range e.possible {
		r := rules.reached(host.Hostname)
		toOpen, toProtected = toOpen || r.open, toProtected || len(r.protected) > 0
		demanded = demanded && (!host.Access.DemandsToken() || r.atLeast(host.Access))
	}
	p := envoy.PlacementOf(host.Access)
	if !host.Access.DemandsToken() {
		return placeOther(p, host.Access, toProtected)
	}
	switch {
	case !demanded:
		p.Open, p.Protected = e.placeOpen(host.Hostname), envoy.Closed
	case toOpen:
		p.Open = e.placeOpen(host.Hostname)
	}
	return p
}

// placeOther places a hostname that demands no token, to whose protected listener rules may
// lead.
func placeOther(p envoy.Placement, access *routing.Requirement, toProtected bool) envoy.Placement {
	switch {
	case !toProtected || access.IsClosed(): // with any rules
	case access.IsWaiting():
		p.Protected = envoy.Closed
	default:
		p.Protected = envoy.Served
	}
	return p
}

// placeOpen returns how the open listener serves a hostname whose rule is outstanding.
func (e *exposing) placeOpen(hostname string) envoy.Serving {
	since, known := e.before[hostname]
	if !known {
		since = e.uptime
	}
	if !e.isOpen(hostname) || e.uptime >= since+access.MaxOpen {
		return envoy.Closed
	}
	e.since[hostname] = since
	return envoy.Kept
}
