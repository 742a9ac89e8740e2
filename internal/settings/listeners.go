package settings

import (
	"cmp"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// listenerKey identifies a ListenerConfiguration.
type listenerKey struct{ protocolPort, hostname string }

func listenerKeyOf(c *v1alpha1.ListenerConfiguration) listenerKey {
	return listenerKey{c.ProtocolPort, c.Hostname}
}

// Listeners are the entries of spec.listenerConfigurations by protocol, port and
// hostname.
type Listeners map[listenerKey]*v1alpha1.ListenerConfiguration

// Listeners returns the entries of the merged settings.
func (s *Settings) Listeners() Listeners {
	entries := make(Listeners, len(s.Spec.ListenerConfigurations))
	for i := range s.Spec.ListenerConfigurations {
		entry := &s.Spec.ListenerConfigurations[i]
		entries[listenerKeyOf(entry)] = entry
	}
	return entries
}

// For returns the settings of a listener, or nil when there are none. The entry
// with the hostname of the listener takes precedence over the entry without a
// hostname.
func (l Listeners) For(protocolPort, hostname string) *v1alpha1.ListenerConfiguration {
	general := l[listenerKey{protocolPort, ""}]
	if hostname == "" {
		return general
	}
	return mergeBlocks(l[listenerKey{protocolPort, hostname}], general, mergeListenerConfiguration)
}

// mergeListenerConfigurations merges the entries by key. Within a level, an entry
// with a hostname takes precedence over the entry without. Across levels, the
// entry of first for a port takes precedence over the entry of second for a
// hostname. Otherwise the owner of a Gateway could remove the access that the class
// requires by naming the hostname.
func mergeListenerConfigurations(first, second []v1alpha1.ListenerConfiguration) []v1alpha1.ListenerConfiguration {
	if len(first) == 0 || len(second) == 0 {
		return firstNonEmpty(first, second)
	}
	second = slices.Clone(second)
	for i := range second {
		general := slices.IndexFunc(first, func(c v1alpha1.ListenerConfiguration) bool {
			return c.ProtocolPort == second[i].ProtocolPort && c.Hostname == ""
		})
		if general >= 0 {
			second[i] = mergeListenerConfiguration(&first[general], &second[i])
		}
	}
	return mergeLists(first, second, listenerKeyOf, mergeListenerConfiguration)
}

// mergeListenerConfiguration merges two entries. The result has the key of second.
func mergeListenerConfiguration(first, second *v1alpha1.ListenerConfiguration) v1alpha1.ListenerConfiguration {
	return v1alpha1.ListenerConfiguration{
		ProtocolPort:  second.ProtocolPort,
		Hostname:      second.Hostname,
		OriginRequest: mergeBlocks(first.OriginRequest, second.OriginRequest, mergeOriginRequests),
		Access:        mergeBlocks(first.Access, second.Access, mergeAccess),
	}
}

func mergeAccess(first, second *v1alpha1.Access) v1alpha1.Access {
	return v1alpha1.Access{
		Required: first.Required, // the API requires the field
		TeamName: cmp.Or(first.TeamName, second.TeamName),
		AUDTags:  firstNonEmpty(first.AUDTags, second.AUDTags),
	}
}
