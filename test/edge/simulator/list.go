package simulator

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const maxPage = 1 << 20

// listTunnels returns one page of the tunnels that match the query. They include deleted
// tunnels unless the query excludes them.
func (s *Server) listTunnels(r *http.Request) response {
	query := r.URL.Query()
	if err := checkParameters(query, tunnelFilters, "page", "per_page"); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	views := []tunnelView{}
	s.mu.Lock()
	for _, t := range s.tunnels {
		if t.account == r.PathValue("account") && matchesAll(query, tunnelFilters, t) {
			views = append(views, t.view())
		}
	}
	s.mu.Unlock()
	return page(query, views, 20, 1000)
}

// tunnelFilters are the query parameters that select tunnels.
var tunnelFilters = map[string]func(t *tunnel, value string) bool{
	"name":           func(t *tunnel, value string) bool { return t.name == value },
	"uuid":           func(t *tunnel, value string) bool { return t.id == value },
	"status":         func(t *tunnel, value string) bool { return t.status() == value },
	"is_deleted":     func(t *tunnel, value string) bool { return strconv.FormatBool(t.deleted()) == value },
	"include_prefix": func(t *tunnel, value string) bool { return strings.HasPrefix(t.name, value) },
	"exclude_prefix": func(t *tunnel, value string) bool { return !strings.HasPrefix(t.name, value) },
}

// checkParameters rejects a query parameter that is neither a filter nor one of the others:
// if the simulator ignored a filter, the result would contain too many items.
func checkParameters[T any](query url.Values, filters map[string]func(T, string) bool, others ...string) error {
	for name := range query {
		if filters[name] == nil && !slices.Contains(others, name) {
			return fmt.Errorf("the simulator does not support the filter %q", name)
		}
	}
	return nil
}

// matchesAll reports whether the item matches all filters in the query.
func matchesAll[T any](query url.Values, filters map[string]func(T, string) bool, item T) bool {
	for name, filter := range filters {
		if query.Has(name) && !filter(item, query.Get(name)) {
			return false
		}
	}
	return true
}

// page returns the page of the items that the query asks for.
func page[T any](query url.Values, items []T, defaultPerPage, maxPerPage int) response {
	number, numberErr := parseNumber(query, "page", 1, maxPage)
	perPage, perPageErr := parseNumber(query, "per_page", defaultPerPage, maxPerPage)
	if err := cmp.Or(numberErr, perPageErr); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	total := len(items)
	start := min((number-1)*perPage, total)
	items = items[start:min(start+perPage, total)]
	result := success(append([]T{}, items...)) // an empty list is [], not null
	result.envelope.ResultInfo = &resultInfo{
		Page: number, PerPage: perPage, Count: len(items), TotalCount: total, TotalPages: (total + perPage - 1) / perPage,
	}
	return result
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
