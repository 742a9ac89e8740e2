package routing

import (
	"fmt"
	"slices"
	"strings"
)

// Mismatch describes why the match does not apply to the request, as a clause: that of the
// path, or else every other part that does not match. It is empty if the match applies. Like
// [Match.Matches], it ignores the host.
func (m *Match) Mismatch(r Request) string {
	if !m.Path.Matches(r.Path) {
		return m.Path.mismatch(r.Path)
	}
	var parts []string
	if m.Method != "" && m.Method != r.method() {
		parts = append(parts, fmt.Sprintf("the method is %s, not %s", r.method(), m.Method))
	}
	for _, h := range m.Headers {
		if text := h.mismatch("header", r.header(h.Name)); text != "" {
			parts = append(parts, text)
		}
	}
	for _, q := range m.Query {
		var values []string // only the first value counts
		if value, ok := r.parameter(q.Name); ok {
			values = []string{value}
		}
		if text := q.mismatch("query parameter", values); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", and ")
}

func (p Path) mismatch(path string) string {
	switch p.Kind {
	case PathExact:
		return fmt.Sprintf("the path is %s, not %s", path, p.Value)
	case PathExpression:
		return fmt.Sprintf("the expression %s does not match the whole path %s", withoutGroup(p.Value), path)
	default:
		return fmt.Sprintf("the path prefix %s does not cover %s", p.Value, path)
	}
}

// mismatch describes why none of the values matches, or returns "" if one does. kind is what
// has the values.
func (v ValueMatch) mismatch(kind string, values []string) string {
	if slices.ContainsFunc(values, func(value string) bool { return v.matches(value, matchesWhole) }) {
		return ""
	}
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = fmt.Sprintf("%q", value)
	}
	switch actual := strings.Join(quoted, " and "); {
	case len(values) == 0:
		return fmt.Sprintf("the %s %s is missing", kind, v.Name)
	case v.Expression:
		return fmt.Sprintf("the expression %s does not match the whole value %s of the %s %s", withoutGroup(v.Value), actual, kind, v.Name)
	default:
		return fmt.Sprintf("the %s %s is %s, not %q", kind, v.Name, actual, v.Value)
	}
}
