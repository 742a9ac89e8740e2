package gateway

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// newAccess returns what the hostnames require: for each hostname of an entry, as the entry
// decides, and for each hostname whose state is not the one of a wider hostname. states are
// those of the hostnames of the table.
func (t *accessTable) newAccess(states map[string]access.State) routing.Access {
	result := make(routing.Access, len(t.levels.class)+len(t.levels.gateway)+len(states))
	for _, level := range []map[string]*v1alpha1.Access{t.levels.class, t.levels.gateway} {
		for hostname := range level {
			result[hostname] = t.requirement(hostname, t.levels.decide(hostname, t.claimant(hostname)), states)
		}
	}
	if len(states) == 0 {
		return result // most Gateways: each hostname requires what its entries require
	}
	for hostname, decided := range t.decided {
		if _, found := result[hostname]; !found {
			result[hostname] = t.requirement(hostname, decided, states)
		}
	}
	// A hostname without an entry, a state or an application of its own needs no place in the
	// result if it requires the same as the hostnames around it.
	maps.DeleteFunc(result, func(hostname string, r *routing.Requirement) bool {
		return t.isUnnamed(hostname, states) && r.Equal(widerRequirement(result, hostname))
	})
	return result
}

// isUnnamed reports whether the hostname has neither an entry nor a state of its own.
func (t *accessTable) isUnnamed(hostname string, states map[string]access.State) bool {
	if t.levels.class[hostname] != nil || t.levels.gateway[hostname] != nil {
		return false
	}
	_, hasState := states[hostname]
	return !hasState || t.application(hostname, t.decided[hostname]) != hostname
}

// widerRequirement returns what the most specific wider hostname requires.
func widerRequirement(a routing.Access, hostname string) *routing.Requirement {
	for wide := range routing.WiderHostnames(hostname) {
		if r, ok := a[wide]; ok {
			return r
		}
	}
	return nil
}

// requirement returns what a hostname requires. A hostname that needs an application and has
// no state is closed: it is the hostname of an entry that no listener covers, and each
// hostname below it has a state.
func (t *accessTable) requirement(hostname string, decided accessDecision, states map[string]access.State) *routing.Requirement {
	if state, ok := states[hostname]; ok {
		r := state.Requirement()
		if r != nil && t.DataPlane != v1alpha1.DataPlaneEnvoy {
			r.OneLevel = false // ingress rules do not tell how deep a host is below a wildcard
		}
		return r
	}
	if decided.isManaged() {
		return &routing.Requirement{Closed: true}
	}
	return newRequirement(decided.block)
}

// newRequirement returns what the block requires of requests, or nil.
func newRequirement(a *v1alpha1.Access) *routing.Requirement {
	if a == nil {
		return nil
	}
	r := &routing.Requirement{TeamName: ptr.Deref(a.TeamName, "")}
	for _, tag := range a.AUDTags {
		r.AUDTags = append(r.AUDTags, string(tag))
	}
	return r
}

// Warning is a problem with an accepted Gateway that no condition reports as False. The
// message of the Accepted condition contains it.
type Warning struct {
	// Reason is the event reason.
	Reason  conditions.EventReason
	Message string
}

// accessWarnings returns the warnings about the table and the entries.
func accessWarnings(table *routing.Table, s *settings.Settings, gaps []routing.AccessGap) []Warning {
	var warnings []Warning
	if len(gaps) > 0 {
		warnings = append(warnings, Warning{conditions.EventAccessBypass, describeGaps(gaps)})
	}
	class, own := unusedHostnames(table, s.Listeners.Class), unusedHostnames(table, s.Listeners.Gateway)
	if unused := append(label(own, "Gateway"), label(class, "GatewayClass")...); len(unused) > 0 {
		warnings = append(warnings, Warning{conditions.EventUnusedListenerConfiguration, fmt.Sprintf(
			"Entries of listenerConfigurations have no effect, because no listener of the Gateway matches their hostnames: %s. Correct the hostnames, add listeners, or remove the entries.",
			listAtMost(unused))})
	}
	return warnings
}

// label adds the level of the entries to their hostnames.
func label(hostnames []string, level string) []string {
	labeled := make([]string, len(hostnames))
	for i, hostname := range hostnames {
		labeled[i] = fmt.Sprintf("%s (of the %s)", hostname, level)
	}
	return labeled
}

func describeGaps(gaps []routing.AccessGap) string {
	parts := make([]string, len(gaps))
	for i, gap := range gaps {
		parts[i] = fmt.Sprintf("%s (through the rules for %s)", quoteEvery(gap.Hostname), quoteEvery(gap.Through))
	}
	form := "in another letter case"
	if slices.ContainsFunc(gaps, func(gap routing.AccessGap) bool { return gap.Through == "" }) {
		form += " or with a dot at its end"
	}
	return fmt.Sprintf("Requests with a host %s can bypass Cloudflare Access, because connectors do not recognize the protected hostname: %s. "+
		"Require Access for the wider hostname too, or ask the platform team to set dataPlane: Envoy.", form, listAtMost(parts))
}

func quoteEvery(hostname string) string {
	if hostname == "" {
		return "every hostname"
	}
	return hostname
}

// listAtMost lists at most ten parts.
func listAtMost(parts []string) string {
	return describeItems(message.List{MaxItems: 10, MaxSize: message.MaxSize / 2}, parts)
}

// unusedHostnames returns, sorted, the entry hostnames that neither cover a hostname in
// the table nor are covered by one.
func unusedHostnames(t *routing.Table, entries []v1alpha1.ListenerConfiguration) []string {
	if len(entries) == 0 {
		return nil
	}
	unused, groups := map[string]bool{}, map[string]bool{}
	for i := range entries {
		unused[entries[i].Hostname] = true
	}
	delete(unused, "") // covers every hostname
	for i := range t.Groups {
		hostname := t.Groups[i].Hostname
		groups[hostname] = true
		delete(unused, hostname)
		for wide := range routing.WiderHostnames(hostname) {
			delete(unused, wide)
		}
	}
	maps.DeleteFunc(unused, func(hostname string, _ bool) bool { return routing.HasWider(groups, hostname) })
	return slices.Sorted(maps.Keys(unused))
}
