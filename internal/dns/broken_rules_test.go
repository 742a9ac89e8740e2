package dns

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// brokenRule is a rule of the design that is broken on purpose.
type brokenRule struct {
	name     string
	rules    modelRules
	scenario string
	// finds is part of the violation that the exploration has to report.
	finds string
}

// forged returns a read that shows some records as if they had a valid mark.
func forged(forge func(w *modelWorld, r provider.Record) bool) func(*modelWorld, Facts, []provider.Record) []provider.Record {
	return func(w *modelWorld, f Facts, records []provider.Record) []provider.Record {
		records = slices.Clone(records)
		for i, r := range records {
			if r.Type == "CNAME" && forge(w, r) {
				records[i].Comment = f.Options.mark(modelZoneID, r.Name, r.Content)
			}
		}
		return records
	}
}

// gatewaysAs returns Facts in which every Gateway is changed.
func gatewaysAs(change func(w *modelWorld, g *Gateway)) func(*modelWorld, Facts) Facts {
	return func(w *modelWorld, f Facts) Facts {
		f.Gateways = slices.Clone(f.Gateways)
		for i := range f.Gateways {
			f.Gateways[i].Hostnames = slices.Clone(f.Gateways[i].Hostnames)
			change(w, &f.Gateways[i])
		}
		return f
	}
}

// stateAs returns Facts in which Gateways in one state appear in another one.
func stateAs(from, to ownership.State) func(*modelWorld, Facts) Facts {
	return gatewaysAs(func(_ *modelWorld, g *Gateway) {
		if g.State == from {
			g.State = to
			if g.Class == "" && to == ownership.Accepted {
				g.Class = "one"
			}
		}
	})
}

// settingsAs returns Facts with other settings.
func settingsAs(change func(c *Class)) func(*modelWorld, Facts) Facts {
	return func(_ *modelWorld, f Facts) Facts {
		f.Classes = slices.Clone(f.Classes)
		for i := range f.Classes {
			change(&f.Classes[i])
		}
		return f
	}
}

// brokenRules are the rules of docs/guides/dns.md that are broken one at a time.
func brokenRules() []brokenRule {
	return slices.Concat(brokenOwnership(), brokenTiming(), brokenPermission())
}

// brokenOwnership are rules about whose record it is.
func brokenOwnership() []brokenRule {
	return []brokenRule{
		{
			name: "a record needs no mark", scenario: "two installations", finds: "has no valid mark",
			rules: modelRules{read: forged(func(_ *modelWorld, r provider.Record) bool { return strings.HasPrefix(r.Content, "tunnel-") })},
		},
		{
			name: "a copied comment is valid", scenario: "everything", finds: "has no valid mark",
			rules: modelRules{read: forged(func(_ *modelWorld, r provider.Record) bool {
				_, known := modelMarks.Load(r.Comment)
				return known
			})},
		},
		{
			name: "an edited target keeps the mark", scenario: "one hostname", finds: "has no valid mark",
			rules: modelRules{read: forged(func(_ *modelWorld, r provider.Record) bool {
				mark, known := modelMarks.Load(r.Comment)
				return known && mark.(modelMark).name == r.Name
			})},
		},
		{
			name: "the mark does not depend on the cluster", scenario: "a backup in another cluster", finds: "has no valid mark",
			rules: modelRules{facts: func(_ *modelWorld, f Facts) Facts {
				f.Options.ClusterUID = "any"
				return f
			}},
		},
		{
			name: "adoption does not compare the record", scenario: "a record that leads here", finds: "has no valid mark and is not adopted",
			rules: modelRules{facts: func(w *modelWorld, f Facts) Facts {
				f.Adoptions = slices.Clone(f.Adoptions)
				for i := range f.Adoptions {
					if r := w.zone.address(f.Adoptions[i].Name); r != nil {
						f.Adoptions[i].ID, f.Adoptions[i].Type, f.Adoptions[i].Content = string(r.ID), r.Type, r.Content
					}
				}
				return f
			}},
		},
		{
			name: "an adoption counts again", scenario: "a record that leads elsewhere", finds: "has no valid mark and is not adopted",
			rules: modelRules{facts: adoptionsStay()},
		},
	}
}

// adoptionsStay returns Facts in which a request never ends: any record that the name has is
// adopted again.
func adoptionsStay() func(*modelWorld, Facts) Facts {
	return func(w *modelWorld, f Facts) Facts {
		r := w.zone.address(modelA)
		if r == nil || w.installs[0].marked(*r) || w.applied == 0 {
			return f
		}
		request := Adoption{Gateway: gatewayName(0, &w.installs[0].gateways[0])}
		request.Zone, request.Name, request.ID, request.Type, request.Content = modelZoneName, r.Name, string(r.ID), r.Type, r.Content
		request.Requested.Time = modelEpoch.Add(w.now)
		f.Adoptions = []Adoption{request}
		return f
	}
}

// brokenTiming are rules about when records change.
func brokenTiming() []brokenRule {
	return []brokenRule{
		{
			name: "an unwanted record is deleted at once", scenario: "one hostname with others", finds: "which is unwanted for 0s",
			rules: modelRules{facts: settingsAs(func(c *Class) { c.Settings.DeletionDelay = 0 })},
		},
		{
			name: "a delete needs no read", scenario: "one hostname with others", finds: "without a read right before it",
			rules: modelRules{step: withoutRead},
		},
		{
			name: "a record moves away from an unknown Gateway", scenario: "a hostname that moves between namespaces", finds: "in state 0",
			rules: modelRules{facts: stateAs(ownership.Unknown, ownership.Accepted)},
		},
		{
			name: "a paused Gateway loses its records", scenario: "a hostname that moves between namespaces", finds: "in state 3",
			rules: modelRules{facts: stateAs(ownership.Frozen, ownership.Accepted)},
		},
		{
			name: "a change waits for no propagation", scenario: "wildcards that answer for others", finds: "stops resolving to its Gateway",
			rules: modelRules{facts: impatient},
		},
		{
			name: "wildcards do not matter", scenario: "wildcards that answer for others", finds: "stops resolving to its Gateway",
			rules: modelRules{facts: hideCovered},
		},
	}
}

// withoutRead is a decision that takes the place of the read for it: what was read before
// counts as read now.
func withoutRead(_ *modelWorld, f Facts, s Step) Step {
	if s.Action != ReadRecords || f.Memory.records.view == nil {
		return s
	}
	r := Result{Sent: f.Uptime, Uptime: f.Uptime}
	for _, set := range f.Memory.records.view.sets {
		r.Records = append(r.Records, set.records...)
	}
	f.Memory = Conclude(f.Memory, s, r)
	f.Memory = Observe(f)
	if next := Decide(f); next.Action == Apply {
		return next
	}
	return s
}

// impatient returns Facts according to which the nameservers have noticed every change.
func impatient(_ *modelWorld, f Facts) Facts {
	if f.Memory.records.view == nil {
		return f
	}
	v := *f.Memory.records.view
	v.sets = maps.Clone(v.sets)
	for name, set := range v.sets {
		settled := *set
		settled.settled = true
		v.sets[name] = &settled
	}
	f.Memory.records.view = &v
	return f
}

// hideCovered returns Facts without the hostnames for which a wildcard answers.
func hideCovered(w *modelWorld, f Facts) Facts {
	view := modelView(w.zone.records)
	return gatewaysAs(func(_ *modelWorld, g *Gateway) {
		g.Hostnames = slices.DeleteFunc(g.Hostnames, func(h Hostname) bool {
			exists, _ := view.named(h.Name)
			return !exists && view.answer(probe(h.Name)) != nil
		})
	})(w, f)
}

// brokenPermission are rules about what may be published.
func brokenPermission() []brokenRule {
	return []brokenRule{
		{
			name: "a record is created before a connector is connected", scenario: "before a connector is connected", finds: "before a connector was connected",
			rules: modelRules{facts: gatewaysAs(func(_ *modelWorld, g *Gateway) { g.Connected = true })},
		},
		{
			name: "a hostname needs no permission", scenario: "without permission", finds: "without permission",
			rules: modelRules{facts: gatewaysAs(func(_ *modelWorld, g *Gateway) {
				for i := range g.Hostnames {
					g.Hostnames[i].Permitted = true
				}
			})},
		},
		{
			name: "an excluded hostname is managed", scenario: "one hostname", finds: "excluded",
			rules: modelRules{facts: settingsAs(func(c *Class) { c.Settings.Exclude = nil })},
		},
		{
			name: "exclusion deletes the record", scenario: "one hostname", finds: "which is excluded",
			rules: modelRules{step: func(_ *modelWorld, _ Facts, s Step) Step {
				if s.Action == Apply && slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Operation == Release }) {
					for _, p := range s.Batch.Patches {
						s.Batch.Deletes = append(slices.Clone(s.Batch.Deletes), p.ID)
					}
					s.Batch.Patches = nil
				}
				return s
			}},
		},
		{
			name: "a Gateway that is not accepted loses records", scenario: "a hostname that moves between namespaces", finds: "in state 2",
			rules: modelRules{facts: stateAs(ownership.Rejected, ownership.Accepted)},
		},
		{
			name: "hostnames without a route are published", scenario: "without a route", finds: "which no route serves",
			rules: modelRules{facts: gatewaysAs(func(_ *modelWorld, g *Gateway) {
				for i := range g.Hostnames {
					g.Hostnames[i].Served = true
				}
			})},
		},
		{
			name: "classes need not agree", scenario: "two classes", finds: "whose settings conflict",
			rules: modelRules{facts: settingsAs(func(c *Class) { c.Settings.MaxRecordsPerNamespace = 100 })},
		},
	}
}

// changing changes a hostname of g0.
func changing(name string, change func(h *Hostname)) func(w *modelWorld) {
	return func(w *modelWorld) { change(w.installs[0].gateways[0].hostname(name)) }
}

// TestBrokenRulesAreFound breaks one rule after the other, and expects that the exploration
// finds it.
func TestBrokenRulesAreFound(t *testing.T) {
	scenarios := map[string]modelScenario{}
	for _, s := range slices.Concat(modelScenarios(), brokenScenarios()) {
		scenarios[s.name] = s
	}
	for _, b := range brokenRules() {
		t.Run(b.name, func(t *testing.T) {
			s, known := scenarios[b.scenario]
			if !known {
				t.Fatalf("there is no scenario %q", b.scenario)
			}
			s.rules = &b.rules
			t.Log(s.explore(1).Find(t, b.finds))
		})
	}
}

// brokenScenarios are small scenarios for broken rules.
func brokenScenarios() []modelScenario {
	return []modelScenario{
		{name: "one hostname with others", depth: 2, start: starting(wanting(0, modelA), wanting(1, modelB), published), events: hostnameEvents(modelA)},
		{name: "without permission", depth: 1, start: starting(needingPermission, wanting(0, modelA), changing(modelA, func(h *Hostname) { h.Permitted = false })), events: stateEvents(0)},
		{name: "without a route", depth: 1, start: starting(wanting(0, modelA), changing(modelA, func(h *Hostname) { h.Served = false })), events: stateEvents(0)},
		{name: "before a connector is connected", depth: 1, start: starting(wanting(0, modelA), func(w *modelWorld) { w.installs[0].gateways[0].offline = true }), events: stateEvents(0)},
	}
}
