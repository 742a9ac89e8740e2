package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// group has the rules that requests can reach whose most specific hostname is hostname,
// in cloudflared's order.
type group struct {
	hostname string
	entries  []*groupEntry
}

// groupEntry is a rule in a group.
type groupEntry struct {
	rule   *Rule
	answer answer
	match  match
}

// answer says how a rule answers in a group.
type answer int8

const (
	// answerBackend forwards the request.
	answerBackend answer = iota
	// answerClosed is the status 500, which a rule without a backend returns.
	answerClosed
	// answerNotFound is the status 404, which requests get that no rule matches.
	answerNotFound
)

// match is a rule's path match in a route. The zero value matches every path.
type match struct {
	kind  routing.PathKind
	value string
}

// every reports whether every path matches.
func (m match) every() bool { return m == match{} }

// name returns the hostname for messages.
func (g *group) name() string {
	if g.hostname == "" {
		return "every other hostname"
	}
	return g.hostname
}

// served returns the entries with a backend.
func (g *group) served() []*groupEntry {
	var served []*groupEntry
	for _, e := range g.entries {
		if e.answer == answerBackend {
			served = append(served, e)
		}
	}
	return served
}

// newGroup returns a hostname's group.
func (c *converter) newGroup(hostname string) *group {
	g := &group{hostname: hostname}
	for i := range c.destinations {
		d := &c.destinations[i]
		if !d.reachable || !routing.Covers(d.hostname, hostname) || g.shadows(c, d) {
			continue
		}
		g.entries = append(g.entries, &groupEntry{rule: &c.input.Rules[i], answer: d.answer()})
		if d.path.every {
			break
		}
	}
	for n := len(g.entries); n > 0 && g.entries[n-1].answer == answerNotFound; n-- {
		g.entries = g.entries[:n-1]
	}
	return g
}

// shadows reports whether an earlier rule in the group surely answers all requests for a
// destination.
func (g *group) shadows(c *converter, d *destination) bool {
	return slices.ContainsFunc(g.entries, func(e *groupEntry) bool {
		compiled, earlier := c.destinations[e.rule.Index].compiled, c.destinations[e.rule.Index].path
		switch {
		case earlier.expression == d.path.expression:
			return true
		case d.path.exact != "":
			return compiled.MatchString(d.path.exact)
		case d.path.prefix != "" && earlier.prefix != "":
			return (routing.Path{Value: earlier.prefix}).Matches(d.path.prefix)
		}
		return false
	})
}

func (d *destination) answer() answer {
	switch {
	case d.backend != nil:
		return answerBackend
	case d.status == 404:
		return answerNotFound
	default:
		return answerClosed
	}
}

// serve returns the groups that get a listener. A group without a backend gets none,
// unless its requests would reach a wider group.
func (c *converter) serve(groups []*group) []*group {
	var served []*group
	for _, g := range groups {
		isCovered := slices.ContainsFunc(served, func(wide *group) bool { return routing.Covers(wide.hostname, g.hostname) })
		c.setMatches(g)
		if len(g.served()) > 0 || isCovered {
			c.closeStatuses(g)
			served = append(served, g)
			continue
		}
		c.noteOmitted(g)
	}
	slices.Reverse(served)
	return served
}

// noteOmitted notes that a hostname gets no listener.
func (c *converter) noteOmitted(g *group) {
	for _, e := range g.entries {
		if d := c.destinations[e.rule.Index]; d.hostname == g.hostname {
			c.note(NoteDifferent, e.rule, "", fmt.Sprintf("%s gets no listener, because none of its rules has a Service; the new tunnel returns 404", g.name()),
				"leave its DNS record on the old tunnel")
		}
	}
}

// closeStatuses records the hostnames for which rules without a backend return 500.
func (c *converter) closeStatuses(g *group) {
	for _, e := range g.entries {
		if d := c.destinations[e.rule.Index]; e.answer != answerBackend && d.status != 500 {
			c.closed[e.rule.Index] = append(c.closed[e.rule.Index], g.name())
		}
	}
}

// noteClosed notes the rules that return 500.
func (c *converter) noteClosed() {
	for i := range c.input.Rules {
		names := c.closed[i]
		if len(names) == 0 {
			continue
		}
		slices.Reverse(names) // the most specific hostname first
		text, advice := fmt.Sprintf("requests for %s get 500", strings.Join(names, ", ")), ""
		if status := c.destinations[i].status; status != 0 {
			text += ", because a route cannot return " + strconv.Itoa(status)
			advice = "route to a Service that returns the status"
		}
		c.note(NoteDifferent, &c.input.Rules[i], "service", text, advice)
	}
}

// setMatches sets the path matches so that routes have the rules' order.
// Exact matches come first, which is right because no earlier rule matches their path.
// Expressions keep their order. Prefixes come last, so a prefix before an expression
// becomes an expression.
func (c *converter) setMatches(g *group) {
	expressionFollows := false
	for i := len(g.entries) - 1; i >= 0; i-- {
		e := g.entries[i]
		form := c.destinations[e.rule.Index].path
		switch {
		case form.every:
			e.match = match{}
		case form.exact != "":
			e.match = match{routing.PathExact, escapePath(form.exact)}
		case form.prefix != "" && !expressionFollows:
			e.match = match{routing.PathPrefix, escapePath(form.prefix)}
		case form.prefix != "":
			e.match = match{routing.PathExpression, prefixExpression(form.prefix)}
		default:
			e.match = match{routing.PathExpression, form.expression}
		}
		expressionFollows = expressionFollows || e.match.kind == routing.PathExpression
	}
	c.closeAfterLimits(g)
}

// closeAfterLimits closes a group from the first expression on that the controller does
// not accept, because its requests would reach the rules after it.
func (c *converter) closeAfterLimits(g *group) {
	for i, e := range g.entries {
		if e.match.kind != routing.PathExpression {
			continue
		}
		problem := gateway.ExpressionProblem(e.match.value)
		if len(e.match.value) > maxValueLength {
			problem = fmt.Sprintf("expression with a length of %d, the limit is %d", len(e.match.value), maxValueLength)
		}
		if problem == "" {
			continue
		}
		for _, later := range g.entries[i:] {
			c.note(NoteDifferent, later.rule, "path", fmt.Sprintf("requests for %s that reach this rule get 500, because rule %d has a %s", g.name(), e.rule.Index, problem), "simplify the expression")
		}
		e.answer, e.match = answerClosed, match{}
		g.entries = g.entries[:i+1]
		return
	}
}
