package gateway

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// ruleSettings are the settings for the ingress rules of all routes.
type ruleSettings struct {
	// tunnel are the settings that apply to all rules, or nil.
	tunnel *v1alpha1.OriginRequest
	// hostnames are the settings of the hostnames whose listeners have their own
	// settings.
	hostnames map[string]*hostnameSettings
}

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

// newRuleSettings returns the settings of all listeners that claim their hostname,
// including listeners that are not served: the access that a hostname requires
// must not disappear because a Secret was deleted.
func newRuleSettings(s *settings.Settings, listeners []*Listener) ruleSettings {
	r := ruleSettings{tunnel: s.Spec.OriginRequest}
	if len(s.Spec.ListenerConfigurations) == 0 {
		return r
	}
	r.hostnames = map[string]*hostnameSettings{}
	entries := s.Listeners()
	for _, l := range listeners {
		if entry := entries.For(fmt.Sprintf("%s:%d", l.Spec.Protocol, l.Spec.Port), l.Hostname()); l.claims && entry != nil {
			r.add(configuredListener{l, *entry})
		}
	}
	for _, h := range r.hostnames {
		slices.SortStableFunc(h.listeners, compareListenerPrecedence)
		h.mergeAccess()
	}
	return r
}

func (r ruleSettings) add(l configuredListener) {
	h := r.hostnames[l.Hostname()]
	if h == nil {
		h = &hostnameSettings{}
		r.hostnames[l.Hostname()] = h
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
func (r ruleSettings) rejectContradictions(listeners []*Listener) *Problem {
	for _, l := range listeners {
		h := r.hostnames[l.Hostname()]
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

// groupSettings are the settings for the ingress rules of one hostname.
type groupSettings struct {
	tunnel    *v1alpha1.OriginRequest
	overrides map[*Route]*v1alpha1.OriginRequest
	access    *provider.Access
}

func (r ruleSettings) forHostname(hostname string) groupSettings {
	g := groupSettings{tunnel: r.tunnel}
	if h := r.hostnames[hostname]; h != nil {
		g.overrides, g.access = h.overrides(), renderAccess(h.access)
	}
	return g
}

// originRequest returns the settings of a rule of the route, or nil when the
// settings of the tunnel apply unchanged. A rule that answers 500 has no origin,
// but still requires access.
func (g groupSettings) originRequest(route *Route, a *ruleAction) *provider.OriginRequest {
	override, hasOrigin := g.overrides[route], a.service != serviceError
	if g.access == nil && (!hasOrigin || override == nil && route.Kind != KindGRPCRoute) {
		return nil // avoids an allocation for most rules
	}
	var rendered provider.OriginRequest
	if hasOrigin {
		rendered = renderOriginRequest(g.withRequiredFields(override, route.Kind))
	}
	rendered.Access = g.access
	if rendered == (provider.OriginRequest{}) {
		return nil
	}
	return &rendered
}

// overrides merges, for each route, the settings of the listeners that admit it.
// An ingress rule serves the ports of all these listeners.
func (h *hostnameSettings) overrides() map[*Route]*v1alpha1.OriginRequest {
	overrides := map[*Route]*v1alpha1.OriginRequest{}
	for _, l := range h.listeners {
		for _, route := range l.routes {
			overrides[route] = settings.MergeOriginRequests(overrides[route], l.settings.OriginRequest)
		}
	}
	return overrides
}

// withRequiredFields adds the fields to an override that it requires to take
// effect: HTTP/2 for a GRPCRoute, and a false value for a field of the tunnel that
// excludes a field of the override.
func (g groupSettings) withRequiredFields(override *v1alpha1.OriginRequest, kind string) v1alpha1.OriginRequest {
	if kind == KindGRPCRoute {
		override = settings.MergeOriginRequests(&v1alpha1.OriginRequest{HTTP2Origin: ptr.To(true)}, override)
	}
	rule, tunnel := ptr.Deref(override, v1alpha1.OriginRequest{}), ptr.Deref(g.tunnel, v1alpha1.OriginRequest{})
	if isTrue(rule.HTTP2Origin) && isTrue(tunnel.MatchSNIToHost) {
		rule.MatchSNIToHost = ptr.To(false)
	}
	if isTrue(rule.MatchSNIToHost) && isTrue(tunnel.HTTP2Origin) {
		rule.HTTP2Origin = ptr.To(false)
	}
	return rule
}

func isTrue(field *bool) bool { return ptr.Deref(field, false) }

func renderOriginRequest(o v1alpha1.OriginRequest) provider.OriginRequest {
	rendered := provider.OriginRequest{
		ConnectTimeout:         seconds(o.ConnectTimeout),
		TLSTimeout:             seconds(o.TLSTimeout),
		TCPKeepAlive:           seconds(o.TCPKeepAlive),
		KeepAliveTimeout:       seconds(o.KeepAliveTimeout),
		NoHappyEyeballs:        o.NoHappyEyeballs,
		MatchSNIToHost:         o.MatchSNIToHost,
		NoTLSVerify:            o.NoTLSVerify,
		DisableChunkedEncoding: o.DisableChunkedEncoding,
		HTTP2Origin:            o.HTTP2Origin,
		HTTPHostHeader:         ptr.Deref(o.HTTPHostHeader, ""),
		OriginServerName:       ptr.Deref(o.OriginServerName, ""),
		CAPool:                 ptr.Deref(o.CAPool, ""),
		ProxyType:              string(ptr.Deref(o.ProxyType, v1alpha1.ProxyTypeNone)),
	}
	if o.KeepAliveConnections != nil {
		rendered.KeepAliveConnections = ptr.To(int64(*o.KeepAliveConnections))
	}
	return rendered
}

// seconds returns the duration in seconds. It returns nil for an invalid duration,
// which package settings rejects.
func seconds(d *v1alpha1.Duration) *int64 {
	if d == nil {
		return nil
	}
	n, err := d.Seconds()
	if err != nil {
		return nil
	}
	return &n
}

func renderAccess(a *v1alpha1.Access) *provider.Access {
	if a == nil {
		return nil
	}
	rendered := &provider.Access{Required: a.Required, TeamName: ptr.Deref(a.TeamName, "")}
	for _, tag := range a.AUDTags {
		rendered.AUDTag = append(rendered.AUDTag, string(tag))
	}
	return rendered
}
