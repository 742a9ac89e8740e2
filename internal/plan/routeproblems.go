package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// writeRouteProblems prints each problem once, with all routes that have it.
func (g *Gateway) writeRouteProblems(out io.Writer, routes []*gateway.Route, style Style) {
	var lines problemLines
	for _, route := range routes {
		for _, problem := range g.routeProblems(route) {
			lines.add(ownerOf(route).String(), problem)
		}
	}
	lines.write(out, style)
}

// routeProblems returns a route's problems with suggestions, each with all parents that
// have it. The texts follow the name of the route.
func (g *Gateway) routeProblems(route *gateway.Route) []string {
	var all []string
	for _, problem := range g.parentProblems(route) {
		all = append(all, fmt.Sprintf(" on %s: %s", strings.Join(problem.parents, ", "), problem.text))
	}
	for _, text := range droppedRules(route) {
		all = append(all, ": "+text)
	}
	if p := route.Unresolved; p != nil {
		all = append(all, fmt.Sprintf(": %s: %s", p.Reason, withHints(p.Message, g.services.ofRoute(route))))
	}
	return all
}

// droppedRules describes the dropped rules of a route, unless the problem with a parent
// does.
func droppedRules(route *gateway.Route) []string {
	if slices.ContainsFunc(route.Parents, namesDroppedRules) {
		return nil
	}
	var texts []string
	for _, parent := range route.Parents {
		for _, dropped := range parent.Dropped {
			if text := gateway.DescribeDropped(dropped); !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// namesDroppedRules reports whether the parent rejects the route because no rule is
// served as written. The problem then names the rules.
func namesDroppedRules(p gateway.Parent) bool {
	return len(p.Listeners) > 0 && p.Rejected != nil && p.Rejected.Reason == conditions.ReasonUnsupportedValue
}

// parentProblem is a route's problem on some parents.
type parentProblem struct {
	text    string
	parents []string
}

// parentProblems returns a route's problems on its parents, in the order of the parents
// and without repetition.
func (g *Gateway) parentProblems(route *gateway.Route) []parentProblem {
	var problems []parentProblem
	for _, parent := range route.Parents {
		for _, text := range g.describeParentProblems(route, &parent) {
			i := slices.IndexFunc(problems, func(p parentProblem) bool { return p.text == text })
			if i < 0 {
				i, problems = len(problems), append(problems, parentProblem{text: text})
			}
			if owner := parent.Owner.String(); !slices.Contains(problems[i].parents, owner) {
				problems[i].parents = append(problems[i].parents, owner)
			}
		}
	}
	return problems
}

// describeParentProblems describes a route's problems on one parent.
func (g *Gateway) describeParentProblems(route *gateway.Route, parent *gateway.Parent) []string {
	var texts []string
	if g.hasNotAllowedSet(parent.Owner) {
		texts = append(texts, fmt.Sprintf("%s: %s is not allowed.", parent.Rejected.Reason, parent.Owner))
	} else if parent.Rejected != nil {
		texts = append(texts, fmt.Sprintf("%s: %s", parent.Rejected.Reason, withHints(parent.Rejected.Message, g.hostnameHints(route, parent))))
	} else if leftOut := route.DescribeLeftOut(parent); leftOut != "" {
		texts = append(texts, fmt.Sprintf("not under every hostname: %s.", leftOut))
	}
	if loops := route.DescribeRedirectLoops(parent); loops != "" {
		texts = append(texts, fmt.Sprintf("%s: %s", conditions.ReasonRedirectLoop, loops))
	}
	return texts
}

// hasNotAllowedSet reports whether the owner is a ListenerSet that the Gateway does not
// allow. The line about the ListenerSet describes the cause.
func (g *Gateway) hasNotAllowedSet(owner gateway.Owner) bool {
	return slices.ContainsFunc(g.result.Sets, func(set *gateway.Set) bool { return set.Owner == owner && set.NotAllowed != nil })
}

// RouteWarnings returns the warnings about routes that no condition reports: hostnames
// that other listeners claim or that no listener has, and rules that no request reaches.
func (p *Plan) RouteWarnings(style Style) []string {
	var warnings []string
	for i := range p.Gateways {
		warnings = append(warnings, p.Gateways[i].routeWarnings(style)...)
	}
	return warnings
}

func (g *Gateway) routeWarnings(style Style) []string {
	var warnings []string
	for i := range g.result.ClaimedHostnames {
		claimed := &g.result.ClaimedHostnames[i]
		warnings = append(warnings, fmt.Sprintf("%s: %s: %s", ownerOf(claimed.Route), conditions.EventHostnameClaimed, claimed.Message()))
	}
	for _, unserved := range g.unservedHostnames {
		warnings = append(warnings, unserved.String())
	}
	for _, unreachable := range unreachableRules(g.result) {
		before := make([]string, len(unreachable.Before))
		for i, rule := range unreachable.Before {
			before[i] = rule.Describe()
		}
		verb := "comes"
		if len(before) > 1 {
			verb = "come"
		}
		warnings = append(warnings, fmt.Sprintf("%s: No request reaches this rule, because %s %s before it. Change its matches or hostnames, or delete one of the rules.",
			unreachable.Rule.Describe(), style.abbreviate(before), verb))
	}
	return warnings
}
