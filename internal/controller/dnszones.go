package controller

import (
	"context"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// zoneKey identifies a DNS zone by its account ID and its name.
type zoneKey struct{ account, name string }

func (k zoneKey) logValues() []any { return []any{"zone", k.name, "account", k.account} }

// zoneClass is a GatewayClass that lists zones.
type zoneClass = classWith[settings.DNS]

// zone is what the process remembers about a zone. It has no classes if no class lists it.
type zone = registered[settings.DNS, dns.Report, dns.Memory, provider.DNS]

// zones contains the zones that the GatewayClasses list.
type zones struct {
	registry[zoneKey, settings.DNS, dns.Report, dns.Memory, provider.DNS]
}

func newZones(classes *classSettings[settings.DNS]) *zones {
	z := &zones{}
	z.classes, z.byKey = classes, map[zoneKey]*zone{}
	return z
}

// refresh reads the GatewayClasses, and returns the zones whose settings have changed.
func (z *zones) refresh(ctx context.Context) ([]zoneKey, error) {
	return z.refreshWith(ctx, classesByZone)
}

// classesByZone returns the classes, which are in order, by the zones that they list.
func classesByZone(classes []zoneClass) map[zoneKey][]zoneClass {
	listed := map[zoneKey][]zoneClass{}
	for _, class := range classes {
		if !class.settings.ReadsZones() {
			continue
		}
		for _, zone := range class.settings.Zones {
			if key := (zoneKey{class.sources.account.Account, zone.Name}); key.account != "" {
				listed[key] = append(listed[key], class)
			}
		}
	}
	return listed
}

// listed returns the zones of the account, or all zones without an account.
func (z *zones) listed(account string) []zoneKey {
	return z.keys(func(key zoneKey, _ *zone) bool { return account == "" || key.account == account })
}

// managed returns the zones whose records the controller manages: those of the account, or
// all without an account.
func (z *zones) managed(account string) []zoneKey {
	return z.keys(func(key zoneKey, zone *zone) bool {
		return (account == "" || key.account == account) && zoneMode(zone) == v1alpha1.DNSManage
	})
}

// zoneMode returns the mode in the settings that count: those of the oldest GatewayClass.
func zoneMode(z *zone) v1alpha1.DNSMode { return z.classes[0].settings.Mode }

// modeOf returns the mode of a zone; Off for a zone that no class lists.
func (z *zones) modeOf(key zoneKey) v1alpha1.DNSMode {
	z.mu.Lock()
	defer z.mu.Unlock()
	if zone := z.byKey[key]; zone != nil && len(zone.classes) > 0 {
		return zoneMode(zone)
	}
	return v1alpha1.DNSOff
}

// reports returns the reports on the account's zones, by zone name.
func (z *zones) reports(account string) map[string]dns.Report {
	z.mu.Lock()
	defer z.mu.Unlock()
	reports := map[string]dns.Report{}
	for key, zone := range z.byKey {
		if key.account == account && len(zone.classes) > 0 {
			reports[key.name] = zone.report
		}
	}
	return reports
}

// forget forgets a zone that no class lists. It reports whether another account has a
// listed zone with this name, whose metrics have the same labels.
func (z *zones) forget(key zoneKey) (before dns.Report, shared bool) {
	before, forgotten := z.registry.forget(key)
	if !forgotten {
		return before, true
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	for other := range z.byKey {
		shared = shared || other.name == key.name
	}
	return before, shared
}
