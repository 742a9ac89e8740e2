package simulator

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const (
	defaultRecordsPerPage = 100
	maxRecordsPerPage     = 5_000_000
)

// listRecords returns one page of the records that match the query: all of its filters, or
// any of them with match=any.
func (s *Server) listRecords(r *http.Request, z zones.Zone) response {
	query := r.URL.Query()
	if err := checkParameters(query, recordFilters, "page", "per_page", "order", "direction", "match"); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	matches := matchesAll[zones.Record]
	if query.Get("match") == "any" {
		matches = matchesAny[zones.Record]
	}
	found := slices.DeleteFunc(s.options.Zones.Records(z.ID), func(r zones.Record) bool {
		return !matches(query, recordFilters, r)
	})
	if err := sortBy(found, query, recordOrders); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	return page(query, found, defaultRecordsPerPage, maxRecordsPerPage)
}

// recordFilters are the query parameters that select records. A parameter without an
// operator, such as name, is exact. The simulator does not support the filters by tags, by
// delegations and by "search", whose "exact behavior is intentionally left unspecified".
var recordFilters = textFilters(map[string]func(zones.Record) string{
	"name":    func(r zones.Record) string { return r.Name },
	"content": func(r zones.Record) string { return r.Content },
	"comment": func(r zones.Record) string { return r.Comment },
}, map[string]func(r zones.Record, value string) bool{
	"type":            func(r zones.Record, value string) bool { return r.Type == value },
	"proxied":         func(r zones.Record, value string) bool { return strconv.FormatBool(r.Proxied) == value },
	"comment.present": func(r zones.Record, _ string) bool { return r.Comment != "" },
	"comment.absent":  func(r zones.Record, _ string) bool { return r.Comment == "" },
})

// textFilters adds the filters of text fields to the filters. They ignore case.
func textFilters(
	fields map[string]func(zones.Record) string, filters map[string]func(zones.Record, string) bool,
) map[string]func(zones.Record, string) bool {
	for name, field := range fields {
		for operator, matches := range map[string]func(s, operand string) bool{
			"": equals, ".exact": equals,
			".contains": strings.Contains, ".startswith": strings.HasPrefix, ".endswith": strings.HasSuffix,
		} {
			filters[name+operator] = func(r zones.Record, value string) bool {
				return matches(strings.ToLower(field(r)), strings.ToLower(value))
			}
		}
	}
	return filters
}

func equals(a, b string) bool { return a == b }

// matchesAny reports whether the query has no filters, or the item matches one of them.
func matchesAny[T any](query url.Values, filters map[string]func(T, string) bool, item T) bool {
	filtered := false
	for name, filter := range filters {
		if query.Has(name) {
			filtered = true
			if filter(item, query.Get(name)) {
				return true
			}
		}
	}
	return !filtered
}

// recordOrders compare records by the value of the query parameter "order". The API's
// documentation names "type" as the default.
var recordOrders = map[string]func(a, b zones.Record) int{
	"":        func(a, b zones.Record) int { return strings.Compare(a.Type, b.Type) },
	"type":    func(a, b zones.Record) int { return strings.Compare(a.Type, b.Type) },
	"name":    func(a, b zones.Record) int { return strings.Compare(a.Name, b.Name) },
	"content": func(a, b zones.Record) int { return strings.Compare(a.Content, b.Content) },
	"ttl":     func(a, b zones.Record) int { return cmp.Compare(a.TTL, b.TTL) },
	"proxied": func(a, b zones.Record) int {
		return strings.Compare(strconv.FormatBool(a.Proxied), strconv.FormatBool(b.Proxied))
	},
}

// sortBy sorts the items as the query parameters "order" and "direction" say.
func sortBy[T any](items []T, query url.Values, orders map[string]func(a, b T) int) error {
	compare := orders[query.Get("order")]
	if compare == nil {
		return fmt.Errorf("order=%q is invalid", query.Get("order"))
	}
	direction := query.Get("direction")
	if !slices.Contains([]string{"", "asc", "desc"}, direction) {
		return fmt.Errorf("direction=%q is invalid", direction)
	}
	slices.SortStableFunc(items, func(a, b T) int {
		if direction == "desc" {
			return compare(b, a)
		}
		return compare(a, b)
	})
	return nil
}
