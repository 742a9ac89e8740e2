package tunnel

import "slices"

// scenarios are the explorations, one after the other.
func scenarios() []scenario {
	outside := slices.Concat(gatewayEvents(), unknownEvents(), classEvents(), pauseEvents(), settingsEvents(), objectEvents(),
		cloudflareEvents(), connectorEvents(), objectsOfConnectorsEvents(), rotationEvents(), timeEvents(), credentialEvents())
	everything := slices.Concat(processEvents(), outside)
	adoption := slices.Concat(processEvents(), gatewayEvents(), rivalEvents(), []event{objectDeleted(), restoreSettings(identityAdopted)}, cloudflareEvents(), pauseEvents())
	pair := slices.Concat(processEvents(), gatewayEvents(), []event{objectDeleted()})
	restore := []event{restoreSettings(identityNamed)}
	return []scenario{
		{name: "a created tunnel", depth: 2, start: startNamed, events: slices.Concat(everything, restore)},
		{name: "an adopted tunnel", depth: 2, start: startAdopted(settings{takeover: true}), events: adoption},
		{name: "an adopted tunnel and everything else", depth: 1, start: startAdopted(settings{takeover: true}), events: slices.Concat(outside, adoption)},
		{name: "an adopted tunnel without takeover", depth: 1, start: startAdopted(settings{}), events: slices.Concat(outside, adoption, takeoverEvents())},
		{name: "an adopted tunnel that is retained", depth: 1, start: startAdopted(settings{takeover: true, retain: true}), events: slices.Concat(outside, adoption)},
		{name: "a created tunnel that is retained", depth: 1, start: func(w *model) {
			startNamed(w)
			w.actors[0].gateway.settings.retain = true
		}, events: slices.Concat(everything, restore)},
		{name: "a tunnel that has the name already", depth: 1, start: startExisting(nameOfActor, false), events: slices.Concat(everything, restore)},
		{name: "a locally managed tunnel that has the name", depth: 1, start: startExisting(nameOfActor, true), events: slices.Concat(everything, restore)},
		{name: "a locally managed tunnel that is adopted", depth: 1, start: func(w *model) {
			startAdopted(settings{takeover: true})(w)
			w.cloudflare.tunnels[0].local = true
		}, events: everything},
		{name: "a tunnel of another Gateway's name that is adopted", depth: 1, start: func(w *model) {
			startAdopted(settings{takeover: true})(w)
			w.cloudflare.tunnels[0].name = nameReserved
		}, events: everything},
		{name: "faults during a deletion", depth: 3, start: startDeleted(settings{}), events: slices.Concat(processEvents(), gatewayEvents())},
		{name: "two Gateways that adopt the same tunnel", depth: 1, start: func(w *model) {
			startAdopted(settings{takeover: true})(w)
			w.count = 2
			w.actors[1].gateway = w.actors[0].gateway
			w.actors[1].dirty = true
		}, events: pair},
		{name: "a Gateway that adopts another one's tunnel", depth: 1, start: func(w *model) {
			startNamed(w)
			w.count = 2
			w.actors[1].gateway = gatewayObject{exists: true, uid: 1, settings: settings{identity: identityAdopted, takeover: true}}
			w.actors[1].dirty = true
		}, events: pair},
	}
}

const nameOfActor = 0

// named is a Gateway whose tunnel the controller creates.
func startNamed(w *model) {
	w.actors[0].gateway = gatewayObject{exists: true, uid: 1}
	w.actors[0].dirty = true
}

// existing is such a Gateway when a tunnel has the name already.
func startExisting(name uint8, local bool) func(w *model) {
	return func(w *model) {
		startNamed(w)
		w.cloudflare.tunnels[0] = remoteTunnel{used: true, live: true, name: name, local: local, token: 1, configuration: externalConfiguration, version: 3}
	}
}

// adopted is a Gateway that adopts a tunnel.
func startAdopted(s settings) func(w *model) {
	return func(w *model) {
		startExisting(nameUnrelated, false)(w)
		s.identity = identityAdopted
		w.actors[0].gateway.settings = s
		w.cloudflare.tunnels[0].original = true
	}
}

// deletedAfterServing is a Gateway that was deleted when its tunnel served.
func startDeleted(s settings) func(w *model) {
	return func(w *model) {
		startNamed(w)
		w.actors[0].gateway.settings = s
		x := &exploration{}
		for w.actors[0].pods[0].state != podConnected || !w.idle() {
			x.advanceOnce(w, nil)
		}
		w.actors[0].gateway.exists = false
		w.touch()
	}
}
