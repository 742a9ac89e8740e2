package settings

import (
	"cmp"
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Listeners are the spec.listenerConfigurations entries from both levels. They are not
// merged into one list, because every entry on the preferred level takes precedence over
// every entry on the other, and the level decides about access.
type Listeners struct {
	Class, Gateway []v1alpha1.ListenerConfiguration
	// PreferGateway reports whether originRequest on the Gateway takes precedence.
	PreferGateway bool
}

// Access returns the access on one level, by entry hostname. Entries for the same
// hostname have equal access, which the validation ensures.
func Access(entries []v1alpha1.ListenerConfiguration) map[string]*v1alpha1.Access {
	byHostname := map[string]*v1alpha1.Access{}
	for i := range entries {
		if access := entries[i].Access; access != nil {
			byHostname[entries[i].Hostname] = access
		}
	}
	return byHostname
}

// listenerKey identifies a ListenerConfiguration within a level.
type listenerKey struct{ protocolPort, hostname string }

// OriginRequests finds the originRequest for a listener. Its elements are the levels in
// order of precedence.
type OriginRequests [2]map[listenerKey]*v1alpha1.OriginRequest

// OriginRequests indexes the entries with an originRequest.
func (l Listeners) OriginRequests() OriginRequests {
	first, second := l.Class, l.Gateway
	if l.PreferGateway {
		first, second = second, first
	}
	return OriginRequests{originRequestsByKey(first), originRequestsByKey(second)}
}

func originRequestsByKey(entries []v1alpha1.ListenerConfiguration) map[listenerKey]*v1alpha1.OriginRequest {
	byKey := map[listenerKey]*v1alpha1.OriginRequest{}
	for i := range entries {
		if entry := &entries[i]; entry.OriginRequest != nil {
			byKey[listenerKey{entry.ProtocolPort, entry.Hostname}] = entry.OriginRequest
		}
	}
	return byKey
}

// IsEmpty reports whether no entry has an originRequest.
func (o OriginRequests) IsEmpty() bool { return len(o[0]) == 0 && len(o[1]) == 0 }

// For returns the settings for a listener, or nil when there are none. Within a level, an
// entry with the listener hostname takes precedence over an entry without a hostname,
// then an entry for the port over an entry for every port.
func (o OriginRequests) For(protocolPort, hostname string) *v1alpha1.OriginRequest {
	var merged *v1alpha1.OriginRequest
	for _, level := range o {
		for _, key := range []listenerKey{
			{protocolPort, hostname},
			{v1alpha1.EveryPort, hostname},
			{protocolPort, ""},
			{v1alpha1.EveryPort, ""},
		} {
			merged = mergeBlocks(merged, level[key], mergeOriginRequests)
		}
	}
	return merged
}

// checkAccessOfHostnames rejects entries for one hostname with different access: a
// tunnel serves a hostname on all ports, so only one of them could apply.
func checkAccessOfHostnames(spec *v1alpha1.TunnelConfigurationSpec) string {
	first := map[string]*v1alpha1.ListenerConfiguration{}
	for i := range spec.ListenerConfigurations {
		entry := &spec.ListenerConfigurations[i]
		if entry.Access == nil {
			continue
		}
		other := cmp.Or(first[entry.Hostname], entry)
		first[entry.Hostname] = other
		if !entry.Access.Equal(other.Access) {
			return fmt.Sprintf("spec.listenerConfigurations has different access blocks for %s, in the entries with protocolPort %s and %s, but a tunnel does not distinguish ports. Keep one of the blocks, in an entry with protocolPort %q.",
				describeHostname(entry.Hostname), other.ProtocolPort, entry.ProtocolPort, v1alpha1.EveryPort)
		}
	}
	return ""
}

func describeHostname(hostname string) string {
	if hostname == "" {
		return "the empty hostname (every hostname)"
	}
	return "hostname " + hostname
}
