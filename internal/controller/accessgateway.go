package controller

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// accessMemory is what the process remembers about the access to a Gateway's hostnames.
type accessMemory struct {
	exposure access.Exposure
	// rulesRead is the Tunnel whose rules in effect this process has known; "" for none.
	rulesRead types.UID
	// lastWrite is the uptime at which the configuration was last written; nil for never.
	lastWrite *time.Duration
	// contested are the hostnames whose contested application an event has reported.
	contested map[string]bool
	// until is the uptime at which the state of a hostname changes on its own, or at which
	// the next decision sees more verdicts; 0 for none.
	until time.Duration
}

// knownAccess returns what the process knows about applications, for the decision about the
// Gateway. object is its Tunnel, or nil.
func (r *run) knownAccess(object *v1alpha1.Tunnel) access.Known {
	m, uptime := &r.memory.access, r.process.clock.uptime()
	seen := r.process.access.known(r.key.NamespacedName, m.lastWrite, uptime)
	if seen.hidden > 0 {
		m.until = uptime + seen.hidden
	}
	k := access.Known{
		Uptime: uptime, Read: seen.report.Read, Verdicts: seen.verdicts, Tagged: seen.report.Tagged, Allows: seen.report.Allows,
		Frozen: object != nil && object.Status.Phase == v1alpha1.TunnelBlocked, Exposure: m.exposure,
	}
	if object == nil || r.tunnel.object == nil || r.tunnel.object.UID != object.UID {
		return k // nothing is known about its tunnel
	}
	if r.tunnel.memory.KnowsRules() {
		m.rulesRead = object.UID
	}
	// Later, the last rules that Cloudflare has reported or acknowledged count: a lost answer
	// must not close what works.
	if k.InEffectKnown = m.rulesRead == object.UID && r.lastConfiguration() != nil; k.InEffectKnown {
		k.InEffect = ingress.InEffect(*r.lastConfiguration())
	}
	return k
}

// seenAccess is what a decision about a Gateway sees of the account's report.
type seenAccess struct {
	report   access.Report
	verdicts access.Verdicts
	// hidden is how long some verdicts are not seen; 0 if all are.
	hidden time.Duration
}

// known returns what the decision about the Gateway sees of its account's last report.
// lastWrite is the uptime at which the tunnel's configuration was last written, or nil.
func (b *accessBook) known(name types.NamespacedName, lastWrite *time.Duration, uptime time.Duration) (seen seenAccess) {
	b.mu.Lock()
	entry := b.entries[name]
	if entry == nil {
		b.mu.Unlock()
		return seenAccess{} // its account is known after the first decision
	}
	account := entry.account
	b.mu.Unlock()
	seen.report = b.accounts.lastReport(account)
	b.mu.Lock()
	defer b.mu.Unlock()
	seen.verdicts, seen.hidden = entry.shown.next(seen.report.Gateways[name], lastWrite, uptime)
	return seen
}

// needsRules reports whether the result depends on the rules in effect, which the process
// does not know: protection is demanded, or an earlier process may have protected hostnames.
func (r *run) needsRules(result *gateway.Result) bool {
	return !r.snapshot.Access.InEffectKnown && (r.demandsAccess(result) || result.Settings.Applications().AreManaged())
}

// awaitsRules reports whether no configuration is written before the rules in effect were
// read and the controller has decided again. Only the first decision of a process about a
// tunnel waits: later, it remembers what it has served.
func (r *run) awaitsRules(object *v1alpha1.Tunnel) bool {
	return (object == nil || r.memory.access.rulesRead != object.UID) && r.needsRules(r.decision.Plane(object).Result)
}

// demandsAccess reports whether the Gateway demands applications, or its demands are unknown.
func (r *run) demandsAccess(result *gateway.Result) bool {
	return len(result.Demanded.Demands) > 0 || result.Demanded.Unknown
}

// holdsTable reports whether no table is published for the Tunnel's Envoys yet: hostnames
// require access, this process has published none, and it has not read the rules in effect.
// Envoys keep what they have.
func (r *run) holdsTable(result *gateway.Result, object *v1alpha1.Tunnel) bool {
	return r.awaitsRules(object) && r.demandsAccess(result) && !r.process.envoys.hasPublishedFor(r.key.NamespacedName, object.UID)
}

// expose remembers the states of the Gateway's hostnames. inEffect reports whether the data
// plane has them.
func (r *run) expose(result *gateway.Result, inEffect bool) {
	m := &r.memory.access
	if result.Rejected != nil || r.awaitsRules(r.tunnel.object) {
		return // the data plane keeps what it has
	}
	m.exposure = m.exposure.Next(result.Demanded, result.AccessStates, inEffect, r.process.clock.uptime())
	for _, s := range result.AccessStates {
		m.until = sooner(m.until, s.Until)
	}
}

// accessDelay returns the time until the next decision about the access to the Gateway's
// hostnames; 0 if there is none.
func (p *process) accessDelay(key state.Key) time.Duration {
	until := p.memories.accessUntil(key)
	if until == 0 {
		return 0
	}
	return max(until-p.clock.uptime(), time.Millisecond)
}

// recordAccess records in the book what the decision demands of Cloudflare Access.
func (r *run) recordAccess() {
	object, set := r.tunnel.object, r.decision.Settings()
	g := r.decision.Access(object)
	g.Created, g.Class, g.HasTunnel = r.gateway.CreationTimestamp.Time, string(r.gateway.Spec.GatewayClassName), object != nil
	account := accountKey{r.process.options.Account.ForSettings(set).Account}
	if object != nil {
		account.id = object.Spec.AccountID
		g.InEffect, g.InEffectKnown = r.tagsInEffect(object)
		if isManagedElsewhere(object, r.process.options.Tunnel) || object.Status.Deleting || r.departure != tunnel.Undecided {
			g.State = ownership.Frozen // another process or another Gateway owns the tunnel, or it is about to be deleted
		}
	}
	r.process.access.update(g, account)
	r.reportContested(r.decision.Plane(object).Result)
}

// reportContested emits an event for each hostname whose application other clients have begun
// to change again and again.
func (r *run) reportContested(result *gateway.Result) {
	contested := map[string]bool{}
	for hostname, s := range result.AccessStates {
		if s.Reason != conditions.ReasonContested {
			continue
		}
		if contested[hostname] = true; !r.memory.access.contested[hostname] {
			r.process.notify.emitContestedApplication(r.gateway, hostname)
		}
	}
	r.memory.access.contested = contested
}

// tagsInEffect returns the AUD tags that the tunnel's rules in effect demand, and whether
// they are known.
func (r *run) tagsInEffect(object *v1alpha1.Tunnel) (tags []string, known bool) {
	remote := r.tunnel.memory.Remote
	switch {
	case remote.Tunnel.Presence == tunnel.Absent && !object.Status.Creating:
		return nil, true
	case !r.tunnel.memory.KnowsRules():
		return nil, false
	}
	for i := range remote.Configuration.Configuration.Ingress {
		if demanded := remote.Configuration.Configuration.Ingress[i].OriginRequest.Access; demanded != nil {
			tags = append(tags, demanded.AUDTag...)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags), true
}

// recordAccessDeparture records in the book what becomes of the applications of a Gateway
// that is gone. While that is not decided, nothing changes for them.
func (r *run) recordAccessDeparture() {
	object := r.tunnel.object
	if object == nil {
		return // the Tunnel was deleted; the next reconcile forgets the Gateway
	}
	name, account := r.key.NamespacedName, accountKey{object.Spec.AccountID}
	g := access.Gateway{NamespacedName: name, HasTunnel: true, State: ownership.Departed}
	switch r.departure {
	case tunnel.Undecided, tunnel.ReleasesRecords: // until its tunnel was deleted, it demands tokens
		r.process.access.suspend(name, account, true)
		return
	case tunnel.ReleasesApplications:
		g.State, g.InEffectKnown = ownership.Retiring, true
	case tunnel.KeepsTunnel:
		g.InEffect, g.InEffectKnown = r.tagsInEffect(object)
	}
	r.process.access.update(g, account)
}

// accessFacts returns what the account's applications mean for the Tunnel.
func (r *run) accessFacts(object *v1alpha1.Tunnel) tunnel.Access {
	if isManagedElsewhere(object, r.process.options.Tunnel) {
		return tunnel.Access{Status: object.Status.Access} // this process writes nothing
	}
	facts := tunnel.Access{Status: r.accessStatus(object)}
	if r.decision == nil { // a Gateway that exists with another identity keeps its applications
		facts.Unreleased, facts.BlockedUntil = r.process.access.unreleased(r.key.NamespacedName, accountKey{object.Spec.AccountID})
	}
	return facts
}

// accessStatus returns what the Tunnel's status reports.
func (r *run) accessStatus(object *v1alpha1.Tunnel) *v1alpha1.TunnelAccessStatus {
	status := v1alpha1.TunnelAccessStatus{Adoptions: r.process.access.adoptionResults(object, r.process.clock.now())}
	if r.decision != nil {
		result := r.decision.Plane(object).Result
		status.Hostnames = countReasons(result.Demanded.Demands, result.AccessStates)
	}
	if len(status.Adoptions) == 0 && len(status.Hostnames) == 0 {
		return nil
	}
	return &status
}

// countReasons counts the demanded hostnames by the reason of their states.
func countReasons(demands map[string]access.Demand, states map[string]access.State) map[string]int32 {
	if len(demands) == 0 {
		return nil
	}
	counts := map[string]int32{}
	for hostname := range demands {
		if reason := states[hostname].Reason; reason != (conditions.Reason{}) {
			counts[reason.String()]++
		}
	}
	return counts
}
