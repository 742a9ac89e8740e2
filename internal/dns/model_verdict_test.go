package dns

import (
	"fmt"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// verdict returns why the final state is wrong, or "": nothing has happened for hours.
func (w *modelWorld) verdict() string {
	for i := range w.count {
		in := &w.installs[i]
		if len(in.requests) > 0 {
			return fmt.Sprintf("the request to adopt %s never ends", in.requests[0].Name)
		}
		if in.mode == v1alpha1.DNSOff || in.revoked || in.noToken {
			continue
		}
		f, s := w.plan(i)
		report := NewReport(f)
		if problem := w.verdictRecords(i, s); problem != "" {
			return problem
		}
		if problem := w.verdictHostnames(i, report, s); problem != "" {
			return problem
		}
		if problem := w.verdictUnused(i, report); problem != "" {
			return problem
		}
	}
	return ""
}

// verdictUnused checks the report about records that no Gateway wants.
func (w *modelWorld) verdictUnused(i int, report Report) string {
	in := &w.installs[i]
	if len(in.exclude) > 0 || !w.zoneUsable() {
		return "" // an unusable zone is not read again
	}
	var orphans []string
	unwanted := 0
	for _, r := range w.zone.records {
		switch {
		case !in.marked(r) || in.wanted(r.Name):
		case in.owner(r.Content) < 0:
			orphans = append(orphans, r.Name)
		default:
			unwanted++
		}
	}
	if !slices.Equal(report.Orphans, orphans) || report.Unused[VerdictOrphan] != len(orphans) || report.Unused[VerdictUnwanted] != unwanted {
		return fmt.Sprintf("the orphans are reported as %v, and unused records as %v; the zone has %v, and %d unwanted", report.Orphans, report.Unused, orphans, unwanted)
	}
	if report.Records != len(w.zone.records) {
		return fmt.Sprintf("the zone has %d records, and %d are reported", len(w.zone.records), report.Records)
	}
	return ""
}

// verdictRecords checks the installation's own records.
func (w *modelWorld) verdictRecords(i int, next Step) string {
	in := &w.installs[i]
	if in.mode != v1alpha1.DNSManage || in.noKey || !w.zoneUsable() || in.conflictsSomewhere() {
		return ""
	}
	for _, r := range w.zone.records {
		if in.marked(r) && !modelView(w.zone.records).delegated(r.Name) {
			if problem := w.verdictRecord(i, r); problem != "" {
				return fmt.Sprintf("%s %s; next step: %s", describeRecord(r), problem, describeStep(next))
			}
		}
	}
	return ""
}

// verdictRecord returns what is wrong with a record that the installation manages. An orphan
// remains as it is.
func (w *modelWorld) verdictRecord(i int, r provider.Record) string {
	in := &w.installs[i]
	g := in.owner(r.Content)
	if g < 0 || in.gateways[g].state() != ownership.Accepted && in.gateways[g].state() != ownership.Retiring {
		return ""
	}
	switch {
	case in.excludes(r.Name):
		return "is excluded and keeps its mark"
	case !in.wanted(r.Name) && !w.protects(i, r):
		return "is unwanted and stays"
	case in.wants(g, r.Name) && !r.Proxied:
		return "is not repaired"
	}
	return ""
}

func (in *modelInstall) conflictsSomewhere() bool { return in.conflicts(0) || in.conflicts(1) }

func (w *modelWorld) zoneUsable() bool {
	return w.zone.account == modelAccount && w.zone.status == "active"
}

// protects reports whether a change of the record would make another wanted hostname stop
// resolving, which cannot get a record of its own: it has another one already, or its
// Gateway may have none.
func (w *modelWorld) protects(i int, r provider.Record) bool {
	after := slices.DeleteFunc(slices.Clone(w.zone.records), func(other provider.Record) bool { return other.ID == r.ID })
	return w.stopsResolving(i, r.Name, after)
}

// stopsResolving reports whether a wanted hostname that cannot get a record of its own
// resolves to its Gateway now, but not with the other records. The hostname that changes
// does not count.
func (w *modelWorld) stopsResolving(i int, changed string, after modelView) bool {
	in := &w.installs[i]
	before := modelView(w.zone.records)
	for g := range in.gateways {
		gw := &in.gateways[g]
		for _, h := range gw.hostnames {
			tunnel := gw.id(in.origin, g)
			fixed := !w.canPublish(i, g, h) || w.zone.address(h.Name) != nil
			if gw.exists && h.Name != changed && in.wants(g, h.Name) && fixed && before.reaches(h.Name, tunnel) && !after.reaches(h.Name, tunnel) {
				return true
			}
		}
	}
	return false
}

// canPublish reports whether a missing record of the hostname can be created.
func (w *modelWorld) canPublish(i, g int, h Hostname) bool {
	in := &w.installs[i]
	gw := &in.gateways[g]
	return !in.noKey && gw.state() == ownership.Accepted && !gw.offline && gw.tunnel && in.wants(g, h.Name) && !in.conflicts(g) && in.mode == v1alpha1.DNSManage && !w.full()
}

// full reports whether the last tenth of the zone's quota is used.
func (w *modelWorld) full() bool {
	return w.zone.quota != 0 && len(w.zone.records) >= w.zone.quota-(w.zone.quota+9)/10
}

// verdictHostnames checks what is reported for each hostname against the zone, and that
// nothing is missing that could be published.
func (w *modelWorld) verdictHostnames(i int, report Report, next Step) string {
	in := &w.installs[i]
	for g := range in.gateways {
		gw := &in.gateways[g]
		if gw.state() != ownership.Accepted || !gw.tunnel {
			continue
		}
		for _, h := range gw.hostnames {
			finding, found := report.Gateways[gatewayName(g, gw)][h.Name]
			if in.excludes(h.Name) {
				if found {
					return fmt.Sprintf("%s is excluded, and reported as %s", h.Name, finding.Verdict)
				}
				continue
			}
			expected := w.expected(i, g, h)
			if !found || !slices.Contains(expected, finding.Verdict) {
				return fmt.Sprintf("%s of g%d is reported as %q, not %v; next step: %s", h.Name, g, finding.Verdict, expected, describeStep(next))
			}
			if problem := w.verdictMissing(i, g, h, finding.Verdict); problem != "" {
				return fmt.Sprintf("%s; next step: %s", problem, describeStep(next))
			}
		}
	}
	return ""
}

// verdictMissing checks that a hostname that could be published is.
func (w *modelWorld) verdictMissing(i, g int, h Hostname, v Verdict) string {
	in := &w.installs[i]
	if !w.canPublish(i, g, h) || !h.Served || in.share(h.Namespace, w.zone.records) >= in.limit {
		return ""
	}
	switch v {
	case VerdictMissing:
		if !w.endsWildcard(i, h.Name) && !w.heldThroughWildcard(i, g, h.Name) && !w.olderClaim(i, g, h.Name) {
			return fmt.Sprintf("%s of g%d is missing and never created", h.Name, g)
		}
	case VerdictStale, VerdictHeldByAnotherGateway:
		if !w.held(i, h.Name) {
			return fmt.Sprintf("%s of g%d is %s, although no other Gateway wants it", h.Name, g, v)
		}
	default: // the others need a change by another client, or none
	}
	return ""
}

// held reports whether the record that answers for the name has to lead to another Gateway:
// that Gateway wants or keeps the name, or another hostname depends on the record.
func (w *modelWorld) held(i int, name string) bool {
	in := &w.installs[i]
	r := modelView(w.zone.records).answer(probe(name))
	if r == nil {
		return false
	}
	from := in.owner(r.Content)
	return from >= 0 && (in.wants(from, name) || in.keeps(from, name)) || r.Name != name || w.protects(i, *r)
}

// olderClaim reports whether an older Gateway, which comes first, wants the name and cannot
// have it, because its namespace has its share.
func (w *modelWorld) olderClaim(i, g int, name string) bool {
	in := &w.installs[i]
	older := &in.gateways[0]
	return g == 1 && in.wants(0, name) && in.share(older.namespace, w.zone.records) >= in.limit
}

// share counts the records that lead to the Gateways of a namespace.
func (in *modelInstall) share(namespace string, records []provider.Record) int {
	n := 0
	for _, r := range records {
		if g := in.owner(r.Content); g >= 0 && in.gateways[g].namespace == namespace && in.marked(r) {
			n++
		}
	}
	return n
}

// endsWildcard reports whether a record with the name would end the wildcard through which
// another hostname resolves, which cannot get a record of its own.
func (w *modelWorld) endsWildcard(i int, name string) bool {
	created := provider.Record{Name: name, Type: "CNAME", Content: modelElsewhere, Proxied: true}
	return w.stopsResolving(i, name, append(slices.Clone(w.zone.records), created))
}

// heldThroughWildcard reports whether a wildcard leads to another Gateway, whose state keeps
// the names that it answers for.
func (w *modelWorld) heldThroughWildcard(i, g int, name string) bool {
	in := &w.installs[i]
	target, _ := modelView(w.zone.records).leads(name)
	from := in.owner(target)
	return from >= 0 && from != g && in.keeps(from, name)
}

// expected returns the verdicts that the page allows for the Gateway's hostname.
func (w *modelWorld) expected(i, g int, h Hostname) []Verdict {
	in, view := &w.installs[i], modelView(w.zone.records)
	tunnel := in.gateways[g].id(in.origin, g)
	if !w.zoneUsable() || view.delegated(h.Name) {
		return []Verdict{VerdictNoZone}
	}
	own := w.zone.address(h.Name)
	if own != nil && in.marked(*own) {
		if own.Content == tunnel.Hostname() {
			return []Verdict{VerdictManaged}
		}
		return []Verdict{VerdictStale, VerdictHeldByAnotherGateway}
	}
	// A wildcard hostname is published if a name below it resolves.
	if target, proxied := view.leads(h.Name); target == tunnel.Hostname() {
		if proxied {
			return []Verdict{VerdictExternal}
		}
		return []Verdict{VerdictNotProxied}
	}
	if own != nil {
		return []Verdict{VerdictRecordConflict}
	}
	return []Verdict{w.expectedWithoutRecord(i, g, h.Name)}
}

// expectedWithoutRecord returns the verdict about a name without a record of its own, which
// does not lead to the Gateway.
func (w *modelWorld) expectedWithoutRecord(i, g int, name string) Verdict {
	in, view := &w.installs[i], modelView(w.zone.records)
	wildcard := view.answer(probe(name))
	switch {
	case wildcard == nil:
		return VerdictMissing
	case !in.permission && !in.marked(*wildcard):
		return VerdictRecordConflict
	}
	target, _ := view.leads(name)
	if other := in.owner(target); other >= 0 && other != g && in.wants(other, name) {
		return VerdictHeldByAnotherGateway
	}
	return VerdictMissing
}
