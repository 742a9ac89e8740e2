package plan

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// WriteTable prints the explanation as text.
func (e *Explanation) WriteTable(w io.Writer, style Style) error {
	out := newColumns(w, style)
	if e.WhatIf != nil {
		terminal.Printf(out, "%s\n", e.WhatIf)
	}
	switch n := len(e.Traces); n {
	case 0:
		e.writeUntraced(out)
	case 1:
	default:
		terminal.Printf(out, "%d Gateways have a listener for %s. DNS determines which of their tunnels receives the request.\n\n", n, e.Request.Hostname())
	}
	for i := range e.Traces {
		if i > 0 {
			fmt.Fprintln(out)
		}
		e.Traces[i].write(out, e.Request, style)
	}
	e.writeDetached(out, style)
	writeTerminating(out, e.terminating)
	writeReported(out, e.Reported)
	writeUnknown(out, e.Unknown)
	return out.Flush()
}

// writeUntraced explains why there is no trace.
func (e *Explanation) writeUntraced(out io.Writer) {
	switch {
	case len(e.Reported) > 0:
		terminal.Printf(out, "%s: no decision is possible\n", e.Request)
	case e.incomplete:
		terminal.Printf(out, "%s: no listener that you can read has this hostname"+problemMark+"\n", e.Request)
	default:
		terminal.Printf(out, "%s: no Gateway in the plan has a listener for this hostname"+problemMark+"\n", e.Request)
	}
}

// writeDetached prints a limited number of routes, because objects from many teams can
// refer to one missing Gateway.
func (e *Explanation) writeDetached(out io.Writer, style Style) {
	const limit = 10
	for i, d := range e.Detached {
		switch {
		case i == 0:
			fmt.Fprintln(out, "Routes that would serve the hostname if their parent existed:")
		case i == limit && !style.Wide:
			terminal.Printf(out, "  and %d more\n", len(e.Detached)-limit)
			return
		}
		hostnames := ""
		if len(d.Hostnames) == 0 {
			hostnames = " (every hostname of its parent)"
		}
		terminal.Printf(out, "  %s%s: %s"+problemMark+"\n", d.Route, hostnames, strings.Join(d.Problems, "; "))
	}
}

func (t *Trace) write(out *terminal.Columns, request routing.Request, style Style) {
	terminal.Printf(out, "%s on Gateway %s/%s\n", request, t.Namespace, t.Name)
	if t.Problem != "" {
		terminal.Printf(out, "Gateway %s/%s: %s"+problemMark+"\n", t.Namespace, t.Name, t.Problem)
	}
	if t.Rejected != nil {
		terminal.Printf(out, "Gateway %s/%s: %s"+problemMark+"\n", t.Namespace, t.Name, notAccepted(t.Rejected.Reason, t.Rejected.Message))
	}
	if len(t.MissedHostnames) > 0 {
		terminal.Printf(out, "The host does not match %s: cloudflared compares hosts exactly, with letter case and a dot at the end. Use %s."+problemMark+"\n",
			strings.Join(t.MissedHostnames, ", "), request.Hostname())
	}
	t.writeListeners(out)
	t.writeAnswer(out, style)
	for i := range t.Shadowed {
		if i == 0 {
			fmt.Fprintln(out, "Shadowed matches, next in precedence first:")
		}
		t.Shadowed[i].write(out)
	}
	for i, u := range t.Unserved {
		if i == 0 {
			fmt.Fprintln(out, "Routes and matches that are not served:")
		}
		terminal.Printf(out, "  %s on %s: %s: %s"+problemMark+"\n", u.Route, u.Parent, u.Reason, t.withoutRepetition(&u))
	}
	t.writeOthers(out, style)
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

// writeOthers prints a limited number of routes, because a listener with a wildcard
// may have hundreds.
func (t *Trace) writeOthers(out io.Writer, style Style) {
	const limit = 10
	for i, o := range t.Others {
		switch {
		case i == 0:
			fmt.Fprintln(out, "Routes on these listeners that match other requests:")
		case i == limit && !style.Wide:
			terminal.Printf(out, "  and %d more\n", len(t.Others)-limit)
			return
		}
		if len(o.Hostnames) > 0 {
			terminal.Printf(out, "  %s: hostnames %s\n", o.Route, style.abbreviate(o.Hostnames))
		} else {
			terminal.Printf(out, "  %s: %s\n", o.Route, style.abbreviate(o.Matches))
		}
	}
}

func (t *Trace) writeListeners(out *terminal.Columns) {
	if len(t.Listeners) == 0 {
		return // the request only matches hostnames in another form
	}
	fmt.Fprintln(out, "Matching listeners, most specific hostname first (> receives the request):")
	fmt.Fprintln(out, "\tHOSTNAME\tPORT\tOWNER\tLISTENER\tSTATE")
	for i := range t.Listeners {
		t.Listeners[i].write(out)
	}
	flush(out)
}

func (l *MatchingListener) write(out io.Writer) {
	mark, state, lineMark := "", l.state(), ""
	if l.ReceivesRequest {
		mark = ">"
	}
	if l.Message != "" {
		state += ": " + l.Message
	}
	if l.Reason != "" {
		lineMark = problemMark
	}
	terminal.Printf(out, "%s\t%s\t%d %s\t%s\t%s\t%s"+lineMark+"\n", mark, orStar(l.Hostname), l.Port, l.Protocol, l.Owner, l.Name, state)
}

func (t *Trace) writeAnswer(out io.Writer, style Style) {
	a := t.Answer
	switch {
	case a.writeUndecided(out):
		return
	case a.Entry == nil:
		terminal.Printf(out, "Answered with status %d: %s"+problemMark+"\n", a.Status, cmp.Or(a.Failure, t.unmatched()))
		return
	case a.Location != "":
		terminal.Printf(out, "Answered by %s -> %d %s\n", a.Entry, a.Status, a.Location)
		a.writeRedirectLoop(out)
	case a.Status != 0:
		terminal.Printf(out, "Answered by %s -> status %d\n", a.Entry, a.Status)
	case len(a.Backends) == 1:
		terminal.Printf(out, "Answered by %s -> %s\n", a.Entry, a.Backends[0].Backend)
		writeChanges(out, "  ", a.Backends[0].Changes)
		a.Backends[0].writeEndpoints(out, "  ", style)
	default:
		terminal.Printf(out, "Answered by %s ->\n", a.Entry)
		for _, share := range a.Backends {
			terminal.Printf(out, "  %d %% %s\n", share.Percent, share.Backend)
			writeChanges(out, "    ", share.Changes)
			share.writeEndpoints(out, "    ", style)
		}
	}
	if a.Failure != "" {
		terminal.Printf(out, "  %s"+problemMark+"\n", withHints(a.Failure, a.Hints))
	}
	if a.Access != nil {
		terminal.Printf(out, "  requires a token of Cloudflare Access: team %s, AUD tag %s\n", a.Access.TeamName, strings.Join(a.Access.AUDTag, " or "))
	}
	if len(a.BypassThrough) > 0 {
		terminal.Printf(out, "  without a token, requests with this host in another letter case or with a dot at its end can reach the rules for %s"+problemMark+"\n", strings.Join(a.BypassThrough, ", "))
	}
	writeChanges(out, "  ", a.Changes)
	for _, listener := range a.Via {
		terminal.Printf(out, "  attached to %s\n", listener)
	}
}

// writeUndecided prints that an object that was not read can answer, if one can. It reports
// whether nothing else is known about the answer.
func (a *Answer) writeUndecided(out io.Writer) bool {
	if a == nil {
		return true // the Gateway is not accepted
	}
	if a.Incomplete {
		terminal.Printf(out, "No route that you can read matches the request. If no other route does, the answer has status %d."+problemMark+"\n", a.Status)
	}
	return a.Incomplete
}

func (a *Answer) writeRedirectLoop(out io.Writer) {
	if a.RedirectLoop {
		terminal.Printf(out, "  the redirect leads to the requested URL itself, so visitors get too many redirects"+problemMark+"\n")
	}
}

// unmatched describes why no entry matches.
func (t *Trace) unmatched() string {
	if len(t.Listeners) == 0 {
		return "no listener matches the host in this form"
	}
	return "no route on these listeners matches the request"
}

func writeChanges(out io.Writer, indent string, changes []string) {
	for _, change := range changes {
		terminal.Printf(out, "%schanged: %s\n", indent, change)
	}
}

func (s *ShadowedMatch) write(out io.Writer) { terminal.Printf(out, "  %s: %s\n", &s.Entry, s.Reason) }

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
