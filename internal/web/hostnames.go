package web

import (
	"net/url"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// hostnamesContent is what templates/hostnames.html shows.
type hostnamesContent struct {
	Filter  filter
	Choices choices
	Rows    []*plan.HostnameRow
	// All counts the hostnames without a filter; Part.Total counts the selected ones.
	All  int
	Part part
	// ShowsGateway reports whether the rows belong to several Gateways.
	ShowsGateway bool
}

// Suggested are the namespaces that the page suggests: all, unless there are many.
func (c hostnamesContent) Suggested() []string {
	const limit = 200
	if len(c.Choices.Namespaces) > limit {
		return nil
	}
	return c.Choices.Namespaces
}

// filter selects rows in the hostname table. An empty field selects all rows.
type filter struct {
	Gateway string // "namespace/name"
	// Query has words; each must be in the hostname, an owner or a route.
	Query string
	// State is a listener's state, and Access the first word in what the hostname requires.
	State, Access string
	// Namespace is where a listener's owner or a route is.
	Namespace string
}

func newFilter(query url.Values) filter {
	return filter{
		Gateway: query.Get("gateway"), Query: query.Get("q"), State: query.Get("state"), Access: query.Get("access"), Namespace: query.Get("namespace"),
	}
}

// hostnames shows all Gateways' hostname tables, or the rows that the filter selects.
func hostnames(v *visit) (any, error) {
	all := v.Hostnames()
	c := hostnamesContent{Filter: newFilter(v.URL.Query()), Choices: v.tables.choices, All: len(all.Rows)}
	rows := c.Filter.selectRows(all)
	c.Part = v.part(len(rows))
	c.Rows, c.ShowsGateway = rows[:c.Part.Shown], c.Filter.Gateway == "" && len(c.Choices.Gateways) > 1
	return c, nil
}

// selectRows returns the rows that the filter selects, in their order.
func (f filter) selectRows(h *plan.Hostnames) []*plan.HostnameRow {
	words := strings.Fields(strings.ToLower(f.Query))
	var rows []*plan.HostnameRow
	for i := range h.Rows {
		if row := &h.Rows[i]; f.selects(row) && mentionsAll(row, words) {
			rows = append(rows, row)
		}
	}
	return rows
}

func (f filter) selects(row *plan.HostnameRow) bool {
	switch {
	case f.Gateway != "" && row.Gateway != f.Gateway, f.Access != "" && row.AccessState() != f.Access:
		return false
	case f.State != "" && !row.HasState(f.State):
		return false
	default:
		return f.Namespace == "" || row.Concerns(f.Namespace)
	}
}

func mentionsAll(row *plan.HostnameRow, words []string) bool {
	for _, word := range words {
		if !row.Mentions(word) {
			return false
		}
	}
	return true
}
