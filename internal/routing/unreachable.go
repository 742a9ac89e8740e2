package routing

import (
	"fmt"
	"slices"
	"strings"
)

// UnreachableRule is a route rule that no request can reach.
type UnreachableRule struct {
	// Rule is the rule, with match index 0.
	Rule Source
	// Before are the rules that come before it and answer its requests. Their match
	// indexes are 0.
	Before []Source
}

// Reach records which entries in a table requests can reach.
type Reach struct {
	shadowed  []UnreachableRule
	index     map[Source]int // indexes in shadowed
	reachable map[Source]bool
}

// NewReach returns a Reach without entries.
func NewReach() *Reach { return &Reach{index: map[Source]int{}, reachable: map[Source]bool{}} }

// Add records that requests can reach the entry.
func (r *Reach) Add(e *Entry) { r.reachable[e.Source.rule()] = true }

// Shadow records that the entry before answers every request that the entry matches.
func (r *Reach) Shadow(e, before *Entry) {
	rule, earlier := e.Source.rule(), before.Source.rule()
	i, ok := r.index[rule]
	if !ok {
		i, r.shadowed = len(r.shadowed), append(r.shadowed, UnreachableRule{Rule: rule})
		r.index[rule] = i
	}
	if !slices.Contains(r.shadowed[i].Before, earlier) {
		r.shadowed[i].Before = append(r.shadowed[i].Before, earlier)
	}
}

// UnreachableRules returns the rules with only shadowed entries, in entry order.
func (r *Reach) UnreachableRules() []UnreachableRule {
	return slices.DeleteFunc(r.shadowed, func(u UnreachableRule) bool { return r.reachable[u.Rule] })
}

// rule returns the source without the match.
func (s Source) rule() Source { return Source{Route: s.Route, Rule: s.Rule} }

// UnreachableRules returns the route rules that no request can reach, for data planes
// that serve the hosts: earlier entries have the same matches, or match every request for
// their hostname.
func (t *Table) UnreachableRules() []UnreachableRule {
	if t == nil {
		return nil
	}
	reach := NewReach()
	for _, h := range t.Hosts() {
		// An entry that is shadowed for its own hostname is shadowed for each narrower
		// hostname.
		isOwn := func(e *Entry) bool { return e.Hostname == h.Hostname }
		for _, e := range h.Reachable(func(e, before *Entry) {
			if isOwn(e) {
				reach.Shadow(e, before)
			}
		}) {
			if isOwn(e) {
				reach.Add(e)
			}
		}
	}
	return reach.UnreachableRules()
}

// Reachable returns the entries that requests can reach. For each other entry, it calls
// shadowed with each entry that comes before it and answers its requests.
func (h *Host) Reachable(shadowed func(e, before *Entry)) []*Entry {
	reachable, first := make([]*Entry, 0, len(h.Entries)), map[Scheme]firstEntries{SchemeHTTP: {}, SchemeHTTPS: {}}
	for _, e := range h.Entries {
		key, isReachable := e.Match.key(), false
		var before []*Entry
		for _, scheme := range []Scheme{SchemeHTTP, SchemeHTTPS} {
			if !e.Scheme.Covers(scheme) {
				continue
			}
			switch other := first[scheme].add(e, key); {
			case other == nil:
				isReachable = true
			case !slices.Contains(before, other):
				before = append(before, other)
			}
		}
		if isReachable {
			reachable = append(reachable, e)
			continue
		}
		for _, other := range before {
			shadowed(e, other)
		}
	}
	return reachable
}

// firstEntries are the first entries for one scheme, by match key.
type firstEntries map[string]*Entry

// add adds an entry, unless an earlier one answers all of its requests. It returns that
// earlier entry, or nil.
func (f firstEntries) add(e *Entry, key string) *Entry {
	if all := f[keyOfAll]; all != nil {
		return all
	}
	if f[key] == nil {
		f[key] = e
		return nil
	}
	return f[key]
}

// keyOfAll is the key for a match of every request.
var keyOfAll = new(Match).key()

// key identifies the requests that the match applies to.
func (m *Match) key() string {
	headers := make([]ValueMatch, len(m.Headers))
	for i, h := range m.Headers {
		headers[i] = ValueMatch{Name: strings.ToLower(h.Name), Value: h.Value, Expression: h.Expression}
	}
	query := slices.Clone(m.Query)
	for _, conditions := range [][]ValueMatch{headers, query} {
		slices.SortFunc(conditions, func(a, b ValueMatch) int { return strings.Compare(a.Name, b.Name) })
	}
	return fmt.Sprintf("%d %q %q %q %q", m.Path.Kind, m.Path.Value, m.Method, headers, query)
}
