package routing

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Match is the condition for an entry. A request matches when every part matches.
type Match struct {
	// Path is the condition for the path. The zero value matches every path.
	Path Path
	// Method is the HTTP method, or empty for every method.
	Method string
	// Headers are the conditions for headers, with at most one for each name. Names
	// are compared without regard to case.
	Headers []ValueMatch
	// Query are the conditions for query parameters, with at most one for each name.
	Query []ValueMatch
	// Call is the gRPC method match in a GRPCRoute, and nil for an HTTPRoute. Path
	// matches the same calls. Call decides the order instead of the path.
	Call *Call
}

// PathKind says how a path is compared.
type PathKind int8

const (
	// PathPrefix matches the value and every path below it. An empty value matches
	// every path.
	PathPrefix PathKind = iota
	// PathExact matches the value only.
	PathExact
	// PathExpression matches when the value, an RE2 expression, matches the whole
	// path.
	PathExpression
)

// Path is a condition for a request path.
type Path struct {
	Kind PathKind
	// Value is in the form in which the data plane compares paths. A prefix has no
	// slash at the end. An expression is enclosed in a group.
	Value string
}

// ValueMatch is a condition for a header or query parameter value.
type ValueMatch struct {
	Name string
	// Value is the value, or an RE2 expression, enclosed in a group, that has to match
	// the whole value.
	Value string
	// Expression reports whether Value is an expression.
	Expression bool
}

// Call is a gRPC method match. An empty Service or Method matches every service or
// method.
type Call struct {
	Service, Method string
	// Expression reports whether Service and Method are expressions.
	Expression bool
}

// MatchesAll reports whether the match applies to every request.
func (m *Match) MatchesAll() bool {
	return m.Path == (Path{}) && m.Method == "" && len(m.Headers) == 0 && len(m.Query) == 0
}

// Matches reports whether the match applies to the request. It ignores the host.
func (m *Match) Matches(r Request) bool { return m.matches(r, matchesWhole) }

// mayMatch reports whether the match applies to the request if every expression matches.
func (m *Match) mayMatch(r Request) bool {
	return m.matches(r, func(_, _ string) bool { return true })
}

func (m *Match) matches(r Request, matchesExpression expressionMatcher) bool {
	return m.Path.matches(r.Path, matchesExpression) &&
		(m.Method == "" || m.Method == r.method()) &&
		!slices.ContainsFunc(m.Headers, func(h ValueMatch) bool {
			return !slices.ContainsFunc(r.header(h.Name), func(value string) bool { return h.matches(value, matchesExpression) })
		}) &&
		m.matchesQuery(r, matchesExpression)
}

// expressionMatcher reports whether the expression matches the whole value.
type expressionMatcher func(expression, value string) bool

// Matches reports whether the path matches: "Matching is case-sensitive and done on a
// path element by element basis." (PathMatchPathPrefix)
func (p Path) Matches(path string) bool { return p.matches(path, matchesWhole) }

func (p Path) matches(path string, matchesExpression expressionMatcher) bool {
	switch p.Kind {
	case PathExact:
		return path == p.Value
	case PathExpression:
		return matchesExpression(p.Value, path)
	default:
		rest, ok := strings.CutPrefix(path, p.Value)
		return ok && (p.Value == "" || rest == "" || rest[0] == '/')
	}
}

func (v ValueMatch) matches(value string, matchesExpression expressionMatcher) bool {
	if v.Expression {
		return matchesExpression(v.Value, value)
	}
	return value == v.Value
}

// matchesQuery compares only the first value of each parameter.
func (m *Match) matchesQuery(r Request, matchesExpression expressionMatcher) bool {
	return !slices.ContainsFunc(m.Query, func(q ValueMatch) bool {
		value, ok := r.parameter(q.Name)
		return !ok || !q.matches(value, matchesExpression)
	})
}

func matchesWhole(expression, value string) bool {
	compiled, err := regexp.Compile("^(?:" + expression + ")$")
	return err == nil && compiled.MatchString(value)
}

// String describes the match, for example "PathPrefix /cart, method GET".
func (m *Match) String() string {
	parts := []string{m.Path.String()}
	if m.Method != "" {
		parts = append(parts, "method "+m.Method)
	}
	for _, h := range m.Headers {
		parts = append(parts, "header "+h.String())
	}
	for _, q := range m.Query {
		parts = append(parts, "query parameter "+q.String())
	}
	return strings.Join(parts, ", ")
}

// String describes the path, for example "PathPrefix /cart", or "every path".
func (p Path) String() string {
	value := p.Value
	switch {
	case p == (Path{}):
		return "every path"
	case p.Kind == PathExpression:
		value = withoutGroup(value)
	}
	return fmt.Sprintf("%s %s", p.Kind, value)
}

// String describes the value, for example "version=2" or "version=~[0-9]+".
func (v ValueMatch) String() string {
	if v.Expression {
		return v.Name + "=~" + withoutGroup(v.Value)
	}
	return v.Name + "=" + v.Value
}

// withoutGroup removes the group that encloses an expression.
func withoutGroup(expression string) string {
	return strings.TrimSuffix(strings.TrimPrefix(expression, "(?:"), ")")
}
