package dns

import (
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// newModelWorld returns a zone without records and an installation with two Gateways in two
// namespaces, which claim nothing yet.
func newModelWorld() *modelWorld {
	w := &modelWorld{now: time.Hour, disturbed: time.Hour, count: 1, zone: modelZone{account: modelAccount, status: "active"}}
	w.install(0)
	return w
}

// install adds an installation.
func (w *modelWorld) install(i int) {
	in := &w.installs[i]
	*in = modelInstall{index: i, boot: w.now, due: true, listed: true, origin: i, uid: i, key: i, limit: 100, mode: v1alpha1.DNSManage}
	for g, namespace := range []string{"one", "two"} {
		in.gateways[g] = modelGateway{exists: true, tunnel: true, known: true, namespace: namespace, created: time.Duration(g) * time.Minute}
	}
	w.track(i)
}

// starting returns the start of a scenario.
func starting(changes ...func(w *modelWorld)) func(w *modelWorld) {
	return func(w *modelWorld) {
		for _, change := range changes {
			change(w)
		}
		for i := range w.count {
			w.track(i)
		}
	}
}

// wanting makes a Gateway of the first installation claim hostnames.
func wanting(g int, names ...string) func(w *modelWorld) {
	return wantingOf(0, g, names...)
}

func wantingOf(i, g int, names ...string) func(w *modelWorld) {
	return func(w *modelWorld) {
		for _, name := range names {
			w.installs[i].gateways[g].claim(name)
		}
	}
}

// withRecord adds a proxied record of another client.
func withRecord(name, kind, content string) func(w *modelWorld) {
	return func(w *modelWorld) {
		if _, err := w.zone.create(provider.Record{Name: name, Type: kind, Content: content, Proxied: true, TTL: 1}, w.now); err != nil {
			panic(err)
		}
		slices.SortFunc(w.zone.records, compareRecords)
		w.zone.notices = nil
	}
}

// published follows the world until nothing changes.
func published(w *modelWorld) {
	w.requeue(0)
	for i := range w.count {
		w.track(i)
	}
	w.follow(3 * modelPropagation)
	w.disturbed = w.now
}

// oneNamespace puts both Gateways into the same namespace.
func oneNamespace(w *modelWorld) { w.installs[0].gateways[1].namespace = "one" }

// needingPermission makes the classes require permission.
func needingPermission(w *modelWorld) { w.installs[0].permission = true }

// secondClass puts g1 into GatewayClass two.
func secondClass(w *modelWorld) {
	w.installs[0].second, w.installs[0].gateways[1].class = true, 1
}

// secondInstallation adds an installation with the same cluster ID and another cluster UID.
func secondInstallation(w *modelWorld) {
	w.count = 2
	w.install(1)
}

// restored gives the second installation the key and the tunnels of the first one, as a
// backup of objects does.
func restored(w *modelWorld) { w.installs[1].key, w.installs[1].origin = 0, 0 }

// fixedTypes makes Cloudflare refuse to change a record's type.
func fixedTypes(w *modelWorld) { w.zone.fixed = true }

// gone removes g0 and its Tunnel object, and leaves its records in the zone.
func gone(w *modelWorld) {
	g := &w.installs[0].gateways[0]
	g.exists, g.tunnel, g.known = false, false, false
	g.tunnels++
	w.requeue(0)
}

// limited limits the records of each namespace.
func limited(w *modelWorld) { w.installs[0].limit = 1 }

const (
	modelWildcard = "*.example.com"
	modelA        = "a.example.com"
	modelB        = "b.example.com"
	modelDeep     = "x.a.example.com"
	modelG0       = "tunnel-0-0-0.cfargotunnel.com"
)

// modelScenarios are the explorations.
func modelScenarios() []modelScenario {
	outside := slices.Concat(processEvents(), stateEvents(0), permissionEvents(modelA), settingEvents(modelA), credentialEvents(), zoneEvents(),
		externalEvents(modelA, modelB), []modelEvent{adopts(0, 0, modelA), adopts(0, 1, modelA)})
	moves := slices.Concat(processEvents(), hostnameEvents(modelA), stateEvents(0), stateEvents(1)[:3])
	wildcards := slices.Concat(processEvents(), hostnameEvents(modelWildcard, modelA, modelDeep), stateEvents(0)[:3])
	everything := slices.Concat(outside, hostnameEvents(modelWildcard, modelA, modelB, modelDeep, "*.a.example.com"), stateEvents(1), externalEvents(modelWildcard, modelA),
		externalEvents(modelB, modelA), permissionEvents(modelWildcard, modelB), settingEvents(modelWildcard), []modelEvent{adopts(0, 0, modelWildcard), adopts(0, 1, modelWildcard)})
	return slices.Concat(
		[]modelScenario{
			{name: "one hostname", depth: 2, start: starting(wanting(0, modelA), published), events: outside},
			{name: "a hostname before it is published", depth: 1, start: starting(wanting(0, modelA, modelB)), events: everything},
			{name: "a hostname that moves between namespaces", depth: 2, start: starting(wanting(0, modelA), published), events: moves},
			{name: "a hostname that moves within a namespace", depth: 2, start: starting(oneNamespace, wanting(0, modelA), published), events: moves},
			{name: "wildcards", depth: 2, start: starting(wanting(0, modelWildcard), published, wanting(0, modelDeep), wanting(1, modelB), published), events: wildcards},
			{name: "wildcards that answer for others", depth: 2, start: starting(wanting(0, modelWildcard), published, wanting(0, modelDeep, modelB), published),
				events: slices.Concat(processEvents(), hostnameEvents(modelWildcard, modelA), stateEvents(0), externalEvents(modelWildcard, modelDeep))},
			{name: "wildcards with permission", depth: 2, start: starting(needingPermission, wanting(0, modelWildcard), published, wanting(0, modelDeep), wanting(1, modelA), published),
				events: slices.Concat(wildcards, permissionEvents(modelWildcard, modelA))},
			{name: "everything", depth: 2, start: starting(wanting(0, modelWildcard, modelA), wanting(1, modelB, modelDeep), published), events: everything},
			{name: "everything with permission", depth: 1, start: starting(needingPermission, wanting(0, modelWildcard, modelA), wanting(1, modelB), published), events: everything},
		},
		adoptionScenarios(), installationScenarios())
}

// adoptionScenarios explore records that others have made.
func adoptionScenarios() []modelScenario {
	adoption := slices.Concat(processEvents(), hostnameEvents(modelA), externalEvents(modelA, modelB), []modelEvent{adopts(0, 0, modelA), adopts(0, 1, modelA)}, credentialEvents())
	wildcard := slices.Concat(processEvents(), hostnameEvents(modelWildcard, modelA), []modelEvent{adopts(0, 0, modelWildcard), adopts(0, 1, modelWildcard), adopts(0, 0, modelA)},
		externalEvents(modelWildcard, modelA))
	return []modelScenario{
		{name: "a record that leads here", depth: 2, start: starting(wanting(0, modelA), withRecord(modelA, "CNAME", modelG0), published), events: adoption},
		{name: "a record that leads elsewhere", depth: 2, start: starting(wanting(0, modelA), withRecord(modelA, "CNAME", modelElsewhere), published), events: adoption},
		{name: "a former load balancer", depth: 2, start: starting(wanting(0, modelA), withRecord(modelA, "A", "192.0.2.1"), published), events: adoption},
		{name: "a former load balancer whose type cannot change", depth: 2, start: starting(wanting(0, modelA), withRecord(modelA, "A", "192.0.2.1"), published, fixedTypes), events: adoption},
		{name: "a chain of records", depth: 2, start: starting(wanting(0, modelB), wanting(1, modelDeep), withRecord(modelA, "CNAME", modelB), published, wanting(0, modelA), published),
			events: slices.Concat(processEvents(), hostnameEvents(modelA, modelB), stateEvents(0), externalEvents(modelB, modelA), []modelEvent{adopts(0, 0, modelA), adopts(0, 1, modelA)})},
		{name: "a chain through a wildcard", depth: 2, start: starting(wanting(0, modelWildcard), withRecord(modelA, "CNAME", "y.b.example.com"), published, wanting(0, modelA), published),
			events: slices.Concat(processEvents(), hostnameEvents(modelWildcard, modelB), stateEvents(0)[:3], []modelEvent{adopts(0, 0, modelA)})},
		{name: "a namespace with more hostnames than its share", depth: 2, start: starting(limited, wanting(0, modelA), wanting(1, modelB), published),
			events: slices.Concat(processEvents(), hostnameEvents(modelA, modelB, modelWildcard))},
		{name: "a wildcard made by hand", depth: 2, start: starting(wanting(0, modelA, modelB), withRecord(modelWildcard, "CNAME", modelG0), published), events: wildcard},
		{name: "a quota that is exhausted", depth: 2, start: starting(wanting(0, modelWildcard, modelA), published, func(w *modelWorld) { w.zone.quota = 4 }),
			events: slices.Concat(processEvents(), hostnameEvents(modelWildcard, modelB), zoneEvents()[3:], externalEvents(modelDeep, modelA)[:1])},
	}
}

// installationScenarios explore several classes and installations.
func installationScenarios() []modelScenario {
	pair := slices.Concat(processEvents(), []modelEvent{dropsClaim(0, 0, modelA), claims(1, 0, modelA), adopts(1, 0, modelA)}, credentialEvents()[:1])
	classes := slices.Concat(processEvents(), hostnameEvents(modelA), settingEvents(modelA), stateEvents(1)[:3])
	return []modelScenario{
		{name: "two classes", depth: 2, start: starting(secondClass, wanting(0, modelA), published), events: classes},
		{name: "an orphan", depth: 2, start: starting(wanting(0, modelA), published, gone), events: slices.Concat(classes, stateEvents(0)[4:], []modelEvent{adopts(0, 1, modelA)}, externalEvents(modelA, modelB))},
		{name: "two installations", depth: 2, start: starting(secondInstallation, wanting(0, modelA), published), events: pair},
		{name: "a backup in another cluster", depth: 1, start: starting(secondInstallation, restored, wanting(0, modelA), wantingOf(1, 0, modelA, modelB), published), events: slices.Concat(pair, hostnameEvents(modelA, modelB), []modelEvent{claims(1, 1, modelA), adopts(0, 0, modelB)})},
	}
}
