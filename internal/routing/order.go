package routing

import (
	"cmp"
	"slices"
)

// key is one criterion by which entries are ordered.
type key struct {
	compare func(a, b *Entry) int
	// explain describes why b comes after a, as a clause about b.
	explain func(a, b *Entry) string
}

// order lists the criteria within a group, the most important first. The conformance test
// GatewayRouteHostnameIntersectionPrecedence defines the first: the hostname in the route
// counts, not the intersection. The others are from HTTPRouteRule.Matches and
// GRPCRouteRule.Matches.
var order = []key{
	{compareHostnames, explainHostname},
	{compareCalls, fixed("its gRPC method match is less specific")},
	{comparePathKinds, explainPathKind},
	{comparePrefixes, fixed("its path prefix is shorter")},
	{compareMethods, fixed("it has no method match")},
	{compareHeaders, fixed("it has fewer header matches")},
	{compareQueries, fixed("it has fewer query parameter matches")},
	{compareProtocols, fixed("only an HTTP listener admits its route, and the hostname also has an HTTPS listener")},
	{compareRoutes, explainRoute},
	{compareRules, fixed("it is a later rule of the same route")},
	{compareMatches, fixed("it is a later match of the same rule")},
}

// Sort orders the entries of a group.
func Sort(entries []*Entry) { slices.SortFunc(entries, compare) }

func compare(a, b *Entry) int {
	for i := range order {
		if result := order[i].compare(a, b); result != 0 {
			return result
		}
	}
	return 0
}

// explain describes why b comes after a in their group.
func explain(a, b *Entry) string {
	for _, k := range order {
		if k.compare(a, b) != 0 {
			return k.explain(a, b)
		}
	}
	return "it serves the same match of the same route"
}

func fixed(text string) func(a, b *Entry) string { return func(_, _ *Entry) string { return text } }

// compareHostnames orders the largest number of "Characters in a matching
// non-wildcard hostname" first, then of "Characters in a matching hostname".
// (HTTPRouteSpec.Hostnames)
func compareHostnames(a, b *Entry) int {
	if a.RouteHostname == b.RouteHostname {
		return 0 // most entries in a group
	}
	return CompareRouteHostnames(a.RouteHostname, b.RouteHostname)
}

func explainHostname(a, b *Entry) string {
	return "the hostname of its route, " + QuoteHostname(b.RouteHostname) + ", is less specific than " + QuoteHostname(a.RouteHostname)
}

// QuoteHostname returns the hostname in quotation marks, or "every hostname".
func QuoteHostname(hostname string) string {
	if hostname == "" {
		return "every hostname"
	}
	return `"` + hostname + `"`
}

// compareCalls orders the largest number of "Characters in a matching service"
// first, then of "Characters in a matching method". (GRPCRouteRule.Matches) An
// expression counts as no characters, because its length does not indicate how
// specific it is.
func compareCalls(a, b *Entry) int {
	serviceA, methodA := a.Match.callLength()
	serviceB, methodB := b.Match.callLength()
	return cmp.Or(cmp.Compare(serviceB, serviceA), cmp.Compare(methodB, methodA))
}

func (m *Match) callLength() (service, method int) {
	if m.Call == nil || m.Call.Expression {
		return 0, 0
	}
	return len(m.Call.Service), len(m.Call.Method)
}

// comparePathKinds orders "Exact" path matches first and prefixes last, with expressions
// between them. (HTTPRouteRule.Matches)
func comparePathKinds(a, b *Entry) int {
	return cmp.Compare(a.Match.pathRank(), b.Match.pathRank())
}

// pathRank ranks every gRPC method match like a prefix, because service and method decide
// their order instead of the path.
func (m *Match) pathRank() int {
	switch {
	case m.Call != nil || m.Path.Kind == PathPrefix:
		return 2
	case m.Path.Kind == PathExpression:
		return 1
	default:
		return 0
	}
}

func explainPathKind(a, b *Entry) string {
	return b.Match.Path.Kind.String() + " path matches come after " + a.Match.Path.Kind.String() + " path matches"
}

// String returns the Gateway API name.
func (k PathKind) String() string {
	switch k {
	case PathExact:
		return "Exact"
	case PathExpression:
		return "RegularExpression"
	default:
		return "PathPrefix"
	}
}

// comparePrefixes orders the prefix "with largest number of characters" first.
// (HTTPRouteRule.Matches)
func comparePrefixes(a, b *Entry) int {
	return cmp.Compare(b.Match.prefixLength(), a.Match.prefixLength())
}

func (m *Match) prefixLength() int {
	if m.Path.Kind != PathPrefix {
		return 0
	}
	return len(m.Path.Value)
}

// compareMethods orders a "Method match" first. (HTTPRouteRule.Matches)
func compareMethods(a, b *Entry) int {
	return compareBools(a.Match.Method != "", b.Match.Method != "")
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// compareHeaders orders the "Largest number of header matches" first.
func compareHeaders(a, b *Entry) int { return cmp.Compare(len(b.Match.Headers), len(a.Match.Headers)) }

// compareQueries orders the "Largest number of query param matches" first.
func compareQueries(a, b *Entry) int { return cmp.Compare(len(b.Match.Query), len(a.Match.Query)) }

// compareProtocols orders routes on HTTPS listeners first where the data plane does not
// know the scheme of a request.
func compareProtocols(a, b *Entry) int { return compareBools(!a.AfterHTTPS, !b.AfterHTTPS) }

// compareRoutes orders "The oldest Route based on creation timestamp" first, then
// "The Route appearing first in alphabetical order".
func compareRoutes(a, b *Entry) int {
	return cmp.Compare(a.Source.Route.Rank, b.Source.Route.Rank)
}

func explainRoute(a, b *Entry) string {
	if a.Source.Route.Created != b.Source.Route.Created {
		return "its route is younger"
	}
	return "its route has the same age and comes later in alphabetical order"
}

// compareRules orders "the FIRST matching rule (in list order)" first.
func compareRules(a, b *Entry) int { return cmp.Compare(a.Source.Rule, b.Source.Rule) }

func compareMatches(a, b *Entry) int { return cmp.Compare(a.Source.Match, b.Source.Match) }
