package plan

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// WriteTable prints the explanation as text.
func (e *Explanation) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	switch n := len(e.Traces); n {
	case 0:
		printf(out, "%s: no Gateway in the plan has a listener for this hostname\n", e.Request)
	case 1:
	default:
		printf(out, "%d Gateways have a listener for %s. DNS determines which of their tunnels receives the request.\n\n", n, e.Request.Host)
	}
	for i := range e.Traces {
		if i > 0 {
			fmt.Fprintln(out)
		}
		e.Traces[i].write(out, e.Request)
	}
	writeTerminating(out, e.terminating)
	return out.Flush()
}

func (t *Trace) write(out *tabwriter.Writer, request gateway.Request) {
	printf(out, "%s at Gateway %s/%s\n", request, t.Namespace, t.Name)
	if t.Problem != "" {
		printf(out, "Gateway %s/%s: %s\n", t.Namespace, t.Name, t.Problem)
	}
	if t.Rejected != nil {
		printf(out, "Gateway %s/%s: %s\n", t.Namespace, t.Name, notAccepted(t.Rejected.Reason, t.Rejected.Message))
	}
	fmt.Fprintln(out, "Matching listeners, most specific hostname first (> receives the request):")
	fmt.Fprintln(out, "\tHOSTNAME\tPORT\tOWNER\tLISTENER\tSTATE")
	for i := range t.Listeners {
		t.Listeners[i].write(out)
	}
	flush(out)
	t.writeAnswer(out)
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
		printf(out, "  %s at %s: %s: %s\n", u.Route, u.Parent, u.Reason, u.Message)
	}
	t.writeOthers(out)
}

// writeOthers prints a limited number of routes, because a listener with a wildcard
// may have hundreds.
func (t *Trace) writeOthers(out io.Writer) {
	const limit = 10
	for i, o := range t.Others {
		switch i {
		case 0:
			fmt.Fprintln(out, "Routes of these listeners that match other requests:")
		case limit:
			printf(out, "  and %d more\n", len(t.Others)-limit)
			return
		}
		if len(o.Hostnames) > 0 {
			printf(out, "  %s: hostnames %s\n", o.Route, abbreviate(o.Hostnames))
		} else {
			printf(out, "  %s: paths %s\n", o.Route, abbreviate(o.Paths))
		}
	}
}

func (l *MatchingListener) write(out io.Writer) {
	mark, state := "", l.state()
	if l.ReceivesRequest {
		mark = ">"
	}
	if l.Message != "" {
		state += ": " + l.Message
	}
	printf(out, "%s\t%s\t%d %s\t%s\t%s\t%s\n", mark, orStar(l.Hostname), l.Port, l.Protocol, l.Owner, l.Name, state)
}

func (t *Trace) writeAnswer(out io.Writer) {
	switch a := t.Answer; {
	case a == nil:
	case a.Route != nil:
		printf(out, "Answered by %s -> %s\n", a.describe(), a.Service)
		if a.Failure != "" {
			printf(out, "  %s\n", a.Failure)
		}
		for _, listener := range a.Via {
			printf(out, "  attached to %s\n", listener)
		}
	case a.Hostname != "":
		printf(out, "Answered by rule %d -> %s: no other rule for %s matches\n", *a.Number, a.Service, a.Hostname)
	default:
		printf(out, "Answered by rule %d -> %s: no other rule matches\n", *a.Number, a.Service)
	}
}

func (s *ShadowedMatch) write(out io.Writer) {
	printf(out, "  %s: %s", s.describe(), s.Reason)
	if s.CoveredBy != nil {
		printf(out, "; the tunnel has no rule for it, because rule %d matches all its requests", *s.CoveredBy)
	}
	fmt.Fprintln(out)
}

// describe returns the number, hostname and path of the rule, and the route that it
// serves.
func (r *Rule) describe() string {
	number := "no rule"
	if r.Number != nil {
		number = fmt.Sprintf("rule %d", *r.Number)
	}
	path := r.Path
	if path == "" {
		path = "every path"
	}
	return fmt.Sprintf("%s (%s, %s) of %s rule %d match %d", number, orStar(r.Hostname), path, r.Route, r.RouteRule, r.Match)
}
