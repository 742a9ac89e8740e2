package status

import (
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Last is an owner's last report, with which the next one is compared: the Writer reads only
// objects that have changed since then, or about which the report has changed. The zero value
// is one before the first report. Only one call may use it at a time.
type Last struct {
	report *gateway.Report // nil if every object is read
	// changed are the objects that have changed since the report.
	changed map[gateway.Owner]bool
	// routes are the routes' positions in a report. Later reports can have others.
	routes map[objectName]int
}

// Changed records that the objects have changed, or that any may have if changed is nil.
func (l *Last) Changed(changed map[gateway.Owner]bool) {
	switch {
	case changed == nil:
		*l = Last{}
	case len(l.changed) == 0:
		l.changed = changed
	default:
		maps.Copy(l.changed, changed)
	}
}

// take returns what a report with the owners is compared with, and forgets it until [Last.set], so
// that a panic or a canceled Write loses it. failing are the objects whose statuses could not be
// written; the comparison takes over the map. l may be nil.
func (l *Last) take(owners map[gateway.Owner]bool, failing map[objectName]bool) comparison {
	if l == nil {
		return comparison{}
	}
	c := comparison{last: l.report, attention: failing, routes: &l.routes}
	for owner := range l.changed {
		c.attention[objectName{owner.Kind, owner.NamespacedName}] = true
	}
	if c.last != nil && !maps.Equal(c.last.Owners, owners) {
		c.last = nil
	}
	*l = Last{routes: l.routes}
	return c
}

// set sets the report, whose statuses have all been attempted. l may be nil.
func (l *Last) set(report gateway.Report) {
	if l != nil {
		l.report = &report
	}
}

// comparison compares a report with the last one.
type comparison struct {
	last *gateway.Report // nil if every object is read
	// attention has the objects that have changed, or whose statuses could not be written.
	attention map[objectName]bool
	// routes are those of the [Last], or nil without one.
	routes *map[objectName]int
}

// needsAttention returns a function that reports whether attention has the object. A few names
// are compared faster than they are looked up.
func (c comparison) needsAttention() func(objectName) bool {
	const few = 4
	if len(c.attention) > few {
		return func(name objectName) bool { return c.attention[name] }
	}
	names := slices.Collect(maps.Keys(c.attention))
	return func(name objectName) bool { return slices.Contains(names, name) }
}

// differing returns the entries of the report that differ from the entry for the same object
// in the last report, or whose object needs attention. Reports have their entries in the same
// order, apart from new and removed ones.
func differing[T any](c comparison, entries []T, of func(*gateway.Report) []T, object func(T) objectName, isSame func(a, b T) bool) []T {
	if c.last == nil {
		return entries
	}
	var found []T
	last, needsAttention := of(c.last), c.needsAttention()
	positions := positions[T]{entries: last, object: object}
	for _, entry := range entries {
		name := object(entry)
		i := positions.find(name)
		if i < 0 || !isSame(last[i], entry) || needsAttention(name) {
			found = append(found, entry)
		}
	}
	return found
}

// differingRoutes is [differing] for routes. In most reports, only a few of thousands have changed, and it
// does not read the others' names.
func (c comparison) differingRoutes(routes []*gateway.RouteStatus) []*gateway.RouteStatus {
	const few = 32
	found, isInPlace := c.changedInPlace(routes)
	if !isInPlace || len(c.attention) > few {
		return differing(c, routes, func(r *gateway.Report) []*gateway.RouteStatus { return r.Routes }, nameOfRoute, isSameRoute)
	}
	isIndexed := false
	for name := range c.attention {
		if name.kind != gateway.KindHTTPRoute && name.kind != gateway.KindGRPCRoute {
			continue
		}
		i, ok := c.position(name, routes)
		if !ok && !isIndexed {
			c.index(routes)
			isIndexed = true
			i, ok = c.position(name, routes)
		}
		if ok && !slices.Contains(found, routes[i]) {
			found = append(found, routes[i])
		}
	}
	return found
}

// changedInPlace returns the routes whose statuses have changed. It returns false if the report has other
// routes, or has them in another order.
func (c comparison) changedInPlace(routes []*gateway.RouteStatus) (changed []*gateway.RouteStatus, ok bool) {
	if c.last == nil || len(c.last.Routes) != len(routes) {
		return nil, false
	}
	for i, route := range routes {
		if before := c.last.Routes[i]; route != before {
			if nameOfRoute(route) != nameOfRoute(before) {
				return nil, false
			}
			changed = append(changed, route)
		}
	}
	return changed, true
}

// position returns a route's position. It returns false if it is not known.
func (c comparison) position(name objectName, routes []*gateway.RouteStatus) (int, bool) {
	i, ok := (*c.routes)[name]
	return i, ok && i < len(routes) && nameOfRoute(routes[i]) == name
}

// index collects the routes' positions.
func (c comparison) index(routes []*gateway.RouteStatus) {
	*c.routes = make(map[objectName]int, len(routes))
	for i, route := range routes {
		(*c.routes)[nameOfRoute(route)] = i
	}
}

// positions finds objects in a list that are mostly looked up in its order.
type positions[T any] struct {
	entries []T
	object  func(T) objectName
	next    int
	byName  map[objectName]int // nil until an object is not the next one
}

// find returns an object's position, or -1.
func (p *positions[T]) find(name objectName) int {
	if p.next < len(p.entries) && p.object(p.entries[p.next]) == name {
		p.next++
		return p.next - 1
	}
	if p.byName == nil {
		p.byName = make(map[objectName]int, len(p.entries))
		for i, entry := range p.entries {
			p.byName[p.object(entry)] = i
		}
	}
	i, ok := p.byName[name]
	if !ok {
		return -1
	}
	p.next = i + 1
	return i
}

// isSameList reports whether both are the same list in memory, or empty.
func isSameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func isSameRoute(a, b *gateway.RouteStatus) bool { return a == b }

func isSameSet(a, b gateway.ListenerSetStatus) bool {
	return isSameList(a.Status.Conditions, b.Status.Conditions) && isSameList(a.Status.Listeners, b.Status.Listeners)
}

func isSamePolicy(a, b gateway.PolicyStatus) bool { return a.Ancestor == b.Ancestor }

func isSameAccessPolicy(a, b gateway.AccessPolicyStatus) bool {
	return isSameList(a.Ancestors, b.Ancestors)
}
