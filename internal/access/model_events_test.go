package access

import (
	"fmt"
	"slices"
	"time"

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
func onGateway(n int, name string, change func(w *modelWorld, g *modelGateway) bool) modelEvent {
	return onGatewayOf(0, n, name, change)
}

func onGatewayOf(i, n int, name string, change func(w *modelWorld, g *modelGateway) bool) modelEvent {
	return modelEvent{name: fmt.Sprintf("g%d of installation %d: %s", n, i, name), apply: func(w *modelWorld) bool {
		if i >= w.count || !change(w, &w.installs[i].gateways[n]) {
			return false
		}
		w.installs[i].gateways[n].due = true
		return true
	}}
}

// everywhere makes the controller decide about everything again.
func (w *modelWorld) everywhere(i int) {
	in := &w.installs[i]
	for n := range in.gateways {
		in.gateways[n].due = in.gateways[n].present()
	}
	w.requeue(i)
}

// claims adds a listener with the hostname.
func claims(name int, namespace string, routed bool) func(w *modelWorld, g *modelGateway) bool {
	return func(_ *modelWorld, g *modelGateway) bool {
		was := g.hosts[name].claimed
		g.hosts[name] = modelHost{claimed: true, routed: routed, namespace: namespace}
		return g.exists && !was
	}
}

// release removes a hostname from the table.
func release(name int) func(w *modelWorld, g *modelGateway) bool {
	return func(_ *modelWorld, g *modelGateway) bool {
		was := g.hosts[name].claimed
		g.hosts[name] = modelHost{}
		return was
	}
}

// policy changes the AccessPolicy for a listener.
func policy(name int, spec modelSpec) func(w *modelWorld, g *modelGateway) bool {
	return func(_ *modelWorld, g *modelGateway) bool {
		was := g.policies[name]
		g.policies[name] = spec
		return was != spec
	}
}

// policyEvents are changes of the AccessPolicies of a Gateway.
func policyEvents(n, name int, specs ...modelSpec) []modelEvent {
	all := make([]modelEvent, 0, len(specs))
	for _, spec := range specs {
		all = append(all, onGateway(n, fmt.Sprintf("the AccessPolicy for %s demands %s", modelNames[name], modelSpecNames[spec]), policy(name, spec)))
	}
	return all
}

// entryEvents are changes of the entries of g0.
func entryEvents(name int, specs ...modelSpec) []modelEvent {
	all := make([]modelEvent, 0, len(specs))
	for _, spec := range specs {
		all = append(all, onGateway(0, fmt.Sprintf("the Gateway's entry for %s demands %s", modelNames[name], modelSpecNames[spec]), func(_ *modelWorld, g *modelGateway) bool {
			was := g.entries[name]
			g.entries[name] = spec
			return was != spec
		}))
	}
	return all
}

// classEvents are changes of the class's entries.
func classEvents(name int, specs ...modelSpec) []modelEvent {
	all := make([]modelEvent, 0, len(specs))
	for _, spec := range specs {
		all = append(all, onSettings(fmt.Sprintf("the class's entry for %s demands %s", modelNames[name], modelSpecNames[spec]), func(in *modelInstall) bool {
			was := in.entries[0][name]
			in.entries[0][name] = spec
			return was != spec
		}))
	}
	return all
}

// onSettings returns an event that changes the settings of the classes.
func onSettings(name string, change func(in *modelInstall) bool) modelEvent {
	return modelEvent{name, func(w *modelWorld) bool {
		if !change(&w.installs[0]) {
			return false
		}
		w.everywhere(0)
		return true
	}}
}

// hostnameEvents are changes of a Gateway's table.
func hostnameEvents(n int, names ...int) []modelEvent {
	var all []modelEvent
	for _, name := range names {
		all = append(all,
			onGateway(n, "claims "+modelNames[name], claims(name, modelNamespaces[n], false)),
			onGateway(n, "no longer claims "+modelNames[name], release(name)),
			onGateway(n, "the permission changes for "+modelNames[name], func(_ *modelWorld, g *modelGateway) bool {
				g.hosts[name].denied = !g.hosts[name].denied
				return g.hosts[name].claimed
			}))
	}
	return all
}

// stateEvents are changes of a Gateway's state.
func stateEvents(n int) []modelEvent {
	flag := func(name string, of func(*modelGateway) *bool) modelEvent {
		return onGateway(n, name, func(_ *modelWorld, g *modelGateway) bool {
			*of(g) = !*of(g)
			return g.exists
		})
	}
	return []modelEvent{
		flag("paused or not", func(g *modelGateway) *bool { return &g.paused }),
		flag("rejected or not", func(g *modelGateway) *bool { return &g.rejected }),
		flag("AccessPolicies cannot be read, or can again", func(g *modelGateway) *bool { return &g.unread }),
		deleted(n, false), deleted(n, true),
		onGateway(n, "created again", func(w *modelWorld, g *modelGateway) bool {
			if g.exists {
				return false
			}
			g.exists, g.created, g.due = true, w.now, true
			g.tunnel, g.retained = true, false
			return true
		}),
	}
}

// deleted returns an event that deletes the Gateway.
func deleted(n int, retained bool) modelEvent {
	name := "deleted"
	if retained {
		name = "deleted, its Tunnel is retained"
	}
	return onGateway(n, name, func(w *modelWorld, g *modelGateway) bool {
		if !g.exists {
			return false
		}
		g.exists, g.retained, g.gone = false, retained, w.now
		g.exposure, g.read = Exposure{}, false
		if !retained { // the state is Retiring when the tunnel was deleted
			g.configuration, g.published = modelTable{}, modelTable{}
		}
		return true
	})
}

// processEvents are faults of the process.
func processEvents() []modelEvent {
	return []modelEvent{
		{"the process restarts", func(w *modelWorld) bool { w.restart(0); return true }},
	}
}

// settingEvents are changes of the settings.
func settingEvents() []modelEvent {
	return []modelEvent{
		onSettings("applications: Disabled, or Managed again", func(in *modelInstall) bool {
			in.modes[0] = map[v1alpha1.ApplicationsMode]v1alpha1.ApplicationsMode{
				v1alpha1.ApplicationsManaged: v1alpha1.ApplicationsDisabled, v1alpha1.ApplicationsDisabled: v1alpha1.ApplicationsManaged,
			}[in.modes[0]]
			in.modes[1] = in.modes[0]
			return true
		}),
		onSettings("another policy has the name employees", func(in *modelInstall) bool { in.renamed = !in.renamed; return true }),
		onSettings("the catalogue has no policy employees, or has it again", func(in *modelInstall) bool { in.missing = !in.missing; return true }),
		onSettings("maxApplications is 0, or not", func(in *modelInstall) bool { in.limit = 100 - in.limit; return true }),
		onSettings("openingDelay is a second, or not", func(in *modelInstall) bool { in.short = !in.short; return true }),
		onSettings("the settings of the second class change", func(in *modelInstall) bool { in.disagrees = !in.disagrees; return in.second }),
	}
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

// externalCreation returns an event in which another client creates an application.
func externalCreation(domain string) modelEvent {
	return modelEvent{"another client creates an application for " + domain, func(w *modelWorld) bool {
		if w.cloud.exact(domain) >= 0 || len(w.cloud.applications) > 4 {
			return false
		}
		w.cloud.add(provider.Application{Type: "self_hosted", Name: "external", Domains: []string{domain}, Policies: []provider.AccessPolicyID{"policy-c"}, SessionDuration: 24 * time.Hour})
		return true
	}}
}

// externalEdit returns an event in which another client changes the application for a name.
func externalEdit(name int, what string, change func(w *modelWorld, a *provider.Application) bool) modelEvent {
	return modelEvent{"another client " + what + " " + modelNames[name], func(w *modelWorld) bool {
		i := w.cloud.exact(modelNames[name])
		if i < 0 {
			return false
		}
		possible := false
		w.cloud.edit(i, func(a *provider.Application) { possible = change(w, a) })
		return possible
	}}
}

// externalEvents are changes by another client of the application for a name.
func externalEvents(name int) []modelEvent {
	domain := modelNames[name]
	return []modelEvent{
		externalCreation(domain),
		externalEdit(name, "adds a policy to", func(_ *modelWorld, a *provider.Application) bool {
			was := slices.Contains(a.Policies, "policy-c")
			a.Policies = append(a.Policies, "policy-c")
			return !was
		}),
		externalEdit(name, "makes the session longer of", func(_ *modelWorld, a *provider.Application) bool {
			was := a.SessionDuration
			a.SessionDuration = 48 * time.Hour
			return was != a.SessionDuration
		}),
		externalEdit(name, "removes the tags of", func(_ *modelWorld, a *provider.Application) bool {
			was := len(a.Tags)
			a.Tags = nil
			return was > 0
		}),
		externalEdit(name, "adds a domain to", func(_ *modelWorld, a *provider.Application) bool {
			was := len(a.Domains)
			a.Domains = append(a.Domains, "other.example.net")
			return was == 1
		}),
		{"another client deletes " + domain, func(w *modelWorld) bool {
			i := w.cloud.exact(domain)
			if i < 0 {
				return false
			}
			w.cloud.remove(w.cloud.applications[i].ID)
			return true
		}},
		{"another client deletes " + domain + " and creates it again", func(w *modelWorld) bool {
			i := w.cloud.exact(domain)
			if i < 0 {
				return false
			}
			a := w.cloud.applications[i].Application
			w.cloud.remove(a.ID)
			w.cloud.add(a)
			return true
		}},
	}
}

// cloudEvents are changes of the account.
func cloudEvents() []modelEvent {
	return []modelEvent{
		{"the policy employees is deleted at Cloudflare, or is back", func(w *modelWorld) bool {
			w.cloud.policies[modelEmployees] = !w.cloud.policies[modelEmployees]
			return true
		}},
		{"the account can have no more applications, or can again", func(w *modelWorld) bool {
			if w.cloud.quota == 0 {
				w.cloud.quota = max(1, len(w.cloud.applications))
			} else {
				w.cloud.quota = 0
			}
			return true
		}},
	}
}

// adopts returns an event in which an administrator asks to adopt the name's application.
func adopts(i, n, name int) modelEvent {
	return modelEvent{fmt.Sprintf("an administrator asks g%d to adopt %s", n, modelNames[name]), func(w *modelWorld) bool {
		in, a := &w.installs[i], w.cloud.exact(modelNames[name])
		if a < 0 || len(in.requests) > 0 || !in.gateways[n].tunnel {
			return false
		}
		in.requests = append(slices.Clone(in.requests), Adoption{
			Gateway: gatewayName(n),
			ApplicationAdoption: v1alpha1.ApplicationAdoption{
				Hostname: modelNames[name], ID: string(w.cloud.applications[a].ID), Requested: metav1.Time{Time: modelEpoch.Add(w.now)},
			},
		})
		w.requeue(i)
		return true
	}}
}
