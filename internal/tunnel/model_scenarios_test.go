package tunnel

import "slices"

func scenarios() []scenario {
	outside := slices.Concat(gatewayEvents(), unknownEvents(), classEvents(), pauseEvents(), settingsEvents(), objectEvents(),
		cloudflareEvents(), connectorEvents(), objectsOfConnectorsEvents(), rotationEvents(), refreshEvents(), timeEvents(), credentialEvents())
	everything := slices.Concat(processEvents(), outside)
	adoption := slices.Concat(processEvents(), gatewayEvents(), rivalEvents(), []event{objectDeleted(), restoreSettings(identityAdopted)}, cloudflareEvents(), pauseEvents())
	pair := slices.Concat(processEvents(), gatewayEvents(), []event{objectDeleted()})
	changing := slices.Concat(processEvents(), dataPlaneEvents(), rolloutEvents(), envoyEvents(), excessEvents(), pauseEvents(), gatewayEvents()[:2], connectorEvents(),
		enablingEvents(), []event{changeRoute()})
	rollback := slices.Concat(versionEvents(), processEvents(), gatewayEvents(), pauseEvents(), rotationEvents(), refreshEvents(), []event{changeRoute()})
	restore := []event{restoreSettings(identityNamed)}
	return []scenario{
		{name: "a created tunnel", depth: 2, start: startNamed, events: slices.Concat(everything, restore)},
		{name: "an adopted tunnel", depth: 2, start: startAdopted(settings{takeover: true}), events: adoption},
		{name: "an adopted tunnel with all events", depth: 1, start: startAdopted(settings{takeover: true}), events: slices.Concat(outside, adoption)},
		{name: "an adopted tunnel without takeover", depth: 1, start: startAdopted(settings{}), events: slices.Concat(outside, adoption, takeoverEvents())},
		{name: "an adopted tunnel that is retained", depth: 1, start: startAdopted(settings{takeover: true, retain: true}), events: slices.Concat(outside, adoption)},
		{name: "a created tunnel that is retained", depth: 1, start: func(m *model) {
			startNamed(m)
			m.actors[0].gateway.settings.retain = true
		}, events: slices.Concat(everything, restore)},
		{name: "a created tunnel with Envoy", depth: 1, start: startWithEnvoy(startNamed), events: slices.Concat(everything, restore)},
		{name: "an adopted tunnel with Envoy", depth: 1, start: startWithEnvoy(startAdopted(settings{takeover: true})), events: slices.Concat(outside, adoption)},
		{name: "faults while the data plane changes", depth: 2, start: startNamed, events: slices.Concat(processEvents(), dataPlaneEvents(), []event{changeRoute(), objectDeleted()})},
		{name: "a change to Envoy", depth: 2, start: startServing(startNamed), events: changing},
		{name: "a change to ingress rules", depth: 2, start: startServing(startWithEnvoy(startNamed)), events: changing},
		{name: "a rollback of the controller", depth: 2, start: startNamed, events: rollback},
		{name: "a rollback with everything else", depth: 1, start: startOlder, events: slices.Concat(everything, restore, versionEvents())},
		{name: "a rollback with Envoy", depth: 1, start: startServing(startWithEnvoy(startNamed)), events: slices.Concat(rollback, dataPlaneEvents())},
		{name: "a rollback during a deletion", depth: 2, start: startDeleted, events: slices.Concat(versionEvents(), processEvents(), gatewayEvents())},
		{name: "an existing tunnel with the Gateway's name", depth: 1, start: startExisting(nameOfActor, false), events: slices.Concat(everything, restore)},
		{name: "a locally managed tunnel with the Gateway's name", depth: 1, start: startExisting(nameOfActor, true), events: slices.Concat(everything, restore)},
		{name: "an adopted tunnel that is locally managed", depth: 1, start: func(m *model) {
			startAdopted(settings{takeover: true})(m)
			m.cloudflare.tunnels[0].local = true
		}, events: everything},
		{name: "an adopted tunnel with the name of another Gateway", depth: 1, start: func(m *model) {
			startAdopted(settings{takeover: true})(m)
			m.cloudflare.tunnels[0].name = nameReserved
		}, events: everything},
		{name: "a tunnel with a limit on its writes", depth: 2, start: func(m *model) {
			startNamed(m)
			m.actors[0].gateway.settings.limited = true
		}, events: slices.Concat(processEvents(), gatewayEvents(), pauseEvents(), []event{objectDeleted(), changeRoute()})},
		{name: "faults during a deletion", depth: 3, start: startDeleted, events: slices.Concat(processEvents(), gatewayEvents())},
		{name: "a deletion while DNS records lead to the tunnel", depth: 2, start: func(m *model) {
			startDeleted(m)
			m.actors[0].unreleased = true
		}, events: slices.Concat(processEvents(), gatewayEvents(), pauseEvents(), recordEvents(), []event{objectDeleted()})},
		{name: "DNS records of a serving tunnel", depth: 1, start: startNamed, events: slices.Concat(everything, restore, recordEvents())},
		{name: "a deletion while applications remain", depth: 2, start: func(m *model) {
			startDeleted(m)
			m.actors[0].applicationsRemain = true
		}, events: slices.Concat(processEvents(), gatewayEvents(), pauseEvents(), applicationEvents(), []event{objectDeleted()})},
		{name: "applications of a serving tunnel", depth: 1, start: startNamed, events: slices.Concat(everything, restore, applicationEvents())},
		{name: "two Gateways that adopt the same tunnel", depth: 1, start: func(m *model) {
			startAdopted(settings{takeover: true})(m)
			m.count = 2
			m.actors[1].gateway = m.actors[0].gateway
			m.actors[1].reconcileDue = true
		}, events: pair},
		{name: "a Gateway that adopts another Gateway's tunnel", depth: 1, start: func(m *model) {
			startNamed(m)
			m.count = 2
			m.actors[1].gateway = gatewayObject{exists: true, uid: 1, settings: settings{identity: identityAdopted, takeover: true}}
			m.actors[1].reconcileDue = true
		}, events: pair},
	}
}

const nameOfActor = 0

// startNamed starts with a Gateway whose tunnel the controller creates.
func startNamed(m *model) {
	m.actors[0].gateway = gatewayObject{exists: true, uid: 1}
	m.actors[0].reconcileDue = true
}

// startWithEnvoy changes the settings at the start to Envoy.
func startWithEnvoy(start func(m *model)) func(m *model) {
	return func(m *model) {
		start(m)
		m.actors[0].gateway.settings.envoy = true
	}
}

// startOlder starts with an older controller version than the version that serves the
// tunnel.
func startOlder(m *model) {
	startServing(startNamed)(m)
	if !versionEvents()[0].apply(m, 0) {
		panic("no version is recorded")
	}
}

// startExisting starts with such a Gateway and an existing tunnel.
func startExisting(name uint8, local bool) func(m *model) {
	return func(m *model) {
		startNamed(m)
		m.cloudflare.tunnels[0] = remoteTunnel{used: true, live: true, name: name, local: local, token: 1, configuration: externalConfigurationIndex, version: 3}
	}
}

// startAdopted starts with a Gateway that adopts a tunnel.
func startAdopted(s settings) func(m *model) {
	return func(m *model) {
		startExisting(nameUnrelated, false)(m)
		s.identity = identityAdopted
		m.actors[0].gateway.settings = s
		m.cloudflare.tunnels[0].original = true
	}
}

// startDeleted starts with a Gateway that was deleted while its tunnel was serving.
func startDeleted(m *model) {
	startNamed(m)
	x := &exploration{}
	for m.actors[0].pods[0].state != podConnected || !m.idle() {
		x.advanceOnce(m, nil)
	}
	m.actors[0].gateway.exists = false
	m.requeueAll()
}
