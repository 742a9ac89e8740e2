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

// ruleSettings are what the rules of routes need to know besides where their
// requests go.
type ruleSettings struct {
	// tunnel is what holds for all rules, or nil.
	tunnel *v1alpha1.OriginRequest
	// hostnames are those of listeners with settings of their own.
	hostnames map[string]*hostnameSettings
}

// hostnameSettings are those of the listeners of one hostname.
type hostnameSettings struct {
	// listeners have settings of their own: HTTPS before HTTP, then the lower
	// port.
	listeners []configuredListener
	// access is what the connector demands on every port, or nil.
	access *v1alpha1.Access
	// contradiction says why no token can do for all of the ports, or nothing.
	contradiction string
}

type configuredListener struct {
	*Listener
	settings v1alpha1.ListenerConfiguration
}

// newRuleSettings finds the entries of the listeners that hold their place,
// also of those that do not serve: what is demanded of a hostname must not go
// away because a Secret did. s is nil when the settings are not valid.
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

// mergeAccess finds the strictest access: a tunnel serves a hostname on every port
// at once, so what one port demands, all do. The connector takes a token of one
// team for any of the tags, so a token that does for all ports has a tag that
// each of them names.
func (h *hostnameSettings) mergeAccess() {
	var from configuredListener
	for _, l := range h.listeners {
		own := l.settings.Access
		switch {
		case own == nil || !own.Required:
			continue
		case h.access == nil:
			from = l
			h.access = &v1alpha1.Access{Required: true, TeamName: own.TeamName, AUDTags: own.AUDTags}
			continue
		}
		common := slices.DeleteFunc(slices.Clone(h.access.AUDTags), func(tag v1alpha1.AUDTag) bool { return !slices.Contains(own.AUDTags, tag) })
		if ptr.Deref(h.access.TeamName, "") != ptr.Deref(own.TeamName, "") || len(common) == 0 {
			h.contradiction = fmt.Sprintf(
				"%s demands access on port %d and on port %d, and no token can do for both: a tunnel serves a hostname on every port at once, so their teamName has to be the same and their audTags need one in common.",
				describeHostname(l.Hostname()), from.Spec.Port, l.Spec.Port)
			return
		}
		h.access.AUDTags = common
	}
}

// rejectContradictions returns the problem of the Gateway when a hostname of
// its own contradicts itself, or nil. A tenant cannot break the platform team's
// Gateway: the listeners of a ListenerSet are not accepted then, and the
// hostname serves nothing.
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

// groupSettings are those of the rules of one hostname.
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

// originRequest returns what a rule of the route says itself, or nil when the
// tunnel's own settings do. One that answers by itself has no origin, but is
// protected all the same.
func (g groupSettings) originRequest(route *Route, a *ruleAction) *provider.OriginRequest {
	own, reaches := g.overrides[route], a.service != serviceError
	if g.access == nil && (!reaches || own == nil && route.Kind != KindGRPCRoute) {
		return nil // most rules
	}
	var rendered provider.OriginRequest
	if reaches {
		rendered = renderOriginRequest(g.withRequiredFields(own, route.Kind))
	}
	rendered.Access = g.access
	if rendered == (provider.OriginRequest{}) {
		return nil
	}
	return &rendered
}

// overrides merges what the listeners say that admit a route: it is one rule
// for all of their ports.
func (h *hostnameSettings) overrides() map[*Route]*v1alpha1.OriginRequest {
	overrides := map[*Route]*v1alpha1.OriginRequest{}
	for _, l := range h.listeners {
		for _, route := range l.routes {
			overrides[route] = settings.MergeOriginRequests(overrides[route], l.settings.OriginRequest)
		}
	}
	return overrides
}

// withRequiredFields returns what a rule says itself: gRPC is HTTP/2, whatever else is
// set. Where the tunnel has on what excludes a field of the rule, the rule
// switches that off, because its field alone would have no effect.
func (g groupSettings) withRequiredFields(own *v1alpha1.OriginRequest, kind string) v1alpha1.OriginRequest {
	if kind == KindGRPCRoute {
		own = settings.MergeOriginRequests(&v1alpha1.OriginRequest{HTTP2Origin: ptr.To(true)}, own)
	}
	rule, tunnel := ptr.Deref(own, v1alpha1.OriginRequest{}), ptr.Deref(g.tunnel, v1alpha1.OriginRequest{})
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

// seconds returns nil for what is no duration, which has been refused before.
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
