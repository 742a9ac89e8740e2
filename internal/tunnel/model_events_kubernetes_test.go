package tunnel

import (
	"maps"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// gatewayEvent returns an event that changes an actor's Gateway.
func gatewayEvent(name string, free bool, change func(g *gatewayObject, m *model) bool) event {
	return event{name: name, free: free, apply: func(m *model, a int) bool {
		if !change(&m.actors[a].gateway, m) {
			return false
		}
		m.requeueAll()
		return true
	}}
}

// toggle returns the two events that set and restore a flag on the Gateway.
func toggle(set, restore string, flag func(g *gatewayObject) *bool) []event {
	return []event{
		gatewayEvent(set, false, func(g *gatewayObject, _ *model) bool {
			if !g.exists || *flag(g) {
				return false
			}
			*flag(g) = true
			return true
		}),
		gatewayEvent(restore, true, func(g *gatewayObject, _ *model) bool {
			if !g.exists || !*flag(g) {
				return false
			}
			*flag(g) = false
			return true
		}),
	}
}

func settingsEvent(name string, free bool, change func(s *settings) bool) event {
	return gatewayEvent(name, free, func(g *gatewayObject, _ *model) bool { return g.exists && change(&g.settings) })
}

// selectTunnel returns the event that makes the settings select another tunnel.
func selectTunnel(name string, other identity) event {
	return settingsEvent(name, false, func(s *settings) bool {
		if s.identity != identityNamed && s.identity != identityAdopted {
			return false
		}
		if s.identity == identityNamed && other == identityOtherTunnel {
			s.identity = identityAdopted
			return true
		}
		s.identity = other
		return true
	})
}

func gatewayEvents() []event {
	return []event{
		gatewayEvent("the Gateway is deleted", false, func(g *gatewayObject, _ *model) bool {
			if !g.exists {
				return false
			}
			g.exists = false
			return true
		}),
		gatewayEvent("a Gateway with the same name is created", false, func(g *gatewayObject, _ *model) bool {
			if g.exists {
				return false
			}
			g.exists, g.paused, g.otherClass, g.uid = true, false, false, g.uid+1
			return true
		}),
		gatewayEvent("a Gateway with the same name and another account is created", false, func(g *gatewayObject, _ *model) bool {
			if g.exists {
				return false
			}
			g.exists, g.paused, g.otherClass, g.uid, g.settings.identity = true, false, false, g.uid+1, identityOtherAccount
			return true
		}),
	}
}

func unknownEvents() []event {
	return []event{
		gatewayEvent("reads of the Gateway fail", false, func(g *gatewayObject, _ *model) bool {
			if g.unknown {
				return false
			}
			g.unknown = true
			return true
		}),
		gatewayEvent("reads of the Gateway succeed again", true, func(g *gatewayObject, _ *model) bool {
			if !g.unknown {
				return false
			}
			g.unknown = false
			return true
		}),
	}
}

func classEvents() []event {
	return toggle("the Gateway changes to another controller's class", "the Gateway changes back to this controller's class", func(g *gatewayObject) *bool { return &g.otherClass })
}

func pauseEvents() []event {
	list := toggle("the Gateway is paused", "the Gateway is resumed", func(g *gatewayObject) *bool { return &g.paused })
	return append(list, objectEvent("an administrator clears spec.paused of the Tunnel", func(_ *model, actor *actor, t *v1alpha1.Tunnel) bool {
		if !t.Spec.Paused || actor.gateway.exists {
			return false
		}
		t.Spec.Paused = false
		return true
	}))
}

func settingsEvents() (list []event) {
	list = append(list, toggle("the settings become invalid", "the settings are valid again", func(g *gatewayObject) *bool { return &g.settings.invalid })...)
	list = append(list, toggle("the class sets deletionPolicy to Retain", "the class sets deletionPolicy to Delete again", func(g *gatewayObject) *bool { return &g.settings.retain })...)
	list = append(list, toggle("a GRPCRoute is attached", "the GRPCRoute is detached", func(g *gatewayObject) *bool { return &g.settings.grpc })...)
	list = append(list, enablingEvents()...)
	list = append(list, toggle("the Gateway is no longer accepted", "the Gateway is accepted again", func(g *gatewayObject) *bool { return &g.settings.unaccepted })...)
	list = append(list, dataPlaneEvents()...)
	list = append(list, selectTunnel("the cluster ID is changed", identityOtherName))
	list = append(list, selectTunnel("the account is changed", identityOtherAccount))
	list = append(list, selectTunnel("tunnel.existing.id is changed", identityOtherTunnel))
	return append(list, changeRoute())
}

func enablingEvents() []event {
	return toggle("connector.enabled becomes false", "connector.enabled is true again", func(g *gatewayObject) *bool { return &g.settings.connectorsDisabled })
}

func dataPlaneEvents() []event {
	return toggle("the class selects Envoy", "the class selects ingress rules", func(g *gatewayObject) *bool { return &g.settings.envoy })
}

func changeRoute() event {
	return settingsEvent("a route is changed", false, func(s *settings) bool {
		s.routes = 1 - s.routes
		return true
	})
}

func takeoverEvents() []event {
	return toggle("the class permits takeover", "the class forbids takeover", func(g *gatewayObject) *bool { return &g.settings.takeover })
}

func restoreSettings(original identity) event {
	return settingsEvent("the settings are restored", true, func(s *settings) bool {
		if s.identity == original {
			return false
		}
		s.identity = original
		return true
	})
}

func objectEvent(name string, change func(m *model, actor *actor, t *v1alpha1.Tunnel) bool) event {
	return event{name: name, apply: func(m *model, a int) bool {
		actor := &m.actors[a]
		if actor.object == nil {
			return false
		}
		t := actor.object.Tunnel
		if !change(m, actor, &t) {
			return false
		}
		actor.object = m.newObject(actor.object.uid, t)
		m.requeueAll()
		return true
	}}
}

// restored returns an event that restores the Tunnel object from a backup.
func restored(name string, change func(t *v1alpha1.Tunnel)) event {
	return event{name: name, apply: func(m *model, a int) bool {
		actor := &m.actors[a]
		if actor.backup == nil {
			return false
		}
		m.adminChanged = true
		if actor.object != nil {
			m.loseObject(a)
		}
		t := actor.backup.Tunnel
		change(&t)
		actor.object = m.newObject(m.newUID(), t)
		m.requeueAll()
		return true
	}}
}

func objectDeleted() event {
	return event{name: "an administrator deletes the Tunnel object", apply: func(m *model, a int) bool {
		if m.actors[a].object == nil {
			return false
		}
		m.adminChanged = true
		m.loseObject(a)
		return true
	}}
}

func objectEvents() []event {
	return []event{
		objectDeleted(),
		restored("the Tunnel object is restored from a backup", func(*v1alpha1.Tunnel) {}),
		restored("the Tunnel object is restored from a backup without its status", func(t *v1alpha1.Tunnel) { t.Status = v1alpha1.TunnelStatus{} }),
		restored("the Tunnel object is restored from a backup without its data plane", func(t *v1alpha1.Tunnel) { t.Status.DataPlane = "" }),
		restored("the Tunnel object is restored from a backup of another cluster", func(t *v1alpha1.Tunnel) { t.Spec.ClusterUID = "elsewhere" }),
		objectEvent("an administrator sets deletionPolicy of the Tunnel to Retain", func(_ *model, actor *actor, t *v1alpha1.Tunnel) bool {
			if actor.gateway.exists || t.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain {
				return false
			}
			t.Spec.DeletionPolicy = v1alpha1.DeletionPolicyRetain
			return true
		}),
	}
}

// versionEvents replace the controller with another version. The version of a Tunnel
// counts relative to the running controller.
func versionEvents() []event {
	runs := func(name string, free bool, from, to int32) event {
		e := objectEvent(name, func(m *model, _ *actor, t *v1alpha1.Tunnel) bool {
			if t.Status.SchemaVersion != from {
				return false
			}
			m.restart()
			t.Status.SchemaVersion = to
			return true
		})
		e.free = free
		return e
	}
	return []event{
		runs("an older version of the controller runs", false, SchemaVersion, SchemaVersion+1),
		runs("the newer version runs again", true, SchemaVersion+1, SchemaVersion),
		runs("a newer version of the controller runs", false, SchemaVersion, SchemaVersion-1),
	}
}

func objectsOfConnectorsEvents() []event {
	return []event{
		{name: "the token Secret is deleted", apply: func(m *model, a int) bool {
			if !m.actors[a].secret.exists {
				return false
			}
			m.actors[a].secret = secretObject{}
			m.requeueAll()
			return true
		}},
		{name: "the Deployment is deleted", apply: func(m *model, a int) bool {
			if !m.actors[a].deployment.exists {
				return false
			}
			m.stopConnectors(a)
			m.requeueAll()
			return true
		}},
	}
}

func rotationEvents() []event {
	return []event{objectEvent("an administrator requests a token rotation", func(_ *model, _ *actor, t *v1alpha1.Tunnel) bool {
		return appendRequest(t, v1alpha1.RotateTokenAnnotation)
	})}
}

// appendRequest appends a letter to the annotation's value, and reports whether the
// value may have that length.
func appendRequest(t *v1alpha1.Tunnel, annotation string) bool {
	annotations := map[string]string{}
	maps.Copy(annotations, t.Annotations)
	annotations[annotation] += "+"
	t.Annotations = annotations
	return len(annotations[annotation]) < 3
}

func refreshEvents() []event {
	return []event{objectEvent("an administrator requests a reconcile", func(_ *model, actor *actor, t *v1alpha1.Tunnel) bool {
		actor.readSince = false
		return appendRequest(t, v1alpha1.ReconcileAnnotation)
	})}
}
