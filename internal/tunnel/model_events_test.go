package tunnel

import (
	"time"
)

// event is a change in the environment. A free event reverts another event, and does
// not count as a change in a trace.
type event struct {
	name string
	free bool
	// idle reports whether the event makes a difference only while the actors sleep.
	idle bool
	// once reports whether the event affects the environment and not one actor.
	once bool
	// apply changes the model. It reports whether the event was possible.
	apply func(m *model, a int) bool
}

// recordedTunnel returns the tunnel that the actor's Tunnel records, or nil.
func (m *model) recordedTunnel(a int) *remoteTunnel {
	if o := m.actors[a].object; o != nil {
		return m.cloudflare.get(tunnelIndex(o.Status.TunnelID))
	}
	return nil
}

// tunnelEvent returns an event at Cloudflare.
func tunnelEvent(name string, free bool, change func(m *model, t *remoteTunnel) bool) event {
	return event{name: name, free: free, apply: func(m *model, a int) bool {
		t := m.recordedTunnel(a)
		return t != nil && change(m, t)
	}}
}

func cloudflareEvents() []event {
	return []event{
		tunnelEvent("the configuration is changed externally", false, func(_ *model, t *remoteTunnel) bool {
			if t.local {
				return false
			}
			t.configure(externalConfigurationIndex)
			t.external = true
			return true
		}),
		tunnelEvent("the tunnel is deleted externally", false, func(m *model, t *remoteTunnel) bool {
			*t = remoteTunnel{used: true}
			for a := range m.count {
				for i := range m.actors[a].pods {
					if p := &m.actors[a].pods[i]; p.state == podConnected && m.cloudflare.get(p.tunnel) == nil {
						p.state = podRefused
					}
				}
			}
			m.requeueAll()
			return true
		}),
		tunnelEvent("a private network route is added to the tunnel", false, func(_ *model, t *remoteTunnel) bool {
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
		tunnelEvent("a connector of another operator connects", false, func(m *model, t *remoteTunnel) bool {
			if t.unmanagedConnector() >= 0 || t.local {
				return false
			}
			m.connectorIDs++
			t.connect(remoteConnector{id: m.connectorIDs, connected: true, unmanaged: true, token: t.token, at: m.now})
			return true
		}),
		tunnelEvent("the connector of another operator disconnects", true, func(_ *model, t *remoteTunnel) bool {
			i := t.unmanagedConnector()
			if i < 0 {
				return false
			}
			t.connectors[i].connected = false
			return true
		}),
		{name: "a node is lost", apply: func(m *model, a int) bool { return m.losePod(a, podStuck) }},
		{name: "a pod is killed", apply: func(m *model, a int) bool { return m.losePod(a, podNone) }},
	}
}

func (t *remoteTunnel) unmanagedConnector() int {
	for i, c := range t.connectors {
		if c.id != 0 && c.unmanaged && c.connected {
			return i
		}
	}
	return -1
}

// losePod ends a pod abruptly, so that Cloudflare lists its connector as disconnected.
func (m *model) losePod(a int, state podState) bool {
	for i := range m.actors[a].pods {
		p := &m.actors[a].pods[i]
		if p.state != podConnected && p.state != podStopping {
			continue
		}
		if t := m.cloudflare.get(p.tunnel); t != nil && p.connector != 0 {
			t.removeConnector(p.connector, false)
		}
		*p = pod{state: state, tunnel: p.tunnel, envoy: p.envoy}
		if state == podNone {
			*p = pod{}
		}
		m.continueRollOut(a)
		m.requeueAll()
		return true
	}
	return false
}

func processEvents() []event {
	return []event{
		{name: "the process crashes", once: true, apply: func(m *model, _ int) bool {
			m.restart()
			return true
		}},
		{name: "the cache becomes stale", once: true, apply: func(m *model, _ int) bool {
			if m.staleCache != nil {
				return false
			}
			m.staleCache, m.staleRival = new([maxActors]view), m.rival
			for a := range m.count {
				m.staleCache[a] = m.actors[a].view
			}
			return true
		}},
		{name: "the cache is refreshed", once: true, free: true, apply: func(m *model, _ int) bool {
			if m.staleCache == nil {
				return false
			}
			m.refreshCache()
			return true
		}},
	}
}

func timeEvents() []event {
	return []event{
		{name: "the wall clock jumps a day ahead", once: true, apply: func(m *model, _ int) bool {
			m.skew += 24 * time.Hour
			return m.skew <= 24*time.Hour
		}},
		{name: "the wall clock jumps a day back", once: true, apply: func(m *model, _ int) bool {
			m.skew -= 24 * time.Hour
			return m.skew >= -24*time.Hour
		}},
		{name: "the process reconciles half-way through its sleep", idle: true, apply: func(m *model, a int) bool {
			actor := &m.actors[a]
			if actor.nextReconcile <= m.now || actor.nextReconcile-m.now > time.Hour {
				return false
			}
			m.sleep((actor.nextReconcile - m.now) / 2)
			actor.reconcileDue = true
			return true
		}},
		{name: "a day passes", idle: true, once: true, apply: func(m *model, _ int) bool {
			if m.uptime() > 24*time.Hour || m.timers() != 0 {
				return false
			}
			m.sleep(24 * time.Hour)
			for a := range m.count {
				m.actors[a].reconcileDue = true
			}
			return true
		}},
	}
}

func credentialEvents() []event {
	return []event{
		{name: "the API token is lost", once: true, apply: func(m *model, _ int) bool {
			if m.credentialsLost {
				return false
			}
			m.credentialsLost = true
			m.requeueAll()
			return true
		}},
		{name: "a new API token is created", once: true, free: true, apply: func(m *model, _ int) bool {
			if !m.credentialsLost {
				return false
			}
			m.credentialsLost = false
			m.credentialsVersion++
			m.requeueAll()
			return true
		}},
	}
}

// recordEvents make DNS records lead to the tunnel, and release them.
func recordEvents() []event {
	unreleased := func(a *actor) *bool { return &a.unreleased }
	return []event{sets("DNS records lead to the tunnel", false, unreleased, true), sets("the DNS records are released", true, unreleased, false)}
}

// applicationEvents give the Gateway applications of Access, and release them.
func applicationEvents() []event {
	remain := func(a *actor) *bool { return &a.applicationsRemain }
	return []event{sets("the Gateway gets applications", false, remain, true), sets("the applications are released", true, remain, false)}
}

// sets returns an event that changes a fact about the actor.
func sets(name string, free bool, of func(*actor) *bool, value bool) event {
	return event{name: name, free: free, apply: func(m *model, a int) bool {
		fact := of(&m.actors[a])
		if *fact == value {
			return false
		}
		*fact = value
		m.requeueAll()
		return true
	}}
}

func rivalEvents() (list []event) {
	for _, r := range []struct {
		name  string
		rival rivalObject
	}{
		{"an older Tunnel requests the same tunnel", rivalObject{exists: true, older: true}},
		{"a younger Tunnel requests the same tunnel", rivalObject{exists: true}},
		{"a younger Tunnel records the same tunnel", rivalObject{exists: true, recorded: true}},
		{"a Tunnel of another controller records the same tunnel", rivalObject{exists: true, recorded: true, otherController: true}},
	} {
		list = append(list, event{name: r.name, once: true, apply: func(m *model, _ int) bool {
			if m.rival.exists {
				return false
			}
			m.rival = r.rival
			m.requeueAll()
			return true
		}})
	}
	return append(list, event{name: "the other Tunnel is deleted", once: true, free: true, apply: func(m *model, _ int) bool {
		if !m.rival.exists {
			return false
		}
		m.rival = rivalObject{}
		m.requeueAll()
		return true
	}})
}
