package web

import (
	"strconv"
	"sync"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// tables are the hostname tables in a [Snapshot]. The first request that needs them builds
// them.
type tables struct {
	once      sync.Once
	hostnames *plan.Hostnames
	choices   choices
}

// Hostnames returns all Gateways' hostname tables.
func (s *Snapshot) Hostnames() *plan.Hostnames {
	s.build()
	return s.tables.hostnames
}

func (s *Snapshot) build() {
	s.tables.once.Do(func() {
		s.tables.hostnames = s.Plan.NewHostnames()
		s.tables.choices = newChoices(s.tables.hostnames)
	})
}

// choices are what a visitor can choose in the table's filters, each sorted.
type choices struct{ Gateways, States, Access, Namespaces []string }

func newChoices(h *plan.Hostnames) choices {
	gateways, states, access, namespaces := set{}, set{}, set{}, set{}
	for i := range h.Rows {
		row := &h.Rows[i]
		gateways[row.Gateway] = true
		for j := range row.Listeners {
			states[row.Listeners[j].State()] = true
			namespaces[row.Listeners[j].Owner.Namespace] = true
		}
		if state := row.AccessState(); state != "" {
			access[state] = true
		}
		for _, route := range row.Routes {
			namespaces[route.Namespace] = true
		}
	}
	return choices{gateways.sorted(), states.sorted(), access.sorted(), namespaces.sorted()}
}

// part is how many items in a long list a page shows.
type part struct {
	Shown, Total int
	// More is a link to the page with more items; empty if it shows everything.
	More string
}

// defaultLimit is how many rows a page shows unless its parameter limit has another number.
const defaultLimit = 100

// part returns how many items the page shows when there are total. A visitor who asks for
// more gets several times as many.
func (v *visit) part(total int) part {
	const factor = 5
	limit, err := strconv.Atoi(v.URL.Query().Get("limit"))
	if err != nil || limit < 1 {
		limit = defaultLimit
	}
	if limit >= total {
		return part{Shown: total, Total: total}
	}
	query := v.URL.Query()
	query.Set("limit", strconv.Itoa(min(limit*factor, total)))
	return part{Shown: limit, Total: total, More: v.URL.Path + "?" + query.Encode()}
}
