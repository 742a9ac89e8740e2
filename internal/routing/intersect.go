package routing

import (
	"slices"
	"strings"
)

// Relation says whether requests can match both of two matches.
type Relation int

const (
	// Disjoint means that no request matches both.
	Disjoint Relation = iota
	// Intersecting means that one Match describes the requests that match both.
	Intersecting
	// Undecided means that no Match describes them.
	Undecided
)

// Intersect returns the match for requests that match both, if their relation is
// Intersecting. It keeps the gRPC method match in other.
func (m *Match) Intersect(other *Match) (*Match, Relation) {
	path, relation := m.Path.intersect(other.Path)
	if relation == Disjoint || m.Method != "" && other.Method != "" && m.Method != other.Method {
		return nil, Disjoint
	}
	headers, ok := mergeValues(m.Headers, other.Headers)
	query, unique := mergeValues(m.Query, other.Query)
	if !ok || !unique || relation == Undecided {
		return nil, Undecided
	}
	both := &Match{Path: path, Method: m.Method, Headers: headers, Query: query, Call: other.Call}
	if both.Method == "" {
		both.Method = other.Method
	}
	return both, Intersecting
}

// intersect returns the path condition for the paths that match both. Expressions are not
// compared.
func (p Path) intersect(other Path) (Path, Relation) {
	switch {
	case p == other || p == (Path{}):
		return other, Intersecting
	case other == (Path{}):
		return p, Intersecting
	case p.Kind == PathExpression || other.Kind == PathExpression:
		return Path{}, Undecided
	case p.Kind == PathPrefix && p.Matches(other.Value):
		return other, Intersecting
	case other.Kind == PathPrefix && other.Matches(p.Value):
		return p, Intersecting
	default:
		return Path{}, Disjoint
	}
}

// mergeValues joins the conditions. It returns false if they have different conditions for one
// name, in any letter case.
func mergeValues(a, b []ValueMatch) ([]ValueMatch, bool) {
	merged := slices.Clone(a)
	for _, v := range b {
		i := slices.IndexFunc(a, func(other ValueMatch) bool { return strings.EqualFold(other.Name, v.Name) })
		if i >= 0 && a[i] != v {
			return nil, false
		}
		if i < 0 {
			merged = append(merged, v)
		}
	}
	return merged, true
}
