package access

import (
	"slices"
	"time"
)

// starting returns the start of a scenario.
func starting(changes ...func(w *modelWorld)) func(w *modelWorld) {
	return func(w *modelWorld) {
		for _, change := range changes {
			change(w)
		}
	}
}

// with changes a Gateway of the first installation.
func with(n int, changes ...func(w *modelWorld, g *modelGateway) bool) func(w *modelWorld) {
	return withOf(0, n, changes...)
}

func withOf(i, n int, changes ...func(w *modelWorld, g *modelGateway) bool) func(w *modelWorld) {
	return func(w *modelWorld) {
		g := &w.installs[i].gateways[n]
		for _, change := range changes {
			change(w, g)
		}
		g.due = true
	}
}

// serving makes a Gateway claim hostnames in its own namespace.
func serving(n int, names ...int) func(w *modelWorld) {
	return func(w *modelWorld) {
		for _, name := range names {
			claims(name, modelNamespaces[n], false)(w, &w.installs[0].gateways[n])
		}
	}
}

// fromClass adds an entry to the first class.
func fromClass(name int, spec modelSpec) func(w *modelWorld) {
	return func(w *modelWorld) { w.installs[0].entries[0][name] = spec }
}

// behindEnvoy makes Envoy serve a Gateway.
func behindEnvoy(_ *modelWorld, g *modelGateway) bool {
	g.envoy = true
	return true
}

// settled follows the world until nothing changes.
func settled(w *modelWorld) {
	s := &modelScenario{}
	for start := w.now; w.now-start < 2*time.Minute && w.violation == ""; {
		l, ok := s.Next(w)
		if !ok {
			break
		}
		s.Apply(w, l)
	}
	w.disturbed = w.now
}

// thirdGateway adds a Gateway in the namespace of the first one.
func thirdGateway(w *modelWorld) {
	w.installs[0].gateways[2] = modelGateway{exists: true, tunnel: true, due: true, created: 2 * time.Minute}
}

// secondClass puts g1 into the second class.
func secondClass(w *modelWorld) {
	w.installs[0].second, w.installs[0].gateways[1].class = true, 1
}

// secondInstallation adds an installation with the same cluster ID and another cluster UID.
func secondInstallation(w *modelWorld) {
	w.count = 2
	w.install(1)
}

// restored gives the second installation the key of the first one, as a backup does.
func restored(w *modelWorld) { w.installs[1].key, w.installs[1].origin = 0, 0 }

// happens applies an event at the start.
func happens(e modelEvent) func(w *modelWorld) {
	return func(w *modelWorld) {
		if !e.apply(w) {
			panic("impossible: " + e.name)
		}
	}
}

// orphaned removes g0 and its Tunnel object, and leaves its applications.
func orphaned(w *modelWorld) {
	g := &w.installs[0].gateways[0]
	*g = modelGateway{tunnels: g.tunnels + 1}
	w.requeue(0)
}

// modelScenarios are the explorations.
func modelScenarios() []modelScenario {
	return slices.Concat(singleScenarios(), sharedScenarios(), externalScenarios(), installationScenarios())
}

// singleScenarios explore the hostnames of one Gateway.
func singleScenarios() []modelScenario {
	demands := policyEvents(0, modelA, specNone, specEmployees, specWider, specShorter, specContractor, specGuarded, specBypass)
	inside := slices.Concat(processEvents(), demands[:4], classEvents(modelA, specNone, specWider), hostnameEvents(0, modelA), stateEvents(0), settingEvents())
	edits := slices.Concat(processEvents(), demands[:4], credentialEvents(), cloudEvents(), externalEvents(modelA), []modelEvent{adopts(0, 0, modelA)})
	outside := slices.Concat(inside, demands[4:], entryEvents(modelA, specNone, specEmployees), edits[1:], []modelEvent{externalCreation("*.example.com"), externalCreation("a.example.com/admin")})
	few := slices.Concat(processEvents(), policyEvents(0, modelA, specNone, specEmployees, specShorter), stateEvents(0)[:3], externalEvents(modelA)[:4], credentialEvents()[:1], cloudEvents()[:1])
	return []modelScenario{
		{name: "a protected hostname", depth: 2, start: starting(serving(0, modelA), with(0, policy(modelA, specWider)), settled), events: inside},
		{name: "a protected hostname with edits", depth: 2, start: starting(serving(0, modelA), with(0, policy(modelA, specWider)), settled), events: edits},
		{name: "a protected hostname with everything", depth: 1, start: starting(serving(0, modelA), with(0, policy(modelA, specWider)), settled), events: outside},
		{name: "a protected hostname behind Envoy", depth: 2, start: starting(serving(0, modelA), with(0, behindEnvoy, policy(modelA, specEmployees)), settled), events: few},
		{name: "a hostname that was open", depth: 2, start: starting(serving(0, modelA), settled), events: few},
		{name: "a hostname that was open behind Envoy", depth: 2, start: starting(serving(0, modelA), with(0, behindEnvoy), settled), events: few},
		{name: "a new hostname", depth: 1, start: starting(serving(0, modelA), with(0, policy(modelA, specEmployees))), events: outside},
		{name: "a protected wildcard", depth: 1,
			start: starting(with(0, claims(modelW, "one", false), policy(modelW, specEmployees), claims(modelA, "one", true), claims(modelDeep, "one", true)), settled),
			events: slices.Concat(processEvents(), policyEvents(0, modelW, specNone, specShorter), entryEvents(modelA, specNone, specExempt, specContractor),
				hostnameEvents(0, modelB), externalEvents(modelW)[:3], stateEvents(0)[:3])},
	}
}

// sharedScenarios explore Gateways that demand the same hostname, and owners below a
// wildcard.
func sharedScenarios() []modelScenario {
	pair := slices.Concat(processEvents(), policyEvents(0, modelA, specNone, specEmployees, specWider), policyEvents(1, modelA, specNone, specEmployees, specWider),
		stateEvents(0), stateEvents(1)[:3])
	shared := func(w *modelWorld) {
		for n := range 2 {
			claims(modelA, "one", false)(w, &w.installs[0].gateways[n])
		}
	}
	owners := slices.Concat(processEvents(), policyEvents(0, modelW, specNone, specEmployees, specShorter), policyEvents(1, modelA, specNone, specEmployees),
		hostnameEvents(1, modelA, modelB), stateEvents(1)[:3], settingEvents()[3:4])
	return []modelScenario{
		{name: "two Gateways with one demand", depth: 2, start: starting(shared, with(0, policy(modelA, specEmployees)), with(1, policy(modelA, specEmployees)), settled), events: pair},
		{name: "two Gateways with different demands", depth: 1, start: starting(shared, with(0, policy(modelA, specEmployees)), with(1, policy(modelA, specWider)), settled), events: pair},
		{name: "two owners of one hostname", depth: 1, start: starting(serving(0, modelA), serving(1, modelA), with(0, policy(modelA, specEmployees)), with(1, policy(modelA, specEmployees)), settled), events: pair},
		{name: "another owner below a wildcard", depth: 2, start: starting(serving(0, modelW), serving(1, modelA), with(0, policy(modelW, specEmployees)), settled), events: owners},
		{name: "an exempt hostname below the Gateway's wildcard", depth: 1,
			start: starting(serving(0, modelW, modelA), with(0, func(_ *modelWorld, g *modelGateway) bool {
				g.entries[modelW], g.entries[modelA] = specEmployees, specExempt
				return true
			}), settled),
			events: slices.Concat(processEvents(), entryEvents(modelW, specNone, specEmployees), entryEvents(modelA, specNone, specContractor), hostnameEvents(1, modelB), externalEvents(modelA))},
		{name: "an entry of the class", depth: 1, start: starting(fromClass(modelW, specEmployees), serving(0, modelA, modelDeep), serving(1, modelB), settled),
			events: slices.Concat(processEvents(), classEvents(modelW, specNone, specShorter), classEvents(modelA, specContractor, specExempt), policyEvents(0, modelA, specWider), stateEvents(0)[:4])},
		{name: "a third Gateway", depth: 1, start: starting(thirdGateway, shared, with(2, claims(modelA, "one", false), policy(modelA, specEmployees)), with(0, policy(modelA, specEmployees)), with(1, policy(modelA, specEmployees)), settled),
			events: slices.Concat(pair, policyEvents(2, modelA, specNone, specWider), stateEvents(2))},
		{name: "two classes", depth: 1, start: starting(secondClass, serving(0, modelA), serving(1, modelB), with(0, policy(modelA, specEmployees)), with(1, policy(modelB, specEmployees)), settled),
			events: slices.Concat(processEvents(), settingEvents(), policyEvents(1, modelB, specNone, specShorter), hostnameEvents(1, modelA), stateEvents(0)[:4])},
	}
}

// externalScenarios explore applications that other clients have made.
func externalScenarios() []modelScenario {
	adoption := slices.Concat(processEvents(), policyEvents(0, modelA, specNone, specEmployees, specShorter), externalEvents(modelA), credentialEvents(), []modelEvent{adopts(0, 0, modelA)})
	return []modelScenario{
		{name: "an application made by hand", depth: 2, start: starting(happens(externalCreation("a.example.com")), serving(0, modelA), with(0, policy(modelA, specEmployees)), settled), events: adoption},
		{name: "a wildcard made by hand", depth: 1, start: starting(happens(externalCreation("*.example.com")), serving(0, modelA), serving(1, modelB), with(0, policy(modelA, specEmployees)), settled),
			events: slices.Concat(processEvents(), classEvents(modelA, specEmployees, specExempt), policyEvents(0, modelA, specNone), externalEvents(modelW), externalEvents(modelA))},
		{name: "after a lost key", depth: 2, start: starting(serving(0, modelA), with(0, policy(modelA, specEmployees)), settled, happens(credentialEvents()[0]), settled), events: adoption},
		{name: "an orphan", depth: 2, start: starting(serving(0, modelA), serving(1, modelA), with(0, policy(modelA, specEmployees)), settled, orphaned, settled),
			events: slices.Concat(processEvents(), policyEvents(1, modelA, specEmployees, specShorter), stateEvents(0)[5:], stateEvents(1)[:2], externalEvents(modelA)[3:])},
	}
}

// installationScenarios explore two installations in one account.
func installationScenarios() []modelScenario {
	second := withOf(1, 0, claims(modelA, "one", false), policy(modelA, specEmployees))
	pair := slices.Concat(processEvents(), policyEvents(0, modelA, specNone, specEmployees), externalEvents(modelA)[3:], []modelEvent{adopts(1, 0, modelA)}, credentialEvents()[:2])
	return []modelScenario{
		{name: "two installations", depth: 1, start: starting(secondInstallation, serving(0, modelA), with(0, policy(modelA, specEmployees)), second, settled), events: pair},
		{name: "a backup in another cluster", depth: 1, start: starting(secondInstallation, restored, serving(0, modelA), with(0, policy(modelA, specEmployees)), second, settled), events: pair},
	}
}
