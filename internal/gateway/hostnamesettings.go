package gateway

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// settingsByHostname are the settings of the hostnames whose listeners have their
// own settings.
type settingsByHostname map[string]*hostnameSettings

// hostnameSettings are the settings of all listeners of one hostname.
type hostnameSettings struct {
	// listeners are the listeners with their own settings: HTTPS before HTTP, then
	// by port.
	listeners []configuredListener
	// access is the access that the connector requires on every port, or nil.
	access *v1alpha1.Access
	// contradiction is why no token is valid for all ports, or empty.
	contradiction string
}

type configuredListener struct {
	*Listener
	settings v1alpha1.ListenerConfiguration
}

// newSettingsByHostname returns the settings of all listeners that claim their hostname,
// including listeners that are not served: the access that a hostname requires
// must not disappear because a Secret was deleted.
func newSettingsByHostname(s *settings.Settings, listeners []*Listener) settingsByHostname {
	if len(s.Spec.ListenerConfigurations) == 0 {
		return nil
	}
	r := settingsByHostname{}
	entries := s.Listeners()
	for _, l := range listeners {
		if entry := entries.For(fmt.Sprintf("%s:%d", l.Spec.Protocol, l.Spec.Port), l.Hostname()); l.claims && entry != nil {
			r.add(configuredListener{l, *entry})
		}
	}
	for _, h := range r {
		slices.SortStableFunc(h.listeners, compareListenerPrecedence)
		h.mergeAccess()
	}
	return r
}

func (r settingsByHostname) add(l configuredListener) {
	h := r[l.Hostname()]
	if h == nil {
		h = &hostnameSettings{}
		r[l.Hostname()] = h
	}
	h.listeners = append(h.listeners, l)
}

func compareListenerPrecedence(a, b configuredListener) int {
	insecure := func(l configuredListener) int {
		if l.Spec.Protocol == gatewayv1.HTTPSProtocolType {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(insecure(a), insecure(b)), cmp.Compare(a.Spec.Port, b.Spec.Port))
}

// mergeAccess determines the access that all ports of the hostname require. A
// tunnel serves a hostname on all ports, so the requirements of all ports apply
// together. The connector accepts a token of one team with any of the tags, so
// the merged access has only the tags that every port lists.
func (h *hostnameSettings) mergeAccess() {
	var first configuredListener
	for _, l := range h.listeners {
		access := l.settings.Access
		switch {
		case access == nil || !access.Required:
			continue
		case h.access == nil:
			first = l
			h.access = &v1alpha1.Access{Required: true, TeamName: access.TeamName, AUDTags: access.AUDTags}
			continue
		}
		common := slices.DeleteFunc(slices.Clone(h.access.AUDTags), func(tag v1alpha1.AUDTag) bool { return !slices.Contains(access.AUDTags, tag) })
		if ptr.Deref(h.access.TeamName, "") != ptr.Deref(access.TeamName, "") || len(common) == 0 {
			h.contradiction = fmt.Sprintf(
				"%s requires access on ports %d and %d, but no token is valid for both. A tunnel serves a hostname on all ports, so set the same teamName and at least one common entry of audTags for both ports.",
				describeHostname(l.Hostname()), first.Spec.Port, l.Spec.Port)
			return
		}
		h.access.AUDTags = common
	}
}

// rejectContradictions returns a problem when a hostname of the Gateway's own
// listeners has contradictory access, or nil. For a hostname of a ListenerSet, it
// rejects the listeners instead, so that a tenant cannot break the platform
// team's Gateway. The hostname is then not served.
func (r settingsByHostname) rejectContradictions(listeners []*Listener) *Problem {
	for _, l := range listeners {
		h := r[l.Hostname()]
		if h == nil || h.contradiction == "" || !l.claims {
			continue
		}
		problem := &Problem{Reason: string(gatewayv1.GatewayReasonInvalidParameters), Message: h.contradiction}
		if l.Owner.Kind == KindGateway {
			return problem
		}
		l.Rejected = cmp.Or(l.Rejected, problem)
	}
	return nil
}

// overrides merges, for each route, the settings of the listeners that admit it.
// A tunnel serves the ports of all these listeners.
func (h *hostnameSettings) overrides() map[*Route]*v1alpha1.OriginRequest {
	if h == nil {
		return nil
	}
	overrides := map[*Route]*v1alpha1.OriginRequest{}
	for _, l := range h.listeners {
		for _, route := range l.routes {
			overrides[route] = settings.MergeOriginRequests(overrides[route], l.settings.OriginRequest)
		}
	}
	return overrides
}

// requiredAccess returns the access that the connector requires, or nil.
func (h *hostnameSettings) requiredAccess() *v1alpha1.Access {
	if h == nil {
		return nil
	}
	return h.access
}
