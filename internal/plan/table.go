package plan

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// WriteTable prints the plan as text.
func (p *Plan) WriteTable(w io.Writer, style Style) error {
	out := newColumns(w, style)
	if p.WhatIf != nil {
		terminal.Printf(out, "%s\n", p.WhatIf)
	}
	if len(p.Gateways) == 0 && len(p.terminating) == 0 && len(p.Reported) == 0 {
		terminal.Printf(out, "%s"+problemMark+"\n", p.noGatewayMessage(style, p.Mistakes))
	}
	for i := range p.Gateways {
		if i > 0 {
			fmt.Fprintln(out)
		}
		p.Gateways[i].write(out, style)
	}
	writeLines(out, "", terminatingLines(p.terminating))
	for _, step := range withoutEmpty([]Step{reportedStep(p.Reported)}) {
		step.write(out)
	}
	writeLines(out, "", unknownLines(p.Unknown))
	if err := out.Flush(); err != nil {
		return err
	}
	p.WriteMistakes(w, "", style)
	return nil
}

func (g *Gateway) write(out *terminal.Columns, style Style) {
	notAllowed := 0
	for _, set := range g.result.Sets {
		if set.NotAllowed != nil {
			notAllowed++
		}
	}
	attached := int(g.AttachedListenerSets)
	g.writeRemark(out, fmt.Sprintf("%d %s attached, %d not allowed", attached, plural(gateway.KindListenerSet, attached), notAllowed))
	g.writeSettings(out, style)
	if message := g.outcome.Message; message != "" {
		g.writeProblem(out, message)
	}
	if problem := g.result.Rejected; problem != nil {
		g.writeProblem(out, notAccepted(problem.Reason.String(), problem.Message))
	}
	g.writeListeners(out)
	switch {
	case g.Config == nil:
	case g.DataPlane == v1alpha1.DataPlaneEnvoy:
		g.writeEntries(out)
	default:
		g.writeRules(out)
	}
	g.writeAccess(out)
	g.writeLimits(out)
	g.writeProblems(out, style)
	g.writeChange(out, style)
}

func (g *Gateway) writeListeners(out *terminal.Columns) {
	fmt.Fprintln(out, "HOSTNAME\tPORT\tOWNER\tLISTENER\tSTATE\tROUTES"+rowMark)
	for _, l := range g.Listeners {
		terminal.Printf(out, "%s\t%d %s\t%s\t%s\t%s\t%d"+terminal.MarkRow(l.Reason != "")+"\n", orStar(l.Hostname), l.Port, l.Protocol,
			l.Owner, l.Name, l.state(), l.AttachedRoutes)
	}
	flush(out)
}

// stateServed is the state of a listener without a problem.
const stateServed = "served"

// state returns a problem's reason, or "served".
func (l *Listener) state() string { return cmp.Or(l.Reason, stateServed) }

// writeRules prints the rules. It prints the column ACCESS only if a hostname requires
// something.
func (g *Gateway) writeRules(out *terminal.Columns) {
	rules := ingress.Rules(g.result.Table)
	protected := g.requiresAccess()
	if protected {
		fmt.Fprintln(out, "  #\tHOSTNAME\tPATH\tSERVICE\tACCESS\tFROM"+rowMark)
	} else {
		fmt.Fprintln(out, "  #\tHOSTNAME\tPATH\tSERVICE\tFROM"+rowMark)
	}
	for i := range rules {
		rule := &rules[i]
		terminal.Printf(out, "  %d\t%s\t%s\t%s\t", i, orStar(rule.Hostname), orStar(rule.Path), rule.Service)
		if protected {
			terminal.Printf(out, "%s\t", g.accessText(rule.Hostname))
		}
		failed := rule.Entry != nil && rule.Entry.Action.Problem != nil
		terminal.Printf(out, "%s"+terminal.MarkRow(failed)+"\n", g.sourceOf(rule))
	}
	flush(out)
}

// sourceOf describes where a rule comes from, and why it returns an error.
func (g *Gateway) sourceOf(rule *ingress.Rule) string {
	switch {
	case rule.Entry == nil && g.result.Table.Access.Of(rule.Hostname).IsClosed():
		return "closed hostname"
	case rule.Entry != nil && rule.Entry.Action.Problem != nil:
		return fmt.Sprintf("%s (%s)", rule.Entry.Source.Describe(), rule.Entry.Action.Problem.Cause)
	case rule.Entry != nil:
		return rule.Entry.Source.Describe()
	case rule.Hostname != "":
		return "catch-all of the hostname"
	default:
		return "catch-all"
	}
}

// WriteProblems prints the problems at the end of each Gateway's table, and what a data
// plane change does.
func (p *Plan) WriteProblems(w io.Writer) {
	out := terminal.NewLines(w, false)
	for i := range p.Gateways {
		p.Gateways[i].writeProblems(out, Style{Wide: true})
		p.Gateways[i].writeChange(out, Style{})
	}
}

// writeProblems prints the problems with hostnames, ListenerSets, listeners, routes and policies.
func (g *Gateway) writeProblems(out io.Writer, style Style) {
	if g.sharedHostnames != "" {
		g.writeProblem(out, g.sharedHostnames)
	}
	for _, warning := range g.Warnings {
		g.writeProblem(out, warning.Reason+": "+warning.Message)
	}
	if problem := g.result.ClientCertificateProblem(); problem != nil {
		g.writeProblem(out, problem.Reason.String()+": "+problem.Message)
	}
	g.writeListenerProblems(out, style)
	g.writeRouteProblems(out, g.result.Routes, style)
	g.writePolicyProblems(out, style)
	g.writeAccessProblems(out, style)
	for _, warning := range g.routeWarnings(style) {
		terminal.Printf(out, "%s"+problemMark+"\n", warning)
	}
	for _, warning := range g.result.EntryWarnings() {
		terminal.Printf(out, "%s: %s\n", warning.Object, warning.Message)
	}
}

func (g *Gateway) writeListenerProblems(out io.Writer, style Style) {
	var lines problemLines
	for _, set := range g.result.Sets {
		if p := set.NotAllowed; p != nil {
			lines.add(set.Owner.String(), fmt.Sprintf(": %s: %s", p.Reason, p.Message))
		}
	}
	for _, l := range g.result.Listeners {
		for _, p := range []*gateway.Problem{l.Rejected, l.Unresolved} {
			if p != nil {
				lines.add(fmt.Sprintf("%s listener %s", l.Owner, l.Spec.Name), fmt.Sprintf(": %s: %s", p.Reason, p.Message))
			}
		}
	}
	lines.write(out, style)
}

func (g *Gateway) writePolicyProblems(out io.Writer, style Style) {
	var lines problemLines
	for _, problem := range g.result.PolicyProblems() {
		policy, text, _ := strings.Cut(problem, ": ")
		lines.add(policy, ": "+text)
	}
	lines.write(out, style)
}

// writeProblem prints a line about a problem of the Gateway.
func (g *Gateway) writeProblem(out io.Writer, text string) {
	terminal.Printf(out, "Gateway %s/%s: %s"+problemMark+"\n", g.Namespace, g.Name, text)
}

// flush ends a table, so that the column widths of the next table are independent.
func flush(out *terminal.Columns) { _ = out.Flush() } // the last Flush reports an error again

// orStar returns s, or "*" for the empty string.
func orStar(s string) string {
	if s == "" {
		return "*"
	}
	return s
}
