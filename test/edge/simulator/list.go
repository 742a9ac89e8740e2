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

// listTunnels returns one page of the tunnels that match the query. They include deleted
// tunnels unless the query excludes them.
func (s *Server) listTunnels(r *http.Request) response {
	query := r.URL.Query()
	page, pageErr := parseNumber(query, "page", 1, maxPage)
	perPage, perPageErr := parseNumber(query, "per_page", defaultPerPage, maxPerPage)
	if err := cmp.Or(checkFilters(query), pageErr, perPageErr); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	views := []tunnelView{}
	total := 0
	s.mu.Lock()
	for _, t := range s.tunnels {
		if t.account != r.PathValue("account") || !t.matchesFilters(query) {
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

// checkFilters rejects a filter that the simulator does not support: if it
// ignored the filter, the result would contain too many tunnels.
func checkFilters(query url.Values) error {
	for name := range query {
		if filters[name] == nil && name != "page" && name != "per_page" {
			return fmt.Errorf("the simulator does not support the filter %q", name)
		}
	}
	return nil
}

func (t *tunnel) matchesFilters(query url.Values) bool {
	for name, filter := range filters {
		if query.Has(name) && !filter(t, query.Get(name)) {
			return false
		}
	}
	return true
}

// parseNumber returns the integer parameter with that name, from 1 to maximum. It returns
// fallback if the query does not contain the parameter.
func parseNumber(query url.Values, name string, fallback, maximum int) (int, error) {
	value := cmp.Or(query.Get(name), strconv.Itoa(fallback))
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maximum {
		return 0, fmt.Errorf("%s=%q is not a number from 1 to %d", name, value, maximum)
	}
	return n, nil
}
