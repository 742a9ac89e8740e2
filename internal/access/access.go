package access

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
)

// NewReport returns what the account's applications mean. The caller has called [Observe].
func NewReport(f Facts) Report {
	s := newSituation(f)
	a := s.agendaIfManaged()
	r := Report{
		Gateways: s.verdicts(a), Read: s.remote != nil, Tagged: map[string]*Application{}, Released: s.released(),
		Allows: s.allows, Counts: map[conditions.Reason]int{}, Total: len(f.Memory.applications.all), ReadAt: f.Memory.applications.read.at,
		BlockedUntil: f.Memory.blocked,
	}
	if message := s.forbiddenMessage(); s.isDemandedAnywhere() {
		r.Forbidden = message
	}
	for name, claims := range s.claims {
		for _, c := range claims {
			if v, ok := r.Gateways[c.NamespacedName][name]; ok && !c.bypass {
				r.Counts[v.Reason]++
			}
		}
	}
	if a != nil {
		r.Waiting = len(a.due) + a.delayed
	}
	if s.remote == nil {
		return r
	}
	r.Managed = len(s.remote.owned)
	for _, o := range s.remote.owned {
		if !o.Bypass {
			r.Tagged[o.AUDTag] = s.withoutDemand(o)
		}
	}
	for _, a := range s.remote.strange() {
		r.Tagged[a.AUDTag] = s.newApplication(a, &party{}, a.Name)
	}
	r.Orphans = s.orphans()
	return r
}

// isDemandedAnywhere reports whether a Gateway of a GatewayClass that manages applications
// demands one.
func (s *situation) isDemandedAnywhere() bool {
	for _, claims := range s.claims {
		if slices.ContainsFunc(claims, func(c *claim) bool { return c.class != nil && c.class.Settings.AreManaged() }) {
			return true
		}
	}
	return false
}

// orphans returns the applications that nothing demands and whose Gateway has no Tunnel.
func (s *situation) orphans() []Orphan {
	if !s.manages() || !s.GatewaysKnown {
		return nil
	}
	var orphans []Orphan
	for _, o := range s.remote.owned {
		d := s.decisionAbout(o)
		if d.kind == orphan {
			orphans = append(orphans, Orphan{Hostname: d.name, ID: string(o.ID)})
		}
	}
	slices.SortFunc(orphans, func(a, b Orphan) int { return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.ID, b.ID)) })
	return orphans
}

// decisionAbout returns what becomes of the application.
func (s *situation) decisionAbout(o *owned) decision {
	if o.name == "" {
		return s.decideExtra(o)
	}
	return s.decide(o.name)
}

// released returns the Gateways that retire and have no application left. One that another
// Gateway may demand stays until that is known; the retirement waits only for a while.
func (s *situation) released() map[types.NamespacedName]bool {
	released := map[types.NamespacedName]bool{}
	for _, g := range s.Gateways {
		if g.State == ownership.Retiring {
			released[g.NamespacedName] = true
		}
	}
	if len(released) == 0 || !s.mayManage() {
		return released
	}
	if !s.GatewaysKnown || s.remote == nil || s.Memory.applications.outdated || len(s.Memory.unanswered) > 0 {
		return map[types.NamespacedName]bool{}
	}
	for _, o := range s.remote.owned {
		if o.holder != nil {
			delete(released, o.holder.NamespacedName)
		}
	}
	return released
}

// Plan returns the writes that the controller would make with the applications as they are,
// as if no delay had to pass. The caller has called [Observe].
func Plan(f Facts) []Write {
	s := indexFacts(f, true)
	if !s.manages() {
		return nil
	}
	var writes []Write
	for _, c := range newAgenda(s).due {
		writes = append(writes, c.Write)
	}
	return writes
}
