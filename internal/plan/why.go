package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Explanation follows one request through every Gateway that has a listener for
// its host. Its JSON form is a contract.
type Explanation struct {
	Request gateway.Request `json:"request"`
	Traces  []Trace         `json:"trails"`

	terminating []types.NamespacedName
}

// Trace is the way of a request through one Gateway.
type Trace struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Listeners are those whose hostname covers the request's host, the most
	// specific hostname first.
	Listeners []MatchingListener `json:"listeners"`
	// Answer is the rule that answers, or nil when the Gateway is not accepted:
	// then the tunnel keeps what it has.
	Answer *Answer `json:"answer"`
	// Shadowed are the other matches that the request meets, the next one first.
	Shadowed []ShadowedMatch `json:"beaten"`
	// Unserved are routes that mean the request and are not in effect for it.
	Unserved []UnservedRoute `json:"absent"`
	// Others are routes at the request's listeners that answer other requests;
	// none where a route answers.
	Others []OtherRoute `json:"elsewhere"`

	// Rejected says why the Gateway is not accepted, or is nil when it is.
	Rejected *Rejection `json:"rejected,omitempty"`
	// Problem says why the configuration is not pushed, or not to the tunnel that the
	// settings ask for; empty when it is.
	Problem string `json:"stopped,omitempty"`
}

// Rejection is why a Gateway is not accepted.
type Rejection struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// MatchingListener is a listener for the request's host.
type MatchingListener struct {
	Listener
	// ReceivesRequest is whether the request belongs to the listener: of those that hold
	// their hostname, it has the most specific one.
	ReceivesRequest bool `json:"belongs"`
	// Message says what is wrong with the listener, if something is.
	Message string `json:"message,omitempty"`
}

// Answer is the rule that answers.
type Answer struct {
	Rule
	// Failure says why it answers with an error in the place of a backend; empty
	// when it does not.
	Failure string `json:"broken,omitempty"`
	// Via are the listeners by which the rule's route attached.
	Via []Attachment `json:"through"`
}

// Attachment names a listener.
type Attachment struct {
	Owner    Owner  `json:"owner"`
	Listener string `json:"listener"`
}

func (a Attachment) String() string { return fmt.Sprintf("%s listener %s", a.Owner, a.Listener) }

// ShadowedMatch is a match that the request meets and that does not answer it.
type ShadowedMatch struct {
	Rule
	// CoveredBy is the number of a rule that takes all that this one could take,
	// when it is not among the rules for that.
	CoveredBy *int   `json:"hiddenBy,omitempty"`
	Reason    string `json:"because"`
}

// Rule is a rule of the tunnel, and the match of a route that it carries out.
type Rule struct {
	// Number is its place among the rules, from 0, or nil when it is not among
	// them.
	Number   *int   `json:"number"`
	Hostname string `json:"hostname"`
	Path     string `json:"path"`
	Service  string `json:"service"`
	// Route is nil for the end of a hostname's rules, and of all rules.
	Route *Owner `json:"route"`
	// RouteRule and Match are the numbers of the route's rule and of its match.
	RouteRule int `json:"rule"`
	Match     int `json:"match"`
}

// UnservedRoute is a route that is not in effect for the request.
type UnservedRoute struct {
	Route   Owner  `json:"route"`
	Parent  Owner  `json:"at"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// OtherRoute is a route that asks for other hostnames, or for other paths.
type OtherRoute struct {
	Route     Owner    `json:"route"`
	Hostnames []string `json:"hostnames"`
	Paths     []string `json:"paths"`
}

// Explain explains what becomes of a request.
func (p *Plan) Explain(request gateway.Request) *Explanation {
	e := &Explanation{Request: request, Traces: []Trace{}, terminating: p.terminating}
	for i := range p.Gateways {
		found := p.Gateways[i].result.Trace(request)
		if len(found.Listeners) > 0 {
			e.Traces = append(e.Traces, p.Gateways[i].trace(found))
		}
	}
	return e
}

func (g *Gateway) trace(found *gateway.Trace) Trace {
	t := Trace{
		Namespace: g.Namespace, Name: g.Name, Problem: g.outcome.Message,
		Listeners: make([]MatchingListener, len(found.Listeners)), Shadowed: []ShadowedMatch{}, Unserved: []UnservedRoute{}, Others: []OtherRoute{},
	}
	if p := g.result.Rejected; p != nil {
		t.Rejected = &Rejection{p.Reason, p.Message}
	}
	for i, l := range found.Listeners {
		row := g.Listeners[slices.Index(g.result.Listeners, l)]
		t.Listeners[i] = MatchingListener{Listener: row, ReceivesRequest: slices.Contains(found.Claimants, l), Message: messageOf(l)}
	}
	if found.Answer >= 0 {
		t.Answer = &Answer{Rule: newRule(&g.result.Rules[found.Answer], found.Answer), Via: []Attachment{}}
		if p := found.Failure; p != nil {
			t.Answer.Failure = p.Reason + ": " + p.Message
		}
		for _, l := range found.Via {
			t.Answer.Via = append(t.Answer.Via, Attachment{newOwner(l.Owner), string(l.Spec.Name)})
		}
	}
	for i := range found.Shadowed {
		b := &found.Shadowed[i]
		t.Shadowed = append(t.Shadowed, ShadowedMatch{Rule: newRule(&b.Rule, b.Index), CoveredBy: indexOrNil(b.CoveredBy), Reason: b.Reason})
	}
	for _, e := range found.Others {
		t.Others = append(t.Others, OtherRoute{
			Route: ownerOf(e.Route), Hostnames: append([]string{}, e.Hostnames...), Paths: append([]string{}, e.Paths...),
		})
	}
	for _, a := range found.Unserved {
		t.Unserved = append(t.Unserved, UnservedRoute{Route: ownerOf(a.Route), Parent: newOwner(a.Parent), Reason: a.Reason, Message: a.Message})
	}
	return t
}

func messageOf(l *gateway.Listener) string {
	if p := cmp.Or(l.Rejected, l.Unresolved); p != nil {
		return p.Message
	}
	return ""
}

func newRule(rule *gateway.Rule, place int) Rule {
	r := Rule{Hostname: rule.Hostname, Path: rule.Path, Service: rule.Service, RouteRule: rule.Number, Match: rule.Match, Number: indexOrNil(place)}
	if rule.Route != nil {
		r.Route = new(ownerOf(rule.Route))
	}
	return r
}

// indexOrNil returns a place, or nil for none.
func indexOrNil(place int) *int {
	if place < 0 {
		return nil
	}
	return &place
}

func ownerOf(route *gateway.Route) Owner { return Owner{route.Kind, route.Namespace, route.Name} }

// WriteTable prints the explanation for people.
func (e *Explanation) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	switch n := len(e.Traces); n {
	case 0:
		printf(out, "%s: no Gateway of this plan has a listener for this hostname.\n", e.Request)
	case 1:
	default:
		printf(out, "%d Gateways have a listener for %s; DNS decides to which tunnel its requests go.\n\n", n, e.Request.Host)
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
		printf(out, "Not accepted, so the tunnel keeps what it has: %s: %s\n", t.Rejected.Reason, t.Rejected.Message)
	}
	fmt.Fprintln(out, "Listeners for the hostname, the most specific first; > has the request:")
	fmt.Fprintln(out, "\tHOSTNAME\tPORT\tOWNER\tLISTENER\tSTATE")
	for i := range t.Listeners {
		t.Listeners[i].write(out)
	}
	flush(out)
	t.writeAnswer(out)
	for i, b := range t.Shadowed {
		if i == 0 {
			fmt.Fprintln(out, "Before others that the request meets:")
		}
		printf(out, "  %s: %s", b.describe(), b.Reason)
		if b.CoveredBy != nil {
			printf(out, "; no request reaches it, because rule %d takes all that it could", *b.CoveredBy)
		}
		fmt.Fprintln(out)
	}
	for i, a := range t.Unserved {
		if i == 0 {
			fmt.Fprintln(out, "Not in effect for it:")
		}
		printf(out, "  %s at %s: %s: %s\n", a.Route, a.Parent, a.Reason, a.Message)
	}
	t.writeOthers(out)
}

// writeOthers names a few routes: a listener for a wildcard may have hundreds.
func (t *Trace) writeOthers(out io.Writer) {
	const few = 10
	for i, e := range t.Others {
		switch i {
		case 0:
			fmt.Fprintln(out, "At its listeners, for other requests:")
		case few:
			printf(out, "  and %d more\n", len(t.Others)-few)
			return
		}
		if len(e.Hostnames) > 0 {
			printf(out, "  %s: its hostnames: %s\n", e.Route, abbreviate(e.Hostnames))
		} else {
			printf(out, "  %s: its paths: %s\n", e.Route, abbreviate(e.Paths))
		}
	}
}

func (c *MatchingListener) write(out *tabwriter.Writer) {
	mark, state := "", c.state()
	if c.ReceivesRequest {
		mark = ">"
	}
	if c.Message != "" {
		state += ": " + c.Message
	}
	printf(out, "%s\t%s\t%d %s\t%s\t%s\t%s\n", mark, orStar(c.Hostname), c.Port, c.Protocol, c.Owner, c.Name, state)
}

func (t *Trace) writeAnswer(out *tabwriter.Writer) {
	switch a := t.Answer; {
	case a == nil:
	case a.Route != nil:
		printf(out, "Answered by %s -> %s\n", a.describe(), a.Service)
		if a.Failure != "" {
			printf(out, "  %s\n", a.Failure)
		}
		for _, through := range a.Via {
			printf(out, "  attached by %s\n", through)
		}
	case a.Hostname != "":
		printf(out, "Answered by rule %d -> %s: nothing in effect for %s has this path\n", *a.Number, a.Service, a.Hostname)
	default:
		printf(out, "Answered by rule %d -> %s: nothing else matches\n", *a.Number, a.Service)
	}
}

func (r *Rule) describe() string {
	place := "hidden"
	if r.Number != nil {
		place = fmt.Sprintf("rule %d", *r.Number)
	}
	path := r.Path
	if path == "" {
		path = "every path"
	}
	return fmt.Sprintf("%s (%s, %s) of %s rule %d match %d", place, orStar(r.Hostname), path, r.Route, r.RouteRule, r.Match)
}
