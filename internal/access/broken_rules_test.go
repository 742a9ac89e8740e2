package access

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
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

// readAs returns a read that shows every application in another way.
func readAs(change func(f Facts, a *provider.Application)) func(*modelWorld, Facts, []provider.Application) []provider.Application {
	return func(_ *modelWorld, f Facts, list []provider.Application) []provider.Application {
		list = slices.Clone(list)
		for i := range list {
			change(f, &list[i])
		}
		return list
	}
}

// gatewaysAs returns Facts in which every Gateway is changed.
func gatewaysAs(change func(g *Gateway)) func(*modelWorld, Facts) Facts {
	return func(_ *modelWorld, f Facts) Facts {
		f.Gateways = slices.Clone(f.Gateways)
		for i := range f.Gateways {
			f.Gateways[i].Demands, f.Gateways[i].Hostnames = slices.Clone(f.Gateways[i].Demands), slices.Clone(f.Gateways[i].Hostnames)
			change(&f.Gateways[i])
		}
		return f
	}
}

// stateAs returns Facts in which Gateways in one state appear in another one.
func stateAs(from, to ownership.State) func(*modelWorld, Facts) Facts {
	return gatewaysAs(func(g *Gateway) {
		if g.State == from {
			g.State = to
		}
	})
}

// writesAs returns decisions with other writes.
func writesAs(change func(w *Write)) func(*modelWorld, Facts, Step) Step {
	return func(_ *modelWorld, _ Facts, s Step) Step {
		s.Writes = slices.Clone(s.Writes)
		for i := range s.Writes {
			change(&s.Writes[i])
		}
		return s
	}
}

// knownAs returns decisions about hostnames that know something else.
func knownAs(change func(d *Demanded, k *Known)) func(Demanded, Known) (Demanded, Known) {
	return func(d Demanded, k Known) (Demanded, Known) {
		d.Demands, k.Verdicts = maps.Clone(d.Demands), maps.Clone(k.Verdicts)
		change(&d, &k)
		return d, k
	}
}

func withoutTag(tags []string, tag string) []string {
	return slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return t == tag })
}

// brokenRules are the rules of docs/guides/access.md that are broken one at a time.
func brokenRules() []brokenRule {
	return slices.Concat(brokenOwnership(), brokenTokens(), brokenEnds(), brokenStates())
}

// brokenOwnership are rules about whose application it is.
func brokenOwnership() []brokenRule {
	return []brokenRule{
		{
			name: "an application needs no tag", scenario: "an application made by hand", finds: "has no tag of the installation",
			rules: modelRules{read: readAs(func(f Facts, a *provider.Application) {
				demand := Demand{Level: LevelPolicy, Owner: "one"}
				a.Tags = append(slices.Clone(a.Tags), tagPrefix+installationOf(f.Identity)+gatewayOf(f.Identity, "one", "g0")+deciderOf(f.Identity, demand.DeciderKey()))
			})},
		},
		{
			name: "the tag does not depend on the cluster", scenario: "a backup that ends its demand", finds: "has no tag of the installation",
			rules: modelRules{facts: func(_ *modelWorld, f Facts) Facts {
				f.Identity.ClusterUID = "any"
				return f
			}},
		},
		{
			name: "an application that covers more is adopted", scenario: "an application made by hand", finds: "covers more than",
			rules: modelRules{read: readAs(func(_ Facts, a *provider.Application) { a.Domains = a.Domains[:1] })},
		},
		{
			name: "a wildcard made by hand does not count", scenario: "a wildcard made by hand", finds: "belongs to another client",
			rules: modelRules{read: func(_ *modelWorld, _ Facts, list []provider.Application) []provider.Application {
				return slices.DeleteFunc(slices.Clone(list), func(a provider.Application) bool { return a.Name == "external" })
			}},
		},
		{
			name: "a hostname needs no permission", scenario: "a new hostname", finds: "without permission",
			rules: modelRules{facts: gatewaysAs(func(g *Gateway) {
				for i := range g.Demands {
					g.Demands[i].Permitted = true
				}
			})},
		},
	}
}

// brokenTokens are rules about the tokens that visitors have.
func brokenTokens() []brokenRule {
	return []brokenRule{
		{
			name: "a stricter change needs no revocation", scenario: "a protected hostname with edits", finds: "without marking it",
			rules: modelRules{step: writesAs(func(w *Write) { w.Spec.Tags = withoutTag(w.Spec.Tags, tagRevoke) })},
		},
		{
			name: "the mark disappears without a revocation", scenario: "a protected hostname", finds: "removes the mark of a revocation",
			rules: modelRules{step: writesAs(func(w *Write) {
				if w.Operation == Revoke {
					w.Operation = Update
					w.Spec = provider.ApplicationSpec{
						Hostname: w.Hostname, Name: w.Last.Name, Policies: w.Last.Policies, SessionDuration: w.Last.SessionDuration, Tags: withoutTag(w.Last.Tags, tagRevoke),
					}
				}
			})},
		},
		{
			name: "a hostname opens while tokens are to be revoked", scenario: "a protected hostname", finds: "are to be revoked",
			rules: modelRules{known: knownAs(func(_ *Demanded, k *Known) {
				for hostname, v := range k.Verdicts {
					if v.Application != nil {
						a := *v.Application
						a.Revoking = false
						v.Application = &a
						k.Verdicts[hostname] = v
					}
				}
			})},
		},
		{
			name: "a demand is never stricter", scenario: "a protected hostname", finds: "lets in more than",
			rules: modelRules{known: knownAs(func(d *Demanded, k *Known) {
				for hostname, v := range k.Verdicts {
					if demand, ok := d.Demands[hostname]; ok && v.Application != nil {
						a, spec := *v.Application, specOf(&demand, d.Settings)
						a.Last.Policies, a.Last.SessionDuration, a.Last.OtherPolicies = spec.Policies, spec.SessionDuration, 0
						v.Application = &a
						k.Verdicts[hostname] = v
					}
				}
			})},
		},
		{
			name: "the owner does not matter", scenario: "two owners of one hostname", finds: "instead of making it again",
			rules: modelRules{facts: gatewaysAs(func(g *Gateway) {
				for i := range g.Demands {
					g.Demands[i].Owner = "any"
				}
				for i := range g.Hostnames {
					g.Hostnames[i].Namespace = "any"
				}
			})},
		},
		{
			name: "an application is shared with a stricter demand", scenario: "two Gateways with one demand", finds: "with a stricter demand",
			rules: modelRules{facts: gatewaysAs(func(g *Gateway) { g.InEffect = nil })},
		},
	}
}

// brokenEnds are rules about the end of protection and of applications.
func brokenEnds() []brokenRule {
	return []brokenRule{
		{
			name: "protection ends at once", scenario: "a protected hostname", finds: "whose protection is in effect",
			rules: modelRules{known: knownAs(func(d *Demanded, _ *Known) { d.Settings.OpeningDelay = 0 })},
		},
		{
			name: "an application ends at once", scenario: "a protected hostname", finds: "whose demand has been gone for 0s",
			rules: modelRules{facts: func(_ *modelWorld, f Facts) Facts {
				f.Classes = slices.Clone(f.Classes)
				f.Classes[0].Settings.OpeningDelay = 0
				return f
			}},
		},
		{
			name: "an application ends before the rule that demands it", scenario: "a protected hostname behind Envoy", finds: "whose tokens the rules of g0 demand",
			rules: modelRules{facts: gatewaysAs(func(g *Gateway) { g.InEffect = nil })},
		},
		{
			name: "Gateways that are not known do not count", scenario: "two Gateways with different demands", finds: "not known which Gateways exist",
			rules: modelRules{facts: func(_ *modelWorld, f Facts) Facts {
				f.Gateways = slices.DeleteFunc(slices.Clone(f.Gateways), func(g Gateway) bool { return g.State == ownership.Unknown })
				f.GatewaysKnown = true
				return f
			}},
		},
		{
			name: "a paused Gateway is changed", scenario: "a protected hostname", finds: "in state 3",
			rules: modelRules{facts: stateAs(ownership.Frozen, ownership.Accepted)},
		},
		{
			name: "demands that cannot be read are none", scenario: "a protected hostname", finds: "opens while nothing may end",
			rules: modelRules{known: knownAs(func(d *Demanded, _ *Known) { d.Unknown = false })},
		},
		{
			name: "a restart forgets the rules in effect", scenario: "a protected hostname", finds: "whose protection is in effect",
			rules: modelRules{known: knownAs(func(d *Demanded, k *Known) {
				if len(d.Demands) == 0 {
					k.InEffect, k.Verdicts = nil, nil
				}
			})},
		},
	}
}

// brokenStates are rules about hostnames whose application is outstanding.
func brokenStates() []brokenRule {
	return []brokenRule{
		{
			name: "a new hostname is open", scenario: "a new hostname", finds: "has not served it open",
			rules: modelRules{states: func(states map[string]State) {
				for hostname, s := range states {
					if s.Status == Closed && s.Reason == conditions.ReasonPending {
						states[hostname] = State{Status: Open, Reason: s.Reason, Message: s.Message}
					}
				}
			}},
		},
		{
			name: "the five minutes have no end", scenario: "a hostname that was open", finds: "after its demand",
			rules: modelRules{known: knownAs(func(_ *Demanded, k *Known) {
				hostnames := maps.Clone(k.Exposure.hostnames)
				for hostname, r := range hostnames {
					r.waits = false
					hostnames[hostname] = r
				}
				k.Exposure.hostnames = hostnames
			})},
		},
		{
			name: "an unread list has no applications", scenario: "a protected hostname", finds: "closes before the applications were read",
			rules: modelRules{known: knownAs(func(_ *Demanded, k *Known) {
				if !k.Read {
					k.Read, k.InEffect = true, nil
				}
			})},
		},
		{
			name: "a wildcard's application precedes its exceptions", scenario: "another owner below a wildcard", finds: "before a.example.com of g1",
			rules: modelRules{facts: gatewaysAs(func(g *Gateway) {
				g.Hostnames = slices.DeleteFunc(g.Hostnames, func(h Hostname) bool { return h.Namespace == "two" })
			})},
		},
		{
			name: "a hostname may bypass its own demand", scenario: "another owner's demand below a wildcard", finds: "which is demanded",
			rules: modelRules{facts: gatewaysAs(func(g *Gateway) {
				g.Demands = slices.DeleteFunc(g.Demands, func(d Demand) bool { return !strings.HasPrefix(d.Hostname, "*") })
			})},
		},
	}
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
	second := withOf(1, 0, claims(modelA, "one", false), policy(modelA, specEmployees))
	return []modelScenario{
		{name: "a backup that ends its demand", depth: 1, start: starting(secondInstallation, restored, serving(0, modelA), with(0, policy(modelA, specEmployees)), second, settled),
			events: []modelEvent{onGatewayOf(1, 0, "no longer claims a.example.com", release(modelA))}},
		{name: "another owner's demand below a wildcard", depth: 1,
			start: starting(serving(0, modelW), serving(1, modelA), with(0, policy(modelW, specEmployees)), with(1, policy(modelA, specContractor))), events: processEvents()},
	}
}
