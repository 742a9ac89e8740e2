package gateway

import (
	"cmp"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// RedirectLoop is a match whose requests the rule redirects to their own URL.
type RedirectLoop struct {
	// Rule is the index of the rule, and Match the index of the match in the rule, both
	// from 0.
	Rule, Match int
	Hostname    string
	Schemes     routing.Schemes
}

// addRedirectLoops adds the redirect loops in the routing table to the route parents.
func (r *Result) addRedirectLoops(groups map[string]*group) {
	changed := map[*Route]bool{}
	for _, loop := range r.Table.RedirectLoops() {
		source := loop.Entry.Source
		route := r.Routes[source.Route.Rank]
		for i := range route.Parents {
			if p := &route.Parents[i]; p.answers(groups[loop.Group], loop.Schemes) {
				p.RedirectLoops = append(p.RedirectLoops, RedirectLoop{source.Rule, source.Match, loop.Entry.Hostname, loop.Schemes})
				changed[route] = true
			}
		}
	}
	for route := range changed {
		for i := range route.Parents {
			slices.SortFunc(route.Parents[i].RedirectLoops, compareRedirectLoops)
		}
	}
}

func compareRedirectLoops(a, b RedirectLoop) int {
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Match, b.Match), routing.CompareGroups(a.Hostname, b.Hostname))
}

// answers reports whether the group answers requests with one of the schemes through
// listeners of the parent.
func (p *Parent) answers(g *group, schemes routing.Schemes) bool {
	return slices.ContainsFunc(p.Listeners, func(l *Listener) bool {
		return l.Serves() && l.Hostname() == g.hostname && (!g.schemes.served.HasBoth() || schemes.Has(l.scheme()))
	})
}

// DescribeRedirectLoops describes the redirect loops of the parent. It returns "" when
// there are none.
func (r *Route) DescribeRedirectLoops(p *Parent) string {
	if len(p.RedirectLoops) == 0 {
		return ""
	}
	list := message.List{
		Before: "The route redirects requests to their own URL, so visitors get too many redirects: ",
		After:  ". Change the redirect or the match.", MaxSize: r.messageSize,
	}
	for _, loop := range p.RedirectLoops {
		list.Add("rule %d match %d (%s)", loop.Rule, loop.Match, loop.describeRequests())
	}
	return list.String()
}

func (l *RedirectLoop) describeRequests() string {
	text := routing.QuoteHostname(l.Hostname)
	switch {
	case l.Schemes.HasBoth():
		return text
	case l.Schemes.Has(routing.SchemeHTTP):
		return text + ", scheme http"
	default:
		return text + ", scheme https"
	}
}
