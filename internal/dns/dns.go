package dns

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/pacing"
)

// Observe returns the Memory after the Facts were gathered. The controller calls it before
// each [Decide], [NewReport] and [Plan]: they need the Memory that it returns.
//
// It verifies the marks of records that were read or changed, and notices since when
// records are unused.
func Observe(f Facts) Memory {
	m := f.Memory
	if m.token != f.TokenVersion {
		if m.token != "" {
			m.blocked = f.Uptime
		}
		m.token, m.failure = f.TokenVersion, pacing.Failure{}
	}
	if m.records.view == nil {
		return m
	}
	s := newSituation(f)
	if options := f.Options.fingerprint(); s.id != "" {
		s.view = s.view.verified(s.id, f.Options, options != m.options)
		m.records.view, m.options = s.view, options
	}
	m.traces = s.trace()
	return m
}

// NewReport returns what the zone's records mean. The caller has called [Observe].
func NewReport(f Facts) Report {
	s := newSituation(f)
	r := Report{Forbidden: s.forbiddenMessage(), BlockedUntil: f.Memory.blocked}
	if s.class == nil {
		return r
	}
	if s.view != nil && s.unusable == "" {
		r.Records, r.ReadAt = s.view.total, f.Memory.records.read.at
		r.Quota = f.Memory.usage.quota
	}
	if s.class.Settings.Mode != v1alpha1.DNSOff && s.view == nil && s.unusable == "" && r.Forbidden == "" {
		return r
	}
	var a *agenda
	if s.manages() {
		a = newAgenda(s)
	}
	r.Gateways, r.Released = s.findings(a), s.released()
	if s.view != nil && s.unusable == "" {
		s.reportUnused(&r)
	}
	return r
}

// findings returns the findings for the hostnames of each Gateway.
func (s *situation) findings(a *agenda) map[types.NamespacedName]Findings {
	all := map[types.NamespacedName]Findings{}
	for _, p := range s.parties {
		all[p.NamespacedName] = Findings{}
	}
	for name, claims := range s.claims {
		for _, c := range claims {
			if !c.elsewhere {
				all[c.NamespacedName][name] = s.finding(c, a)
			}
		}
	}
	return all
}

// reportUnused counts the records with a valid mark that no Gateway wants.
func (s *situation) reportUnused(r *Report) {
	r.Unused = map[Verdict]int{}
	for name, set := range s.view.sets {
		if !set.marked || s.wanted(name) {
			continue
		}
		if v, ok := s.unusedVerdict(name); ok {
			r.Unused[v]++
			if v == VerdictOrphan {
				r.Orphans = append(r.Orphans, name)
			}
		}
	}
	slices.Sort(r.Orphans)
}

// Plan returns the changes that the controller would make with the zone's records as
// they are, as if the mode were Manage and no delay had to pass. The caller has called
// [Observe].
func Plan(f Facts) []Change {
	classes := slices.Clone(f.Classes)
	for i := range classes {
		if observes(classes[i].Settings) {
			classes[i].Settings.Mode = v1alpha1.DNSManage
		}
	}
	f.Classes = classes
	s := newSituation(f)
	s.immediate = true
	if s.class == nil || s.class.Settings.Mode != v1alpha1.DNSManage || s.id == "" || s.view == nil {
		return nil
	}
	a := newAgenda(s)
	var changes []Change
	for _, c := range slices.Concat(a.creates, a.edits) {
		changes = append(changes, c.Change)
	}
	return changes
}
