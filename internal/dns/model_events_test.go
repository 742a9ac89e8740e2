package dns

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// modelEvent is a fault or a change outside the controller.
type modelEvent struct {
	name string
	// apply changes the world, and reports whether the event was possible.
	apply func(w *modelWorld) bool
}

// onGateway returns an event that changes a Gateway of the first installation.
func onGateway(g int, name string, change func(w *modelWorld, g *modelGateway) bool) modelEvent {
	return onGatewayOf(0, g, name, change)
}

func onGatewayOf(i, g int, name string, change func(w *modelWorld, g *modelGateway) bool) modelEvent {
	return modelEvent{name: fmt.Sprintf("g%d of installation %d: %s", g, i, name), apply: func(w *modelWorld) bool {
		if i >= w.count || !change(w, &w.installs[i].gateways[g]) {
			return false
		}
		w.requeue(i)
		return true
	}}
}

// claims returns an event after which the Gateway serves the hostname.
func claims(i, g int, name string) modelEvent {
	return onGatewayOf(i, g, "claims "+name, func(_ *modelWorld, gw *modelGateway) bool {
		return gw.exists && gw.claim(name)
	})
}

// claim adds a hostname.
func (g *modelGateway) claim(name string) bool {
	if g.hostname(name) != nil {
		return false
	}
	g.hostnames = append(slices.Clone(g.hostnames), Hostname{Name: name, Namespace: g.namespace, Created: modelEpoch.Add(g.created), Served: true, Permitted: true})
	slices.SortFunc(g.hostnames, func(a, b Hostname) int { return strings.Compare(a.Name, b.Name) })
	return true
}

// dropsClaim returns an event after which the Gateway no longer claims the hostname.
func dropsClaim(i, g int, name string) modelEvent {
	return onGatewayOf(i, g, "no longer claims "+name, func(_ *modelWorld, gw *modelGateway) bool { return gw.dropClaim(name) })
}

func (g *modelGateway) dropClaim(name string) bool {
	if g.hostname(name) == nil {
		return false
	}
	g.hostnames = slices.DeleteFunc(slices.Clone(g.hostnames), func(h Hostname) bool { return h.Name == name })
	return true
}

// toggles returns an event that changes a hostname.
func toggles(g int, name, what string, change func(h *Hostname)) modelEvent {
	return onGateway(g, what+" "+name, func(_ *modelWorld, gw *modelGateway) bool {
		if gw.hostname(name) == nil {
			return false
		}
		gw.hostnames = slices.Clone(gw.hostnames)
		change(gw.hostname(name))
		return true
	})
}

// hostnameEvents are changes of the hostnames of both Gateways.
func hostnameEvents(names ...string) []modelEvent {
	var all []modelEvent
	for _, name := range names {
		for g := range 2 {
			all = append(all, claims(0, g, name), dropsClaim(0, g, name))
		}
		all = append(all, modelEvent{name: "g0 passes " + name + " to g1", apply: func(w *modelWorld) bool {
			in := &w.installs[0]
			if !in.gateways[0].dropClaim(name) || !in.gateways[1].exists || !in.gateways[1].claim(name) {
				return false
			}
			w.requeue(0)
			return true
		}})
	}
	return all
}

// permissionEvents are changes of what is permitted and served.
func permissionEvents(names ...string) []modelEvent {
	var all []modelEvent
	for _, name := range names {
		all = append(all,
			toggles(0, name, "permission changes for", func(h *Hostname) { h.Permitted = !h.Permitted }),
			toggles(0, name, "the route changes for", func(h *Hostname) { h.Served = !h.Served }))
	}
	return all
}

// stateEvents are changes of a Gateway's state.
func stateEvents(g int) []modelEvent {
	flag := func(name string, of func(*modelGateway) *bool) modelEvent {
		return onGateway(g, name, func(_ *modelWorld, gw *modelGateway) bool {
			*of(gw) = !*of(gw)
			return gw.exists
		})
	}
	return []modelEvent{
		flag("paused or not", func(gw *modelGateway) *bool { return &gw.paused }),
		flag("blocked or not", func(gw *modelGateway) *bool { return &gw.blocked }),
		flag("rejected or not", func(gw *modelGateway) *bool { return &gw.rejected }),
		onGateway(g, "connected", func(_ *modelWorld, gw *modelGateway) bool {
			was := gw.offline
			gw.offline = false
			return was
		}),
		deleted(g, false), deleted(g, true),
		onGateway(g, "created again", func(w *modelWorld, gw *modelGateway) bool {
			if gw.exists {
				return false
			}
			gw.exists, gw.known, gw.created = true, true, w.now
			if !gw.tunnel {
				gw.tunnel, gw.retained = true, false
			}
			return true
		}),
	}
}

// deleted returns an event that deletes the Gateway.
func deleted(g int, retained bool) modelEvent {
	name := "deleted"
	if retained {
		name = "deleted, its Tunnel is retained"
	}
	return onGateway(g, name, func(w *modelWorld, gw *modelGateway) bool {
		if !gw.exists {
			return false
		}
		gw.exists, gw.retained, gw.gone = false, retained, w.now
		return true
	})
}

// processEvents are faults of the process and its environment.
func processEvents() []modelEvent {
	return []modelEvent{
		{"the process restarts", func(w *modelWorld) bool { w.restart(0); return true }},
	}
}

// settingEvents are changes of the settings.
func settingEvents(names ...string) []modelEvent {
	mode := func(mode v1alpha1.DNSMode) modelEvent {
		return modelEvent{"mode " + string(mode), func(w *modelWorld) bool {
			in := &w.installs[0]
			if in.mode == mode {
				return false
			}
			in.mode = mode
			w.requeue(0)
			return true
		}}
	}
	all := []modelEvent{
		mode(v1alpha1.DNSObserve), mode(v1alpha1.DNSOff), mode(v1alpha1.DNSManage),
		{"the settings of GatewayClass two change", func(w *modelWorld) bool {
			in := &w.installs[0]
			in.disagrees = !in.disagrees
			w.requeue(0)
			return in.second
		}},
	}
	for _, name := range names {
		all = append(all, modelEvent{name + " is excluded or not", func(w *modelWorld) bool {
			in := &w.installs[0]
			if i := slices.Index(in.exclude, name); i >= 0 {
				in.exclude = slices.Delete(slices.Clone(in.exclude), i, i+1)
			} else {
				in.exclude = append(slices.Clone(in.exclude), name)
			}
			w.requeue(0)
			return true
		}})
	}
	return all
}

// credentialEvents are changes of the key and of the API token.
func credentialEvents() []modelEvent {
	return []modelEvent{
		{"the key is lost", func(w *modelWorld) bool { w.installs[0].key++; w.requeue(0); return w.installs[0].key < 2 }},
		{"the key cannot be read, or can again", func(w *modelWorld) bool {
			w.installs[0].noKey = !w.installs[0].noKey
			w.requeue(0)
			return true
		}},
		{"the token is revoked", func(w *modelWorld) bool {
			was := w.installs[0].revoked
			w.installs[0].revoked = true
			return !was
		}},
		{"the token is replaced", func(w *modelWorld) bool {
			in := &w.installs[0]
			was := in.revoked
			in.revoked, in.token = false, in.token+1
			w.requeue(0)
			return was
		}},
		{"the token's Secret is gone or back", func(w *modelWorld) bool {
			w.installs[0].noToken = !w.installs[0].noToken
			w.requeue(0)
			return true
		}},
	}
}

// modelElsewhere is where external records lead.
const modelElsewhere = "elsewhere.example.net"

// externalCreation returns an event in which another client creates a record.
func externalCreation(r provider.Record) modelEvent {
	return modelEvent{"another client creates " + r.Name + " " + r.Type + " " + r.Content, func(w *modelWorld) bool {
		if len(w.zone.named(r.Name)) > 1 {
			return false
		}
		for _, other := range w.zone.named(r.Name) {
			if other.Type == r.Type {
				return false
			}
		}
		w.zone.clone()
		if _, err := w.zone.create(r, w.now); err != nil {
			return false
		}
		slices.SortFunc(w.zone.records, compareRecords)
		return true
	}}
}

// clone makes the zone independent of earlier values.
func (z *modelZone) clone() {
	z.records, z.notices = slices.Clone(z.records), slices.Clone(z.notices)
}

// externalEdit returns an event in which another client changes the record of a name.
func externalEdit(name, what string, change func(w *modelWorld, r *provider.Record) bool) modelEvent {
	return modelEvent{"another client " + what + " " + name, func(w *modelWorld) bool {
		r := w.zone.address(name)
		if r == nil {
			return false
		}
		edited := *r
		if !change(w, &edited) || edited == *r {
			return false
		}
		w.zone.clone()
		return w.zone.replace(w.zone.find(edited.ID), edited, w.now) == nil
	}}
}

// externalEvents are external changes of a name's records.
func externalEvents(name, other string) []modelEvent {
	return []modelEvent{
		externalCreation(provider.Record{Name: name, Type: "A", Content: "192.0.2.1", Proxied: true, TTL: 1}),
		externalCreation(provider.Record{Name: name, Type: "TXT", Content: `"heritage=external-dns"`, TTL: 1}),
		externalCreation(provider.Record{Name: name, Type: "CNAME", Content: modelElsewhere, Proxied: true, TTL: 1}),
		externalCreation(provider.Record{Name: name, Type: "CNAME", Content: "tunnel-0-0-0.cfargotunnel.com", Proxied: true, TTL: 1}),
		externalEdit(name, "redirects", func(_ *modelWorld, r *provider.Record) bool { r.Content = modelElsewhere; return r.Type == "CNAME" }),
		externalEdit(name, "removes the proxy of", func(_ *modelWorld, r *provider.Record) bool { r.Proxied = false; return true }),
		externalEdit(name, "copies the comment of "+other+" to", func(w *modelWorld, r *provider.Record) bool {
			if o := w.zone.address(other); o != nil {
				r.Comment = o.Comment
			}
			return true
		}),
		externalEdit(name, "copies comment and target of "+other+" to", func(w *modelWorld, r *provider.Record) bool {
			o := w.zone.address(other)
			if o == nil || o.Type != "CNAME" || r.Type != "CNAME" {
				return false
			}
			r.Comment, r.Content = o.Comment, o.Content
			return true
		}),
		{"another client deletes " + name, func(w *modelWorld) bool {
			r := w.zone.address(name)
			if r == nil {
				return false
			}
			w.zone.clone()
			return w.zone.remove(r.ID, w.now) == nil
		}},
	}
}

// zoneEvents are changes of the zone itself.
func zoneEvents() []modelEvent {
	return []modelEvent{
		{"the zone's status changes", func(w *modelWorld) bool {
			w.zone.status = map[string]string{"active": "moved", "moved": "active"}[w.zone.status]
			return true
		}},
		{"the zone is in another account or back", func(w *modelWorld) bool {
			w.zone.account = map[string]string{modelAccount: "other", "other": modelAccount}[w.zone.account]
			return true
		}},
		externalCreation(provider.Record{Name: "a.example.com", Type: "NS", Content: "ns.example.net", TTL: 1}),
		{"the quota is exhausted or raised", func(w *modelWorld) bool {
			if w.zone.quota == 0 {
				w.zone.quota = max(1, len(w.zone.records))
			} else {
				w.zone.quota = 0
			}
			return true
		}},
	}
}

// adopts returns an event in which an administrator asks to adopt the name's record.
func adopts(i, g int, name string) modelEvent {
	return modelEvent{fmt.Sprintf("an administrator asks g%d to adopt %s", g, name), func(w *modelWorld) bool {
		in, r := &w.installs[i], w.zone.address(name)
		if r == nil || len(in.requests) > 0 || in.gateways[g].namespace == "" || !in.gateways[g].tunnel {
			return false
		}
		in.requests = append(slices.Clone(in.requests), Adoption{
			Gateway: gatewayName(g, &in.gateways[g]),
			RecordAdoption: v1alpha1.RecordAdoption{
				Zone: modelZoneName, Name: name, ID: string(r.ID), Type: r.Type, Content: r.Content,
				Requested: metav1.Time{Time: modelEpoch.Add(w.now)},
			},
		})
		w.requeue(i)
		return true
	}}
}
