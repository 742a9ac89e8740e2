package dns

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// modelVersions are the states in which nameservers may serve one record.
type modelVersions struct {
	// states are the states in order; nil means that the record does not exist. Those from
	// index old on come from the batch.
	states []*provider.Record
	old    int
}

// checkResolution checks that the batch makes no wanted hostname stop resolving to its
// Gateway, for every part of it and of earlier changes that the nameservers may serve.
func (a *modelAttempt) checkResolution() {
	if a.violation != "" {
		return
	}
	protected := a.protected()
	before := len(a.zone.notices)
	after := a.zone
	if _, err := after.apply(a.s.Batch, a.now); err != nil || len(protected) == 0 {
		return
	}
	versions := versionsOf(&after, before)
	was, is := make(modelView, 0, len(versions)), make(modelView, 0, len(versions))
	walkViews(versions, was, is, func(was, is modelView) bool {
		for _, p := range protected {
			if was.reaches(p.name, p.tunnel) && !is.reaches(p.name, p.tunnel) {
				a.violate("%s stops resolving to its Gateway g%d.\n  A nameserver may serve: %s\n  and then: %s", p.name, p.gateway, describeView(was), describeView(is))
				return false
			}
		}
		return true
	})
}

// modelProtected is a hostname that must not stop resolving.
type modelProtected struct {
	name    string
	tunnel  provider.TunnelID
	gateway int
}

// protected returns the hostnames of all Gateways, also of Gateways that the process does not
// know, for which no change may have side effects: hostnames that reach their Gateway through
// the records in the database, also as the process has read them. If only some nameservers
// still have the records through which a hostname resolves, because another client has deleted
// them, it stops resolving anyway. What another client has changed since the last read cannot be
// taken into account.
func (a *modelAttempt) protected() []modelProtected {
	var all []modelProtected
	database, known := modelView(a.zone.records), modelView(a.in.seen.known)
	for g := range a.in.gateways {
		gw := &a.in.gateways[g]
		if !gw.tunnel || !gw.exists {
			continue
		}
		for _, h := range gw.hostnames {
			if a.in.wants(g, h.Name) && database.reaches(h.Name, gw.id(a.in.origin, g)) && known.reaches(h.Name, gw.id(a.in.origin, g)) && database.same(known, h.Name) {
				all = append(all, modelProtected{name: h.Name, tunnel: gw.id(a.in.origin, g), gateway: g})
			}
		}
	}
	return all
}

// same reports whether the same record answers for the hostname in both views.
func (v modelView) same(other modelView, hostname string) bool {
	a, b := v.answer(probe(hostname)), other.answer(probe(hostname))
	return a != nil && b != nil && a.ID == b.ID && a.Content == b.Content
}

// versionsOf returns the states of every record, where the notices from index first on come
// from the batch.
func versionsOf(z *modelZone, first int) []modelVersions {
	var all []modelVersions
	index := map[provider.RecordID]int{}
	for n := range z.notices {
		notice := &z.notices[n]
		i, known := index[notice.id]
		if !known {
			i = len(all)
			index[notice.id] = i
			all = append(all, modelVersions{states: []*provider.Record{notice.before}, old: 1})
		}
		all[i].states = append(all[i].states, notice.after)
		if n < first {
			all[i].old++
		}
	}
	for n := range z.records {
		if _, known := index[z.records[n].ID]; !known {
			all = append(all, modelVersions{states: []*provider.Record{&z.records[n]}, old: 1})
		}
	}
	return all
}

// walkViews calls check with every view that a nameserver may have before the batch, and
// every view that it may have after it has noticed some of the batch. It stops when check
// returns false.
func walkViews(versions []modelVersions, was, is modelView, check func(was, is modelView) bool) bool {
	if len(versions) == 0 {
		return check(was, is)
	}
	v := versions[0]
	with := func(view modelView, r *provider.Record) modelView {
		if r == nil {
			return view
		}
		return append(view, *r)
	}
	for i := range v.states[:v.old] {
		if !walkViews(versions[1:], with(was, v.states[i]), with(is, v.states[i]), check) {
			return false
		}
	}
	for j := v.old; j < len(v.states); j++ {
		if !walkViews(versions[1:], with(was, v.states[v.old-1]), with(is, v.states[j]), check) {
			return false
		}
	}
	return true
}

func describeView(v modelView) string {
	list := make([]string, 0, len(v))
	for _, r := range v {
		list = append(list, describeRecord(r))
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

func describeRecord(r provider.Record) string {
	s := r.Name + " " + r.Type + " " + strings.TrimSuffix(r.Content, ".cfargotunnel.com")
	if !r.Proxied && modelAddress(r) {
		s += " (not proxied)"
	}
	if mark, known := modelMarks.Load(r.Comment); known {
		m := mark.(modelMark)
		s += " [mark"
		if m.name != r.Name || m.target != r.Content {
			s += " of " + m.name + " " + strings.TrimSuffix(m.target, ".cfargotunnel.com")
		}
		s += "]"
	}
	return s
}
