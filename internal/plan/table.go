package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
)

// WriteTable prints the plan as text.
func (p *Plan) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	if len(p.Gateways) == 0 && len(p.terminating) == 0 {
		printf(out, "%s\n", p.noGatewayMessage())
	}
	for i := range p.Gateways {
		if i > 0 {
			fmt.Fprintln(out)
		}
		p.Gateways[i].write(out)
	}
	writeTerminating(out, p.terminating)
	if remark := p.Unattached(); remark != "" {
		printf(out, "%s\n", remark)
	}
	return out.Flush()
}

func (g *Gateway) write(out *tabwriter.Writer) {
	notAllowed := 0
	for _, set := range g.result.Sets {
		if set.NotAllowed != nil {
			notAllowed++
		}
	}
	attached := int(g.AttachedListenerSets)
	g.writeRemark(out, fmt.Sprintf("%d %s attached, %d not allowed", attached, plural(gateway.KindListenerSet, attached), notAllowed))
	if message := g.outcome.Message; message != "" {
		g.writeRemark(out, message)
	}
	if problem := g.result.Rejected; problem != nil {
		g.writeRemark(out, notAccepted(problem.Reason, problem.Message))
	}
	g.writeListeners(out)
	if g.Config != nil {
		g.writeRules(out)
	}
	g.writeLimits(out)
	g.writeProblems(out)
}

func (g *Gateway) writeListeners(out *tabwriter.Writer) {
	fmt.Fprintln(out, "HOSTNAME\tPORT\tOWNER\tLISTENER\tSTATE\tROUTES")
	for _, l := range g.Listeners {
		printf(out, "%s\t%d %s\t%s\t%s\t%s\t%d\n", orStar(l.Hostname), l.Port, l.Protocol,
			l.Owner, l.Name, l.state(), l.AttachedRoutes)
	}
	flush(out)
}

// state returns the reason of a problem, or "served".
func (l *Listener) state() string { return cmp.Or(l.Reason, "served") }

// writeRules prints the rules. It prints the column ACCESS, with the team whose token a
// rule requires, only if a rule requires one.
func (g *Gateway) writeRules(out *tabwriter.Writer) {
	rules := ingress.Rules(g.result.Table)
	protected := slices.ContainsFunc(rules, func(r ingress.Rule) bool { return teamOf(&r) != "" })
	if protected {
		fmt.Fprintln(out, "  #\tHOSTNAME\tPATH\tSERVICE\tACCESS\tFROM")
	} else {
		fmt.Fprintln(out, "  #\tHOSTNAME\tPATH\tSERVICE\tFROM")
	}
	for i := range rules {
		rule := &rules[i]
		printf(out, "  %d\t%s\t%s\t%s\t", i, orStar(rule.Hostname), orStar(rule.Path), rule.Service)
		if protected {
			printf(out, "%s\t", teamOf(rule))
		}
		printf(out, "%s\n", sourceOf(rule))
	}
	flush(out)
}

// sourceOf describes where a rule comes from.
func sourceOf(rule *ingress.Rule) string {
	switch {
	case rule.Entry != nil:
		return fmt.Sprintf("%s rule %d", rule.Entry.Source.Route.Describe(), rule.Entry.Source.Rule)
	case rule.Hostname != "":
		return "catch-all of the hostname"
	default:
		return "catch-all"
	}
}

// teamOf returns the team whose token of Cloudflare Access the rule requires, or "".
func teamOf(rule *ingress.Rule) string {
	if rule.OriginRequest == nil || rule.OriginRequest.Access == nil {
		return ""
	}
	return rule.OriginRequest.Access.TeamName
}

// WriteProblems prints the problems at the end of each Gateway's table.
func (p *Plan) WriteProblems(w io.Writer) {
	for i := range p.Gateways {
		p.Gateways[i].writeProblems(w)
	}
}

// writeProblems prints the problems of hostnames, ListenerSets, listeners and routes.
func (g *Gateway) writeProblems(out io.Writer) {
	if g.sharedHostnames != "" {
		g.writeRemark(out, g.sharedHostnames)
	}
	for _, warning := range g.Warnings {
		g.writeRemark(out, warning.Reason+": "+warning.Message)
	}
	for _, set := range g.result.Sets {
		if set.NotAllowed != nil {
			printf(out, "%s: %s: %s\n", set.Owner, set.NotAllowed.Reason, set.NotAllowed.Message)
		}
	}
	for _, l := range g.result.Listeners {
		for _, problem := range []*gateway.Problem{l.Rejected, l.Unresolved} {
			if problem != nil && problem.Reason != string(gatewayv1.ListenerEntryReasonInvalid) {
				printf(out, "%s listener %s: %s: %s\n", l.Owner, l.Spec.Name, problem.Reason, problem.Message)
			}
		}
	}
	for _, route := range g.result.Routes {
		writeRouteProblems(out, route)
	}
	for _, warning := range g.result.HostnameWarnings() {
		printf(out, "%s: %s\n", warning.Object, warning.Message)
	}
}

func writeRouteProblems(out io.Writer, route *gateway.Route) {
	name := fmt.Sprintf("%s %s", route.Kind, route.NamespacedName)
	for _, parent := range route.Parents {
		if parent.Rejected != nil {
			printf(out, "%s at %s: %s: %s\n", name, parent.Owner, parent.Rejected.Reason, parent.Rejected.Message)
		} else if leftOut := route.DescribeLeftOut(&parent); leftOut != "" {
			printf(out, "%s at %s: not under every hostname: %s.\n", name, parent.Owner, leftOut)
		}
	}
	for _, dropped := range route.Dropped {
		printf(out, "%s: %s.\n", name, dropped)
	}
	if route.Unresolved != nil {
		printf(out, "%s: %s: %s\n", name, route.Unresolved.Reason, route.Unresolved.Message)
	}
}

// flush ends a table, so that the column widths of the next table are independent.
func flush(out *tabwriter.Writer) { _ = out.Flush() } // the last Flush reports an error again

// orStar returns s, or "*" for the empty string.
func orStar(s string) string {
	if s == "" {
		return "*"
	}
	return s
}
