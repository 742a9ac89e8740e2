package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// newAccess returns the decision for each hostname with access on one of the levels. On
// each level, the entry with the most specific hostname decides. If the GatewayClass
// requires access, its block applies as a whole. Otherwise, the Gateway decides.
func newAccess(s *settings.Settings) routing.Access {
	if s == nil {
		return nil
	}
	class, gateway := settings.Access(s.Listeners.Class), settings.Access(s.Listeners.Gateway)
	access := make(routing.Access, len(class)+len(gateway))
	for _, level := range []map[string]*v1alpha1.Access{class, gateway} {
		for hostname := range level {
			access[hostname] = newRequirement(cmp.Or(required(class, hostname), required(gateway, hostname)))
		}
	}
	return access
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

// required returns the access that a level requires for the hostname, or nil.
func required(level map[string]*v1alpha1.Access, hostname string) *v1alpha1.Access {
	decisive, ok := routing.MostSpecific(level, hostname)
	if !ok || !level[decisive].Required {
		return nil
	}
	return level[decisive]
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
