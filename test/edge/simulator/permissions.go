package simulator

import (
	"net/http"
	"slices"
	"strings"
)

// Permission is a permission of an API token, with the name in Cloudflare's dashboard.
type Permission string

// Values of [Permission]. A permission to edit includes the permission to read.
const (
	TunnelEdit Permission = "Cloudflare Tunnel Edit"
	ZoneRead   Permission = "Zone Read"
	DNSRead    Permission = "DNS Read"
	DNSEdit    Permission = "DNS Edit"
	SSLRead    Permission = "SSL and Certificates Read"
	// SettingsRead is for the settings of a zone.
	SettingsRead Permission = "Zone Settings Read"
	// AccessRead and AccessEdit are for applications, policies and tags of Cloudflare Access.
	AccessRead Permission = "Access: Apps and Policies Read"
	AccessEdit Permission = "Access: Apps and Policies Edit"
)

// Grant gives a token permissions.
type Grant struct {
	// Zones are the IDs of the zones that the permissions apply to. Nil means all zones.
	// TunnelEdit, AccessRead and AccessEdit apply to accounts, and ignore the zones.
	Zones       []string
	Permissions []Permission
}

// Restrict makes the API accept the token, with these permissions only. It replaces the
// token's previous grants. A token that was never restricted has all permissions.
func (s *Server) Restrict(token string, grants ...Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grants == nil {
		s.grants = map[string][]Grant{}
	}
	s.grants[token] = grants
}

// bearer returns the request's token, or an empty string.
func bearer(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return token
}

// acceptsToken reports whether the API accepts the request's token. It does not
// check the token's permissions.
func (s *Server) acceptsToken(r *http.Request) bool {
	token := bearer(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, restricted := s.grants[token]
	return token != "" && (restricted || s.token == "" || s.token == token)
}

// permits reports whether the request's token has one of the permissions for the zone.
func (s *Server) permits(r *http.Request, zone string, permissions ...Permission) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	grants, restricted := s.grants[bearer(r)]
	return !restricted || slices.ContainsFunc(grants, func(g Grant) bool {
		return g.includesZone(zone) &&
			slices.ContainsFunc(permissions, func(p Permission) bool { return slices.Contains(g.Permissions, p) })
	})
}

// permitsAccount reports whether the request's token has one of the permissions for accounts.
func (s *Server) permitsAccount(r *http.Request, permissions ...Permission) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	grants, restricted := s.grants[bearer(r)]
	return !restricted || slices.ContainsFunc(grants, func(g Grant) bool {
		return slices.ContainsFunc(permissions, func(p Permission) bool { return slices.Contains(g.Permissions, p) })
	})
}

func (g Grant) includesZone(id string) bool { return g.Zones == nil || slices.Contains(g.Zones, id) }
