package access

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// modelSpec is what an entry or an AccessPolicy says. Its zero value says nothing.
type modelSpec uint8

const (
	specNone       modelSpec = iota
	specEmployees            // policies: [employees]
	specWider                // policies: [employees, ci]
	specShorter              // policies: [employees], sessionDuration: 8h
	specContractor           // policies: [contractors]
	specGuarded              // policies: [employees, blocked], which denies
	specBypass               // policies: [everybody], which has the decision bypass
	specExempt               // required: false
)

var modelSpecNames = [...]string{"nothing", "employees", "employees+ci", "employees for 8h", "contractors", "employees without some", "everybody", "no token"}

// requires reports whether the entry demands protection.
func (s modelSpec) requires() bool { return s != specNone && s != specExempt }

// modelPolicy is a reusable policy at Cloudflare.
type modelPolicy struct {
	name     v1alpha1.PolicyName
	id       provider.AccessPolicyID
	decision string
}

const (
	modelEmployees = iota
	modelCI
	modelContractors
	modelDenied
	modelEverybody
)

var modelPolicies = [...]modelPolicy{
	{"employees", "policy-e", "allow"}, {"ci", "policy-i", "non_identity"}, {"contractors", "policy-c", "allow"},
	{"blocked", "policy-n", "deny"}, {"everybody", "policy-b", "bypass"},
}

func policyIndex(id provider.AccessPolicyID) int {
	return slices.IndexFunc(modelPolicies[:], func(p modelPolicy) bool { return p.id == id })
}

// names returns the names of the policies.
func (s modelSpec) names() []v1alpha1.PolicyName {
	var list []int
	switch s {
	case specEmployees, specShorter:
		list = []int{modelEmployees}
	case specWider:
		list = []int{modelEmployees, modelCI}
	case specContractor:
		list = []int{modelContractors}
	case specGuarded:
		list = []int{modelEmployees, modelDenied}
	case specBypass:
		list = []int{modelEverybody}
	case specNone, specExempt:
	}
	names := make([]v1alpha1.PolicyName, 0, len(list))
	for _, n := range list {
		names = append(names, modelPolicies[n].name)
	}
	return names
}

func (s modelSpec) session() time.Duration {
	if s == specShorter {
		return 8 * time.Hour
	}
	return 24 * time.Hour
}

// below reports whether the wildcard covers the name, at any depth.
func below(name, wildcard int) bool { return wildcard == modelW && name != modelW }

// covers reports whether an application for the wildcard covers the name: it covers one
// level.
func covers(wildcard, name int) bool {
	return wildcard == name || wildcard == modelW && (name == modelA || name == modelB)
}

// entry returns the most specific entry of a level for the name, and its name.
func entry(entries *[modelNameCount]modelSpec, name int) (modelSpec, int) {
	if entries[name] != specNone {
		return entries[name], name
	}
	if below(name, modelW) && entries[modelW] != specNone {
		return entries[modelW], modelW
	}
	return specNone, -1
}

// modelDemand is what decides about a hostname.
type modelDemand struct {
	spec  modelSpec
	level Level
	// at is the name of the entry, or the listener of the AccessPolicy.
	at     int
	exempt bool
}

// decides returns what decides about a hostname of the Gateway's table.
func (in *modelInstall) decides(n, name int) modelDemand {
	g := &in.gateways[n]
	if !g.exists || !g.hosts[name].claimed {
		return modelDemand{}
	}
	listener := name
	if g.hosts[name].routed {
		listener = modelW
	}
	policy, at := g.policies[listener], listener
	if g.unread {
		policy = specNone
	}
	class, classAt := entry(&in.entries[g.class], name)
	own, ownAt := entry(&g.entries, name)
	for _, d := range []modelDemand{{spec: class, level: LevelClass, at: classAt}, {spec: own, level: LevelGateway, at: ownAt}, {spec: policy, level: LevelPolicy, at: at}} {
		if d.spec.requires() {
			return d
		}
	}
	return modelDemand{exempt: class == specExempt || own == specExempt}
}

// inherits reports whether the application for the wildcard protects the name, which needs
// none of its own.
func (in *modelInstall) inherits(n, name int) bool {
	g := &in.gateways[n]
	if name == modelW || !g.hosts[modelW].claimed || !covers(modelW, name) || g.hosts[name].namespace != g.hosts[modelW].namespace {
		return false
	}
	wide := in.decides(n, modelW)
	return wide.spec.requires() && wide == in.decides(n, name)
}

// demand returns the demand for the hostname as the decision about the Gateway makes it.
func (in *modelInstall) demand(n, name int, d modelDemand) Demand {
	g := &in.gateways[n]
	host := g.hosts[name]
	out := Demand{
		Hostname: modelNames[name], Level: d.level, Object: "the object", Created: modelEpoch.Add(g.created), Policies: d.spec.names(),
		SessionDuration: d.spec.session(), Permitted: !host.denied && !in.freely, NamedByClass: in.entries[g.class][name] != specNone,
	}
	switch d.level {
	case LevelClass:
		out.Owner, out.Permitted = modelClasses[g.class]+"/"+host.namespace, true
	case LevelGateway:
		out.Owner, out.Namespace = gatewayName(n).String()+"/"+host.namespace, gatewayName(n).Namespace
	case LevelPolicy:
		out.Owner, out.Namespace = host.namespace, host.namespace
	case levelBypass: // no object demands it
	}
	return out
}

// demands returns the demands of a Gateway, by name.
func (in *modelInstall) demands(n int) map[string]Demand {
	all := map[string]Demand{}
	for name := range modelNames {
		if d := in.decides(n, name); d.spec.requires() && !in.inherits(n, name) {
			all[modelNames[name]] = in.demand(n, name, d)
		}
	}
	return all
}

// tell returns what the decision about a Gateway says to the account.
func (in *modelInstall) tell(n int) *Gateway {
	g := &in.gateways[n]
	out := in.gateway(n, g.state())
	if g.exists {
		out.DemandsUnknown = g.unread
		for _, d := range in.demands(n) {
			out.Demands = append(out.Demands, d)
		}
		slices.SortFunc(out.Demands, func(a, b Demand) int { return strings.Compare(a.Hostname, b.Hostname) })
		for name, host := range g.hosts {
			if host.claimed {
				out.Hostnames = append(out.Hostnames, Hostname{
					Name: modelNames[name], Namespace: host.namespace, Created: modelEpoch.Add(g.created), Permitted: !host.denied && !in.freely,
					Exempt: in.decides(n, name).exempt, NamedByClass: in.entries[g.class][name] != specNone,
				})
			}
		}
	}
	if g.read {
		out.InEffectKnown, out.InEffect = true, g.configuration.tags()
	}
	return &out
}

// demandOf returns the demand that the account knows for the name, or nil.
func (g *modelGateway) demandOf(name string) *Demand {
	if g.reported == nil {
		return nil
	}
	for i := range g.reported.Demands {
		if g.reported.Demands[i].Hostname == name {
			return &g.reported.Demands[i]
		}
	}
	return nil
}

func (d modelDemand) String() string {
	if !d.spec.requires() {
		return modelSpecNames[d.spec]
	}
	return fmt.Sprintf("%s by level %d", modelSpecNames[d.spec], d.level)
}
