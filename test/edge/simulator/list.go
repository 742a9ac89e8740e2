package simulator

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	defaultPerPage = 20
	maxPerPage     = 1000
	maxPage        = 1 << 20
)

// listTunnels answers one page of the tunnels that the query selects, the
// deleted ones too unless it says otherwise.
func (s *Server) listTunnels(r *http.Request) answer {
	query := r.URL.Query()
	page, pageErr := number(query, "page", 1, maxPage)
	perPage, perPageErr := number(query, "per_page", defaultPerPage, maxPerPage)
	if err := cmp.Or(checkFilters(query), pageErr, perPageErr); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	views := []tunnelView{}
	total := 0
	s.mu.Lock()
	for _, t := range s.tunnels {
		if t.account != r.PathValue("account") || !t.selected(query) {
			continue
		}
		if total/perPage == page-1 {
			views = append(views, t.view())
		}
		total++
	}
	s.mu.Unlock()
	result := success(views)
	result.envelope.ResultInfo = &resultInfo{Page: page, PerPage: perPage, Count: len(views), TotalCount: total}
	return result
}

// filters are the query parameters that select tunnels.
var filters = map[string]func(t *tunnel, value string) bool{
	"name":           func(t *tunnel, value string) bool { return t.name == value },
	"uuid":           func(t *tunnel, value string) bool { return t.id == value },
	"status":         func(t *tunnel, value string) bool { return t.status() == value },
	"is_deleted":     func(t *tunnel, value string) bool { return strconv.FormatBool(t.deleted()) == value },
	"include_prefix": func(t *tunnel, value string) bool { return strings.HasPrefix(t.name, value) },
	"exclude_prefix": func(t *tunnel, value string) bool { return !strings.HasPrefix(t.name, value) },
}

// checkFilters refuses a filter that the simulator does not know: ignoring it
// would answer with more than was asked for.
func checkFilters(query url.Values) error {
	for name := range query {
		if filters[name] == nil && name != "page" && name != "per_page" {
			return fmt.Errorf("the simulator does not know the filter %q", name)
		}
	}
	return nil
}

func (t *tunnel) selected(query url.Values) bool {
	for name, filter := range filters {
		if query.Has(name) && !filter(t, query.Get(name)) {
			return false
		}
	}
	return true
}

// number returns a whole number from 1 to maximum, or the fallback when the
// query does not have it.
func number(query url.Values, name string, fallback, maximum int) (int, error) {
	value := cmp.Or(query.Get(name), strconv.Itoa(fallback))
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maximum {
		return 0, fmt.Errorf("%s=%q is not a number from 1 to %d", name, value, maximum)
	}
	return n, nil
}
