package ingress

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// ruleSettings are the settings for the rules in a table.
type ruleSettings struct {
	tunnel *v1alpha1.OriginRequest
	access routing.Access
	// rendered has the access in the form of the tunnel configuration.
	rendered map[*routing.Requirement]*provider.AccessSettings
}

func newRuleSettings(t *routing.Table) ruleSettings {
	s := ruleSettings{tunnel: t.OriginRequest, access: t.Access, rendered: map[*routing.Requirement]*provider.AccessSettings{}}
	for _, access := range t.Access {
		s.rendered[access] = RenderAccess(access)
	}
	return s
}

// originRequest returns the settings for the rule that serves an entry for the hostname,
// or nil when the tunnel settings apply unchanged. A rule that answers with a status has
// no origin, but still requires access.
func (s ruleSettings) originRequest(e *routing.Entry, hostname string) *provider.OriginRequest {
	hasOrigin, isGRPC, serverName := e.Action.Forward != nil, e.Source.Route.Kind == routing.KindGRPCRoute, s.serverName(e)
	var policy *routing.BackendTLS
	if hasOrigin {
		policy = e.Action.Forward.Backends[0].Backend.TLS
	}
	access := s.rendered[s.access.Of(hostname)]
	if access == nil && (!hasOrigin || e.OriginRequest == nil && !isGRPC && serverName == "" && policy == nil) {
		return nil // avoids an allocation for most rules
	}
	var rendered provider.OriginRequest
	if hasOrigin {
		rendered = renderOriginRequest(s.withPolicy(s.withRequiredFields(e.OriginRequest, isGRPC), policy))
	}
	rendered.Access = access
	if serverName != "" {
		rendered.OriginServerName = serverName
	}
	if rendered == (provider.OriginRequest{}) {
		return nil
	}
	return &rendered
}

// serverName returns the name that the certificate of an entry's backend must have, or ""
// when the connector determines it from the backend's URL and the settings. The URL of a
// ServiceImport contains an address.
func (s ruleSettings) serverName(e *routing.Entry) string {
	if e.Action.Forward == nil {
		return ""
	}
	b := e.Action.Forward.Backends[0].Backend
	if !b.Import || b.Protocol != routing.ProtocolHTTPS {
		return ""
	}
	merged := ptr.Deref(settings.MergeOriginRequests(e.OriginRequest, s.tunnel), v1alpha1.OriginRequest{})
	if ptr.Deref(merged.OriginServerName, "") != "" || isTrue(merged.MatchSNIToHost) {
		return ""
	}
	return b.DNSName("")
}

// withRequiredFields adds the fields to an override that it requires to take effect:
// HTTP/2 for a GRPCRoute, and a false value for a tunnel field that excludes a field in
// the override.
func (s ruleSettings) withRequiredFields(override *v1alpha1.OriginRequest, isGRPC bool) v1alpha1.OriginRequest {
	if isGRPC {
		override = settings.MergeOriginRequests(&v1alpha1.OriginRequest{HTTP2Origin: ptr.To(true)}, override)
	}
	rule, tunnel := ptr.Deref(override, v1alpha1.OriginRequest{}), ptr.Deref(s.tunnel, v1alpha1.OriginRequest{})
	if isTrue(rule.HTTP2Origin) && isTrue(tunnel.MatchSNIToHost) {
		rule.MatchSNIToHost = ptr.To(false)
	}
	if isTrue(rule.MatchSNIToHost) && isTrue(tunnel.HTTP2Origin) {
		rule.HTTP2Origin = ptr.To(false)
	}
	return rule
}

// withPolicy replaces the settings about the backend's certificate by the policy's, which
// the connector would otherwise take from the tunnel. policy can be nil.
func (s ruleSettings) withPolicy(rule v1alpha1.OriginRequest, policy *routing.BackendTLS) v1alpha1.OriginRequest {
	if policy == nil {
		return rule
	}
	tunnel := ptr.Deref(s.tunnel, v1alpha1.OriginRequest{})
	rule.OriginServerName, rule.CAPool = &policy.Hostname, nil
	rule.NoTLSVerify, rule.MatchSNIToHost = overrideTrue(tunnel.NoTLSVerify), overrideTrue(tunnel.MatchSNIToHost)
	return rule
}

// overrideTrue returns false if the tunnel has true, and otherwise nil.
func overrideTrue(tunnel *bool) *bool {
	if isTrue(tunnel) {
		return ptr.To(false)
	}
	return nil
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

// RenderAccess returns the access in the form of the tunnel configuration, or nil if
// requests need no token.
func RenderAccess(a *routing.Requirement) *provider.AccessSettings {
	if !a.DemandsToken() {
		return nil
	}
	return &provider.AccessSettings{Required: true, TeamName: a.TeamName, AUDTag: slices.Clone(a.AUDTags)}
}
