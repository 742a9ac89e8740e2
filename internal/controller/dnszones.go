package controller

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// zoneKey identifies a DNS zone by its account ID and its name.
type zoneKey struct{ account, name string }

// zones contains the zones that the GatewayClasses list, and what the process remembers
// about them.
type zones struct {
	reader         client.Reader
	controllerName gatewayv1.GatewayController
	namespace      string
	account        credentials.Default

	// refreshing ensures that an older list of GatewayClasses does not replace a newer one.
	refreshing sync.Mutex

	mu sync.Mutex
	// classes are the GatewayClasses that list zones, by their names.
	classes map[string]zoneClass
	byKey   map[zoneKey]*zone
}

// zoneClass is a GatewayClass that lists zones.
type zoneClass struct {
	class  dns.Class
	source credentials.Source
}

// zone is what the process remembers about a zone. [zones.mu] guards classes and report.
type zone struct {
	// classes are the GatewayClasses that list the zone. The oldest comes first.
	classes []zoneClass
	report  dns.Report
	// Only the worker that processes the zone uses these fields.
	memory dns.Memory
	access *zoneAccess
}

// refresh reads the GatewayClasses, and returns the zones whose settings have changed. A
// GatewayClass that is not valid keeps the settings that it had, as far as this process
// knows: its Gateways are not accepted, so nothing is created or removed for them.
func (z *zones) refresh(ctx context.Context) ([]zoneKey, error) {
	z.refreshing.Lock()
	defer z.refreshing.Unlock()
	var list gatewayv1.GatewayClassList
	if err := z.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the GatewayClasses: %w", err)
	}
	z.mu.Lock()
	last := z.classes
	z.mu.Unlock()
	classes := map[string]zoneClass{}
	for i := range list.Items {
		if list.Items[i].Spec.ControllerName != z.controllerName {
			continue
		}
		class, valid, err := z.readClass(ctx, &list.Items[i])
		if err != nil {
			return nil, err
		}
		if !valid {
			class = last[list.Items[i].Name]
		}
		if class.class.Settings.ReadsZones() {
			classes[list.Items[i].Name] = class
		}
	}
	return z.list(classes), nil
}

// readClass returns the DNS settings of the GatewayClass. It returns false if its settings
// are not valid.
func (z *zones) readClass(ctx context.Context, class *gatewayv1.GatewayClass) (zoneClass, bool, error) {
	configuration, err := state.ClassConfiguration(ctx, z.reader, class)
	if err != nil {
		return zoneClass{}, false, err
	}
	set, valid := settings.ClassDNS(settings.Input{Class: class, ClassConfiguration: configuration, ControllerNamespace: z.namespace})
	if !valid {
		return zoneClass{}, false, nil
	}
	merged := &settings.Settings{}
	if configuration != nil {
		merged.Spec, merged.AccountNamespace = configuration.Spec, configuration.Namespace
	}
	return zoneClass{
		class:  dns.Class{Name: class.Name, Created: class.CreationTimestamp.Time, Settings: set},
		source: z.account.ForSettings(merged),
	}, true, nil
}

// list records the classes, and returns the zones whose settings have changed. The zones
// that no class lists remain until they are forgotten.
func (z *zones) list(classes map[string]zoneClass) (changed []zoneKey) {
	listed := map[zoneKey][]zoneClass{}
	for _, class := range classes {
		for _, zone := range class.class.Settings.Zones {
			if key := (zoneKey{class.source.Account, zone.Name}); key.account != "" {
				listed[key] = append(listed[key], class)
			}
		}
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.classes = classes
	for key, all := range listed {
		slices.SortFunc(all, func(a, b zoneClass) int {
			return cmp.Or(a.class.Created.Compare(b.class.Created), cmp.Compare(a.class.Name, b.class.Name))
		})
		if z.byKey[key] == nil {
			z.byKey[key] = &zone{}
		}
		if !reflect.DeepEqual(z.byKey[key].classes, all) {
			z.byKey[key].classes = all
			changed = append(changed, key)
		}
	}
	for key, zone := range z.byKey {
		if len(listed[key]) == 0 && zone.classes != nil {
			zone.classes = nil
			changed = append(changed, key)
		}
	}
	return changed
}

// of returns the zone and its classes. It returns nil if no class lists the zone.
func (z *zones) of(key zoneKey) (*zone, []zoneClass) {
	z.mu.Lock()
	defer z.mu.Unlock()
	zone := z.byKey[key]
	if zone == nil || len(zone.classes) == 0 {
		return nil, nil
	}
	return zone, zone.classes
}

// listed returns the zones of the account, or all zones without an account.
func (z *zones) listed(account string) []zoneKey {
	return z.keys(func(key zoneKey, _ *zone) bool { return account == "" || key.account == account })
}

// managed returns the zones whose records the controller manages: those of the account, or
// all without an account.
func (z *zones) managed(account string) []zoneKey {
	return z.keys(func(key zoneKey, zone *zone) bool {
		return (account == "" || key.account == account) && zone.mode() == v1alpha1.DNSManage
	})
}

// using returns the zones for which a GatewayClass matches.
func (z *zones) using(matches func(zoneClass) bool) []zoneKey {
	return z.keys(func(_ zoneKey, zone *zone) bool { return slices.ContainsFunc(zone.classes, matches) })
}

// keys returns the listed zones that match.
func (z *zones) keys(matches func(zoneKey, *zone) bool) (found []zoneKey) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for key, zone := range z.byKey {
		if len(zone.classes) > 0 && matches(key, zone) {
			found = append(found, key)
		}
	}
	return found
}

// mode returns the mode in the settings that count: those of the oldest GatewayClass.
func (z *zone) mode() v1alpha1.DNSMode { return z.classes[0].class.Settings.Mode }

// modeOf returns the mode of a zone; Off for a zone that no class lists.
func (z *zones) modeOf(key zoneKey) v1alpha1.DNSMode {
	z.mu.Lock()
	defer z.mu.Unlock()
	if zone := z.byKey[key]; zone != nil && len(zone.classes) > 0 {
		return zone.mode()
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

// report records a zone's report, and returns the one before.
func (z *zones) report(zone *zone, report dns.Report) (before dns.Report) {
	z.mu.Lock()
	defer z.mu.Unlock()
	before, zone.report = zone.report, report
	return before
}

// forget forgets a zone that no class lists. It reports whether another account has a
// listed zone with this name, whose metrics have the same labels.
func (z *zones) forget(key zoneKey) (before dns.Report, shared bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	zone := z.byKey[key]
	if zone == nil || len(zone.classes) > 0 {
		return dns.Report{}, true
	}
	delete(z.byKey, key)
	for other := range z.byKey {
		shared = shared || other.name == key.name
	}
	return zone.report, shared
}
