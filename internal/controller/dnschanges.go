package controller

import (
	"maps"
	"slices"

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
	if !sameGateway(before, after) {
		return listed
	}
	all := map[string]dns.Hostname{}
	for _, h := range before.Hostnames {
		all[h.Name] = h
	}
	var changed []string
	for _, h := range after.Hostnames {
		if old, ok := all[h.Name]; !ok || !sameHostname(old, h) {
			changed = append(changed, h.Name)
		}
		delete(all, h.Name)
	}
	changed = slices.AppendSeq(changed, maps.Keys(all))
	return slices.DeleteFunc(listed, func(key zoneKey) bool {
		return !slices.ContainsFunc(changed, func(hostname string) bool { return dns.InZone(hostname, key.name) })
	})
}

// sameGateway compares everything but the hostnames.
func sameGateway(a, b dns.Gateway) bool {
	return a.NamespacedName == b.NamespacedName && a.Created.Equal(b.Created) && a.Class == b.Class && a.State == b.State &&
		a.Tunnel == b.Tunnel && a.Connected == b.Connected
}

func sameHostname(a, b dns.Hostname) bool {
	return a.Namespace == b.Namespace && a.Created.Equal(b.Created) && a.Served == b.Served && a.Permitted == b.Permitted
}
