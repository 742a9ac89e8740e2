package plan

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// WriteTable prints the plan for people.
func (p *Plan) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	if len(p.Gateways) == 0 && len(p.ending) == 0 {
		printf(out, "%s\n", p.none())
	}
	for i := range p.Gateways {
		if i > 0 {
			fmt.Fprintln(out)
		}
		p.Gateways[i].write(out)
	}
	writeEnding(out, p.ending)
	if stray := p.Unattached(); stray != "" {
		printf(out, "%s\n", stray)
	}
	return out.Flush()
}

func (g *Gateway) write(out *tabwriter.Writer) {
	refused := 0
	for _, set := range g.result.Sets {
		if set.NotAllowed != nil {
			refused++
		}
	}
	printf(out, "Gateway %s/%s: %d ListenerSets attached, %d not allowed\n", g.Namespace, g.Name, g.AttachedListenerSets, refused)
	if message := g.outcome.Message; message != "" {
		printf(out, "Gateway %s/%s: %s\n", g.Namespace, g.Name, message)
	}
	if g.result.Rejected != nil {
		printf(out, "Not accepted, so nothing is pushed: %s: %s\n", g.result.Rejected.Reason, g.result.Rejected.Message)
	}
	g.writeListeners(out)
	if g.Config != nil {
		g.writeRules(out)
	}
	g.writeProblems(out)
}

func (g *Gateway) writeListeners(out *tabwriter.Writer) {
	fmt.Fprintln(out, "HOSTNAME\tPORT\tOWNER\tLISTENER\tSTATE\tROUTES")
	for _, l := range g.Listeners {
		printf(out, "%s\t%d %s\t%s\t%s\t%s\t%d\n", anyIfEmpty(l.Hostname), l.Port, l.Protocol,
			l.Owner, l.Name, l.state(), l.AttachedRoutes)
	}
	flush(out)
}

func (l *Listener) state() string { return cmp.Or(l.Reason, "served") }

func (g *Gateway) writeRules(out *tabwriter.Writer) {
	fmt.Fprintln(out, "  #\tHOSTNAME\tPATH\tSERVICE\tFROM")
	for i, rule := range g.result.Rules {
		from := "nothing else matches"
		if rule.Route != nil {
			from = fmt.Sprintf("%s %s rule %d", rule.Route.Kind, rule.Route.NamespacedName, rule.RuleIndex)
		} else if rule.Hostname != "" {
			from = "end of the hostname"
		}
		printf(out, "  %d\t%s\t%s\t%s\t%s\n", i, anyIfEmpty(rule.Hostname), anyIfEmpty(rule.Path), rule.Service, from)
	}
	flush(out)
}

// WriteProblems prints what is not as its author meant it, which the table ends
// with.
func (p *Plan) WriteProblems(w io.Writer) {
	for i := range p.Gateways {
		p.Gateways[i].writeProblems(w)
	}
}

// writeProblems explains each hostname, listener, set and route that is not as its
// author meant it.
func (g *Gateway) writeProblems(out io.Writer) {
	if g.shared != "" {
		printf(out, "Gateway %s/%s: %s\n", g.Namespace, g.Name, g.shared)
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
}

func writeRouteProblems(out io.Writer, route *gateway.Route) {
	name := fmt.Sprintf("%s %s", route.Kind, route.NamespacedName)
	for _, parent := range route.Parents {
		if parent.Rejected != nil {
			printf(out, "%s at %s: %s: %s\n", name, parent.Owner, parent.Rejected.Reason, parent.Rejected.Message)
		}
	}
	for _, dropped := range route.Dropped {
		printf(out, "%s: %s.\n", name, dropped)
	}
	if route.Unresolved != nil {
		printf(out, "%s: %s: %s\n", name, route.Unresolved.Reason, route.Unresolved.Message)
	}
}

// flush ends a table, so that the next one has columns of its own.
func flush(out *tabwriter.Writer) { _ = out.Flush() } // the last Flush reports a failed write again

func anyIfEmpty(s string) string {
	if s == "" {
		return "*"
	}
	return s
}
