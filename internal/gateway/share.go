package gateway

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// share is what one route needs and gets from the resources that a Gateway's routes
// share.
type share struct {
	route  *Route
	tenant limits.Tenant
	// hostnames counts the hostnames for which the groups serve the route, and omitted
	// the rules that it does not need there because of their scheme. It is negative if
	// the route needs more.
	hostnames, omitted int
	// repeated counts the rules that are repeated because of the route, and forOthers its
	// own rules that are repeated for hostnames of other tenants; see [repetitions].
	repeated, forOthers int
	// borrowed counts the rules for the route's redirects that answer http for other
	// listeners' hostnames.
	borrowed int
	// refused is why the route exceeds a limit, or nil. aboveHostname reports whether it is
	// refused because a hostname has too many routes.
	refused       *Problem
	aboveHostname bool
	// confined is why the route's rules are not repeated for hostnames of other tenants,
	// or empty.
	confined string
}

// shares has the share of each route on a Gateway, by rank.
type shares []share

// newShares returns the shares for the routes, which are in order of rank, before any
// limit except the limit on the length of expressions.
func (l *limiter) newShares(routes []*Route) shares {
	all := make(shares, len(routes))
	for rank, route := range routes {
		all[rank] = share{route: route, tenant: l.tenants.of(route.Namespace), refused: route.tooLong}
	}
	return all
}

func (s shares) of(route *Route) *share { return &s[route.source.Rank] }

// contains reports whether a share satisfies the condition.
func (s shares) contains(condition func(*share) bool) bool {
	for i := range s {
		if condition(&s[i]) {
			return true
		}
	}
	return false
}

// withoutRefused returns a copy without the refused routes, because a listener and a
// group can share their list.
func (s shares) withoutRefused(routes []*Route) []*Route {
	return slices.DeleteFunc(slices.Clone(routes), func(r *Route) bool { return s.of(r).isRefused() })
}

// isRefused reports whether the route exceeds a limit.
func (s *share) isRefused() bool { return s.refused != nil }

func (s *share) isConfined() bool { return s.confined != "" }

// mayReturn reports whether the route was refused because of its expressions or rules.
func (s *share) mayReturn() bool {
	return s.refused != nil && s.refused != s.route.tooLong && !s.aboveHostname && s.instructions() > 0
}

// rules counts the route's rules, before rules that no request can reach are left out. It
// is a product, so that many rules are not built to be counted. A route has at least as
// many rules as backends.
func (s *share) rules() int {
	if s.hostnames == 0 {
		return s.repeated + s.borrowed
	}
	return max(s.hostnames*s.route.cost()-s.omitted, s.route.backends) + s.repeated + s.borrowed
}

// instructions returns the size of the expressions in all the route's rules.
func (s *share) instructions() int {
	size := 0
	for i := range s.route.matches {
		size += s.route.matches[i].instructions
	}
	return s.hostnames * size
}

// countHostnames counts, for each route, the hostnames for which the groups serve it,
// including the narrower hostnames with separate Access settings.
func (s shares) countHostnames(groups map[string]*group) {
	for _, g := range groups {
		separate := separateCounter{g.separate, map[string]int{}}
		for _, route := range g.routes {
			needed, omitted := s.of(route), route.cost()-g.cost(route)
			for hostname := range g.servedHostnames(route, groups) {
				lists := 1 + separate.below(hostname.served)
				needed.hostnames += lists
				needed.omitted += lists * omitted
			}
		}
	}
}

// separateCounter counts the hostnames with separate Access settings for which the
// entries for wider hostnames are repeated.
type separateCounter struct {
	hostnames []string
	byWider   map[string]int
}

// below counts the hostnames below an entry's hostname.
func (c separateCounter) below(wide string) int {
	if len(c.hostnames) == 0 {
		return 0 // most groups
	}
	count, known := c.byWider[wide]
	if known {
		return count
	}
	for _, hostname := range c.hostnames {
		if hostname != wide && routing.Covers(wide, hostname) {
			count++
		}
	}
	c.byWider[wide] = count
	return count
}
