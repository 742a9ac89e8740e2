package controller

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
)

// keepServed returns the hostnames as the data plane served them before: the decided
// configuration is not in effect yet.
func keepServed(decided, before []dns.Hostname) []dns.Hostname {
	served := map[string]bool{}
	for _, h := range before {
		served[h.Name] = h.Served
	}
	kept := slices.Clone(decided)
	for i := range kept {
		kept[i].Served = served[kept[i].Name]
	}
	return kept
}

// affectedZones returns the zones for which a change of a Gateway makes a difference.
func affectedZones(listed []zoneKey, before, after dns.Gateway) []zoneKey {
	if len(listed) == 0 || !sameGateway(before, after) {
		return listed
	}
	changed := changedHostnames(before.Hostnames, after.Hostnames)
	return slices.DeleteFunc(listed, func(key zoneKey) bool {
		return !slices.ContainsFunc(changed, func(hostname string) bool { return dns.InZone(hostname, key.name) })
	})
}

// changedHostnames returns the names of the hostnames that differ. Both lists are sorted by name.
func changedHostnames(before, after []dns.Hostname) (changed []string) {
	for len(before) > 0 && len(after) > 0 {
		old, now := &before[0], &after[0]
		switch order := strings.Compare(old.Name, now.Name); {
		case order < 0:
			changed, before = append(changed, old.Name), before[1:]
		case order > 0:
			changed, after = append(changed, now.Name), after[1:]
		default:
			if !sameHostname(*old, *now) {
				changed = append(changed, now.Name)
			}
			before, after = before[1:], after[1:]
		}
	}
	for _, h := range slices.Concat(before, after) {
		changed = append(changed, h.Name)
	}
	return changed
}

// sameGateway compares everything but the hostnames.
func sameGateway(a, b dns.Gateway) bool {
	return a.NamespacedName == b.NamespacedName && a.Created.Equal(b.Created) && a.Class == b.Class && a.State == b.State &&
		a.Tunnel == b.Tunnel && a.Connected == b.Connected
}

func sameHostname(a, b dns.Hostname) bool {
	return a.Namespace == b.Namespace && a.Created.Equal(b.Created) && a.Served == b.Served && a.Permitted == b.Permitted
}
