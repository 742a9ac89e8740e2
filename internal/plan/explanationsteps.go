package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// StepKind says what a [Step] is about.
type StepKind string

// The kinds of steps, in the order in which the terminal output has them.
const (
	StepGateway     StepKind = "Gateway"
	StepListeners   StepKind = "Listeners"
	StepAnswer      StepKind = "Answer"
	StepAccess      StepKind = "Access"
	StepMismatches  StepKind = "Mismatches"
	StepShadowed    StepKind = "Shadowed"
	StepUnserved    StepKind = "Unserved"
	StepOthers      StepKind = "Others"
	StepDetached    StepKind = "Detached"
	StepTerminating StepKind = "Terminating"
	StepReported    StepKind = "Reported"
	StepUnknown     StepKind = "Unknown"
)

// Step is a part of an explanation, in the sentences that both the terminal output and the
// page show. Its texts can contain unprintable characters.
type Step struct {
	Kind StepKind
	// Title introduces the Rows and the Lines; empty if they need no introduction.
	Title string
	// Columns are the headings of the Rows.
	Columns []string
	Rows    []StepRow
	Lines   []Line
}

// StepRow is a row of a table.
type StepRow struct {
	Cells []string
	// Problem reports whether the row is about a problem.
	Problem bool
}

// Line is a sentence with its details.
type Line struct {
	Text string
	// Problem reports whether the sentence is about a problem.
	Problem bool
	Details []Line
}

// problemLine returns a sentence about a problem.
func problemLine(format string, args ...any) Line {
	return Line{Text: fmt.Sprintf(format, args...), Problem: true}
}

// line returns a sentence.
func line(format string, args ...any) Line { return Line{Text: fmt.Sprintf(format, args...)} }

// limited returns at most limit of n lines, and how many there are more. It returns all lines
// in a wide style, because objects from many teams can have one text in common.
func limited(n int, style Style, newLine func(i int) Line) []Line {
	const limit = 10
	var lines []Line
	for i := range n {
		if i == limit && !style.Wide {
			return append(lines, line("and %d more", n-limit))
		}
		lines = append(lines, newLine(i))
	}
	return lines
}

// Introduction says what the explanation is about, unless it is about one Gateway.
func (e *Explanation) Introduction() []Line {
	var lines []Line
	if e.WhatIf != nil {
		lines = append(lines, Line{Text: e.WhatIf.String()})
	}
	switch n := len(e.Traces); n {
	case 0:
		lines = append(lines, e.untraced())
	case 1:
	default:
		lines = append(lines, line("%d Gateways have a listener for %s. DNS determines which of their tunnels receives the request.", n, e.Request.Hostname()))
	}
	return lines
}

// untraced explains why there is no trace.
func (e *Explanation) untraced() Line {
	switch {
	case len(e.Reported) > 0:
		return line("%s: no decision is possible", e.Request)
	case e.incomplete:
		return problemLine("%s: no listener that you can read has this hostname", e.Request)
	default:
		return problemLine("%s: no Gateway in the plan has a listener for this hostname", e.Request)
	}
}

// Remarks are the steps after the traces.
func (e *Explanation) Remarks(style Style) []Step {
	return withoutEmpty([]Step{
		{Kind: StepDetached, Title: "Routes that would serve the hostname if their parent existed:", Lines: limited(len(e.Detached), style, func(i int) Line {
			return e.Detached[i].line()
		})},
		{Kind: StepTerminating, Lines: terminatingLines(e.terminating)},
		reportedStep(e.Reported),
		{Kind: StepUnknown, Lines: unknownLines(e.Unknown)},
	})
}

// withoutEmpty removes the steps without a row or line.
func withoutEmpty(steps []Step) []Step {
	var all []Step
	for i := range steps {
		if len(steps[i].Rows)+len(steps[i].Lines) > 0 {
			all = append(all, steps[i])
		}
	}
	return all
}

func (d *DetachedRoute) line() Line {
	hostnames := ""
	if len(d.Hostnames) == 0 {
		hostnames = " (every hostname of its parent)"
	}
	return problemLine("%s%s: %s", d.Route, hostnames, strings.Join(d.Problems, "; "))
}

// Steps returns how the Gateway processes the request, in the order of the terminal output,
// without steps about which there is nothing to say.
func (t *Trace) Steps(request routing.Request, style Style) []Step {
	mismatches := t.mismatches()
	return withoutEmpty([]Step{
		{Kind: StepGateway, Lines: t.gatewayLines(request)},
		t.listenersStep(),
		{Kind: StepAnswer, Lines: t.answerLines(style)},
		{Kind: StepAccess, Lines: t.accessLines()},
		{Kind: StepMismatches, Title: "Entries that are tried before and do not match:", Lines: limited(len(mismatches), style, func(i int) Line {
			return line("%s: %s", &mismatches[i].Entry, mismatches[i].Reason)
		})},
		{Kind: StepShadowed, Title: "Shadowed matches, next in precedence first:", Lines: limited(len(t.Shadowed), Style{Wide: true}, func(i int) Line {
			return line("%s: %s", &t.Shadowed[i].Entry, t.Shadowed[i].Reason)
		})},
		{Kind: StepUnserved, Title: "Routes and matches that are not served:", Lines: limited(len(t.Unserved), Style{Wide: true}, func(i int) Line {
			u := &t.Unserved[i]
			return problemLine("%s on %s: %s: %s", u.Route, u.Parent, u.Reason, t.withoutRepetition(u))
		})},
		{Kind: StepOthers, Title: "Routes on these listeners that match other requests:", Lines: limited(len(t.Others), style, func(i int) Line {
			return t.Others[i].line(style)
		})},
	})
}

// gatewayLines are about the Gateway itself, and about the form of the host.
func (t *Trace) gatewayLines(request routing.Request) []Line {
	var lines []Line
	if t.Problem != "" {
		lines = append(lines, problemLine("Gateway %s/%s: %s", t.Namespace, t.Name, t.Problem))
	}
	if t.Rejected != nil {
		lines = append(lines, problemLine("Gateway %s/%s: %s", t.Namespace, t.Name, notAccepted(t.Rejected.Reason, t.Rejected.Message)))
	}
	if len(t.MissedHostnames) > 0 {
		lines = append(lines, problemLine("The host does not match %s: cloudflared compares hosts exactly, with letter case and a dot at the end. Use %s.",
			strings.Join(t.MissedHostnames, ", "), request.Hostname()))
	}
	return lines
}

// listenersStep has no rows if the request only matches hostnames in another form.
func (t *Trace) listenersStep() Step {
	s := Step{
		Kind: StepListeners, Title: "Matching listeners, most specific hostname first (> receives the request):",
		Columns: []string{"", "HOSTNAME", "PORT", "OWNER", "LISTENER", "STATE"},
	}
	for i := range t.Listeners {
		s.Rows = append(s.Rows, t.Listeners[i].row())
	}
	return s
}

func (l *MatchingListener) row() StepRow {
	mark, state := "", l.state()
	if l.ReceivesRequest {
		mark = ">"
	}
	if l.Message != "" {
		state += ": " + l.Message
	}
	return StepRow{Cells: []string{mark, orStar(l.Hostname), fmt.Sprintf("%d %s", l.Port, l.Protocol), l.Owner.String(), l.Name, state}, Problem: l.Reason != ""}
}

// withoutRepetition returns the route's message without the cause, if the row of a listener
// contains it.
func (t *Trace) withoutRepetition(u *UnservedRoute) string {
	for i := range t.Listeners {
		l := &t.Listeners[i]
		if rest, repeats := strings.CutSuffix(u.Message, ": "+l.Message); repeats && l.Owner == u.Parent {
			return rest + " (see above)"
		}
	}
	return u.Message
}

func (o *OtherRoute) line(style Style) Line {
	if len(o.Hostnames) > 0 {
		return line("%s: hostnames %s", o.Route, style.abbreviate(o.Hostnames))
	}
	return line("%s: %s", o.Route, style.abbreviate(o.Matches))
}

// setAccess sets what requests for the host require.
func (t *Trace) setAccess(g *Gateway, host string) {
	if t.Access = g.accessFor(host); t.Access == nil {
		h := newHostnameAccess(g.result, host)
		t.openAccess = fmt.Sprintf("Access: %s is %s", host, h.text())
	}
}

// OpenAccess says that nothing is required, or that this is not known. It is empty if the steps
// have one for Access, or if the Gateway is not accepted. The terminal output leaves it out.
func (t *Trace) OpenAccess() string { return t.openAccess }

// accessLines say what the hostname requires.
func (t *Trace) accessLines() []Line {
	h := t.Access
	if h == nil {
		return nil
	}
	first := Line{Text: fmt.Sprintf("Access: %s is %s", orStar(h.Hostname), h.text()), Problem: h.isProblem()}
	if h.Message != "" {
		first.Details = append(first.Details, Line{Text: h.Message, Problem: h.isProblem()})
	}
	if d := h.Demand; d != nil {
		first.Details = append(first.Details, line("demanded by %s, with the policies %s; the application is for %s", d, strings.Join(d.Policies, ", "), d.Application))
	}
	return []Line{first}
}

// unmatched describes why no entry matches.
func (t *Trace) unmatched() string {
	if len(t.Listeners) == 0 {
		return "no listener matches the host in this form"
	}
	return "no route on these listeners matches the request"
}

// answerLines say what happens to the request. There are none if the Gateway is not accepted.
func (t *Trace) answerLines(style Style) []Line {
	a := t.Answer
	switch {
	case a == nil:
		return nil
	case a.Incomplete:
		return []Line{problemLine("No route that you can read matches the request. If no other route does, the answer has status %d.", a.Status)}
	case a.Entry == nil:
		return []Line{problemLine("Answered with status %d: %s", a.Status, cmp.Or(a.Failure, t.unmatched()))}
	}
	return []Line{a.line(style)}
}

// String returns the entry's route, indexes, hostname and match.
func (e *Entry) String() string {
	return fmt.Sprintf("%s rule %d match %d (%s, %s)", e.Route, e.Rule, e.MatchIndex, orStar(e.Hostname), e.matchWithScheme())
}

// matchWithScheme describes the match, and the scheme if the entry answers only one.
func (e *Entry) matchWithScheme() string {
	if e.Scheme == "" {
		return e.Match
	}
	return e.Match + ", scheme " + string(e.Scheme)
}
