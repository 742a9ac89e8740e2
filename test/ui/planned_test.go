package ui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// planned is what `plan -o json` prints, as far as the page shows it.
type planned struct {
	Gateways []plannedGateway
	Statuses []plannedStatus
}

type plannedGateway struct {
	Namespace, Name, DataPlane string
	DataPlaneChange            *struct{}
	Config                     *struct{} // nil if the Gateway is not accepted
	Listeners                  []plannedListener
	Entries                    []plannedEntry
	Shadowed                   []struct {
		plannedEntry
		Before []struct {
			plannedEntry
			Reason string
		}
	}
	Access []plannedAccess
	Limits []struct {
		Name, Tenant, Hostname string
		Used, Limit            int
	}
	Tenants []struct {
		Name                            string
		Rules, Instructions, Listeners  int
		RefusedRoutes, RefusedListeners int
	}
}

type plannedOwner struct{ Kind, Namespace, Name string }

func (o plannedOwner) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

type plannedListener struct {
	Owner                            plannedOwner
	Name, Hostname, Protocol, Reason string
	Port, AttachedRoutes             int
	Accepted                         bool
}

func (l plannedListener) state() string { return cmp.Or(l.Reason, "served") }

type plannedEntry struct {
	Hostname, Match, Scheme, Action, Failure string
	Route                                    plannedOwner
	Rule, MatchIndex                         int
	Backends                                 []struct {
		Backend, TLS string
		Weight       int
		Changes      []string
	}
	OriginRequest json.RawMessage
}

// source is how pages name the entry.
func (e plannedEntry) source() string {
	return fmt.Sprintf("%s rule %d match %d", e.Route, e.Rule, e.MatchIndex)
}

type plannedAccess struct {
	Hostname, State, Reason, Message, TeamName string
	Demand                                     *struct{ Object string }
}

// text is what the table shows.
func (a plannedAccess) text() string {
	switch {
	case a.State == "protected" && (a.Reason == "" || a.Reason == "Protected"):
		return "protected: " + a.TeamName
	case a.State == "closed" && a.Reason == "":
		return "closed: no application covers it"
	case a.State == "":
		return "not known"
	case a.Reason == "":
		return a.State
	default:
		return a.State + ": " + a.Reason
	}
}

type plannedStatus struct {
	Kind, Namespace, Name string
	Status                struct {
		Addresses          []struct{ Value string }
		Conditions         []plannedCondition
		Parents, Ancestors []struct{ Conditions []plannedCondition }
		Listeners          []struct {
			Name       string
			Conditions []plannedCondition
		}
	}
}

type plannedCondition struct{ Type, Status, Reason, Message string }

// conditions returns all conditions without those for listeners.
func (s *plannedStatus) conditions() []plannedCondition {
	all := slices.Clone(s.Status.Conditions)
	for _, parent := range slices.Concat(s.Status.Parents, s.Status.Ancestors) {
		all = append(all, parent.Conditions...)
	}
	return all
}

// conditionsFor returns the listener's conditions, or all conditions without a listener.
func (s *plannedStatus) conditionsFor(listener string, isListener bool) []plannedCondition {
	all := s.conditions()
	for _, l := range s.Status.Listeners {
		if !isListener || l.Name == listener {
			all = append(all, l.Conditions...)
		}
	}
	return all
}

func (s *plannedStatus) String() string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return plannedOwner{s.Kind, s.Namespace, s.Name}.String()
}

// readPlan runs `plan -o json`.
func readPlan(t *testing.T, environment []string, arguments ...string) (result planned) {
	t.Helper()
	out := output(t, environment, "tunnel-gateway", append([]string{"plan", "-o", "json"}, arguments...)...)
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func (g *plannedGateway) id() string { return g.Namespace + "/" + g.Name }

// hostnames are all hostnames that the Gateway's listeners or entries have.
func (g *plannedGateway) hostnames() []string {
	all := map[string]bool{}
	for _, l := range g.Listeners {
		all[l.Hostname] = true
	}
	for _, e := range g.Entries {
		all[e.Hostname] = true
	}
	for _, e := range g.Shadowed {
		all[e.Hostname] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// listenersOf returns the listeners with the hostname, or those with the narrowest wildcard that covers it.
func (g *plannedGateway) listenersOf(hostname string) []plannedListener {
	for candidate := range wider(hostname) {
		var found []plannedListener
		for _, l := range g.Listeners {
			if l.Hostname == candidate {
				found = append(found, l)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// accessOf returns what the hostname requires, or "" if no listener receives its requests.
func (g *plannedGateway) accessOf(hostname string) string {
	received := slices.ContainsFunc(g.Listeners, func(l plannedListener) bool {
		return l.Accepted && slices.Contains(slices.Collect(wider(hostname)), l.Hostname)
	})
	if !received || g.Config == nil {
		return ""
	}
	for candidate := range wider(hostname) {
		for _, a := range g.Access {
			if a.Hostname == candidate {
				return a.text()
			}
		}
	}
	return "open"
}

// wider returns the hostname and the wildcards that cover it, the narrowest first.
func wider(hostname string) func(func(string) bool) {
	return func(yield func(string) bool) {
		if !yield(hostname) || hostname == "" {
			return
		}
		for rest := strings.TrimPrefix(hostname, "*."); ; {
			_, after, found := strings.Cut(rest, ".")
			if !found {
				break
			}
			if rest = after; !yield("*." + rest) {
				return
			}
		}
		yield("")
	}
}
