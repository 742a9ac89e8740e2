package tunnel

import "time"

// event is something that happens to the world. A free one restores what another
// one has changed, and costs nothing of the budget of a trace.
type event struct {
	name string
	free bool
	// idle is whether it only makes a difference while the actor sleeps.
	idle bool
	// once is whether it concerns the world and not one actor.
	once bool
	// apply changes the world. It reports whether the event was possible.
	apply func(w *model, a int) bool
}

// recordedTunnel returns the tunnel that the actor's Tunnel records, or nil.
func (w *model) recordedTunnel(a int) *remoteTunnel {
	if o := w.actors[a].object; o != nil {
		return w.cloudflare.get(tunnelIndex(o.Status.TunnelID))
	}
	return nil
}

// onTunnel returns an event at Cloudflare.
func onTunnel(name string, free bool, change func(w *model, t *remoteTunnel) bool) event {
	return event{name: name, free: free, apply: func(w *model, a int) bool {
		t := w.recordedTunnel(a)
		return t != nil && change(w, t)
	}}
}

func cloudflareEvents() []event {
	return []event{
		onTunnel("somebody else changes the configuration", false, func(_ *model, t *remoteTunnel) bool {
			if t.local {
				return false
			}
			t.configure(externalConfiguration)
			t.external = true
			return true
		}),
		onTunnel("somebody else deletes the tunnel", false, func(w *model, t *remoteTunnel) bool {
			*t = remoteTunnel{used: true}
			for a := range w.count {
				for i := range w.actors[a].pods {
					if p := &w.actors[a].pods[i]; p.state == podConnected && w.cloudflare.get(p.tunnel) == nil {
						p.state = podRefused
					}
				}
			}
			w.touch()
			return true
		}),
		onTunnel("private network routes lead to the tunnel", false, func(_ *model, t *remoteTunnel) bool {
			if t.routes {
				return false
			}
			t.routes = true
			return true
		}),
	}
}

func connectorEvents() []event {
	return []event{
		onTunnel("a connector that somebody else runs connects", false, func(w *model, t *remoteTunnel) bool {
			if t.foreignConnector() >= 0 || t.local {
				return false
			}
			w.connectorIDs++
			t.connect(remoteConnector{id: w.connectorIDs, connected: true, foreign: true, token: t.token, at: w.now})
			return true
		}),
		onTunnel("the connector that somebody else runs disconnects", true, func(_ *model, t *remoteTunnel) bool {
			i := t.foreignConnector()
			if i < 0 {
				return false
			}
			t.connectors[i].connected = false
			return true
		}),
		{name: "a node is lost", apply: func(w *model, a int) bool { return w.losePod(a, podStuck) }},
		{name: "a pod is killed", apply: func(w *model, a int) bool { return w.losePod(a, podNone) }},
	}
}

func (t *remoteTunnel) foreignConnector() int {
	for i, c := range t.connectors {
		if c.id != 0 && c.foreign && c.connected {
			return i
		}
	}
	return -1
}

// losePod ends a pod without a farewell to Cloudflare.
func (w *model) losePod(a int, state podState) bool {
	for i := range w.actors[a].pods {
		p := &w.actors[a].pods[i]
		if p.state != podConnected && p.state != podStopping {
			continue
		}
		if t := w.cloudflare.get(p.tunnel); t != nil && p.connector != 0 {
			t.drop(p.connector, false)
		}
		if *p = (pod{state: state}); state == podStuck {
			p.connector = 0
		}
		w.roll0(a)
		w.touch()
		return true
	}
	return false
}

func processEvents() []event {
	return []event{
		{name: "the process crashes", once: true, apply: func(w *model, _ int) bool {
			w.restart()
			return true
		}},
		{name: "the cache falls behind", once: true, apply: func(w *model, _ int) bool {
			if w.frozen != nil {
				return false
			}
			w.frozen, w.frozenRival = new([maxActors]view), w.rival
			for a := range w.count {
				w.frozen[a] = w.actors[a].view
			}
			return true
		}},
		{name: "the cache catches up", once: true, free: true, apply: func(w *model, _ int) bool {
			if w.frozen == nil {
				return false
			}
			w.thaw()
			return true
		}},
	}
}

func timeEvents() []event {
	return []event{
		{name: "the clock jumps a day ahead", once: true, apply: func(w *model, _ int) bool {
			w.skew += 24 * time.Hour
			return w.skew <= 24*time.Hour
		}},
		{name: "the clock jumps a day back", once: true, apply: func(w *model, _ int) bool {
			w.skew -= 24 * time.Hour
			return w.skew >= -24*time.Hour
		}},
		{name: "the process works on a change half-way through its sleep", idle: true, apply: func(w *model, a int) bool {
			me := &w.actors[a]
			if me.wake <= w.now || me.wake-w.now > time.Hour {
				return false
			}
			w.pass((me.wake - w.now) / 2)
			me.dirty = true
			return true
		}},
		{name: "a day passes", idle: true, once: true, apply: func(w *model, _ int) bool {
			if w.uptime() > 24*time.Hour || w.timers() != 0 {
				return false
			}
			w.pass(24 * time.Hour)
			for a := range w.count {
				w.actors[a].dirty = true
			}
			return true
		}},
	}
}

func credentialEvents() []event {
	return []event{
		{name: "the API token is lost", once: true, apply: func(w *model, _ int) bool {
			if w.credentialsLost {
				return false
			}
			w.credentialsLost = true
			w.touch()
			return true
		}},
		{name: "there is a new API token", once: true, free: true, apply: func(w *model, _ int) bool {
			if !w.credentialsLost {
				return false
			}
			w.credentialsLost = false
			w.credentialsVersion++
			w.touch()
			return true
		}},
	}
}

func rivalEvents() (list []event) {
	for _, r := range []struct {
		name  string
		rival rivalObject
	}{
		{"an older Tunnel asks for the same tunnel", rivalObject{exists: true, older: true}},
		{"a younger Tunnel asks for the same tunnel", rivalObject{exists: true}},
		{"a younger Tunnel records the same tunnel", rivalObject{exists: true, recorded: true}},
		{"a Tunnel of another controller records the same tunnel", rivalObject{exists: true, recorded: true, otherController: true}},
	} {
		list = append(list, event{name: r.name, once: true, apply: func(w *model, _ int) bool {
			if w.rival.exists {
				return false
			}
			w.rival = r.rival
			w.touch()
			return true
		}})
	}
	return append(list, event{name: "the other Tunnel is deleted", once: true, free: true, apply: func(w *model, _ int) bool {
		if !w.rival.exists {
			return false
		}
		w.rival = rivalObject{}
		w.touch()
		return true
	}})
}
