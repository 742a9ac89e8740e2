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
	Trails  []Trail         `json:"trails"`

	ending []types.NamespacedName
}

// Trail is the way of a request through one Gateway.
type Trail struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Listeners are those whose hostname covers the request's host, the most
	// specific hostname first.
	Listeners []Claim `json:"listeners"`
	// Answer is the rule that answers, or nil when the Gateway is not accepted:
	// then the tunnel keeps what it has.
	Answer *Answer `json:"answer"`
	// Beaten are the other matches that the request meets, the next one first.
	Beaten []Beaten `json:"beaten"`
	// Absent are routes that mean the request and are not in effect for it.
	Absent []Absent `json:"absent"`
	// Elsewhere are routes at the request's listeners that answer other requests;
	// none where a route answers.
	Elsewhere []Elsewhere `json:"elsewhere"`

	// Rejected says why the Gateway is not accepted, or is nil when it is.
	Rejected *Rejection `json:"rejected,omitempty"`
	// Stopped says why the configuration is not pushed, or not to the tunnel that the
	// settings ask for; empty when it is.
	Stopped string `json:"stopped,omitempty"`
}

// Rejection is why a Gateway is not accepted.
type Rejection struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Claim is a listener for the request's host.
type Claim struct {
	Listener
	// Belongs is whether the request belongs to the listener: of those that hold
	// their hostname, it has the most specific one.
	Belongs bool `json:"belongs"`
	// Message says what is wrong with the listener, if something is.
	Message string `json:"message,omitempty"`
}

// Answer is the rule that answers.
type Answer struct {
	Rule
	// Broken says why it answers with an error in the place of a backend; empty
	// when it does not.
	Broken string `json:"broken,omitempty"`
	// Through are the listeners by which the rule's route attached.
	Through []Attachment `json:"through"`
}

// Attachment names a listener.
type Attachment struct {
	Owner    Owner  `json:"owner"`
	Listener string `json:"listener"`
}

func (a Attachment) String() string { return fmt.Sprintf("%s listener %s", a.Owner, a.Listener) }

// Beaten is a match that the request meets and that does not answer it.
type Beaten struct {
	Rule
	// HiddenBy is the number of a rule that takes all that this one could take,
	// when it is not among the rules for that.
	HiddenBy *int   `json:"hiddenBy,omitempty"`
	Because  string `json:"because"`
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

// Absent is a route that is not in effect for the request.
type Absent struct {
	Route   Owner  `json:"route"`
	At      Owner  `json:"at"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Elsewhere is a route that asks for other hostnames, or for other paths.
type Elsewhere struct {
	Route     Owner    `json:"route"`
	Hostnames []string `json:"hostnames"`
	Paths     []string `json:"paths"`
}

// Explain explains what becomes of a request.
func (p *Plan) Explain(request gateway.Request) *Explanation {
	e := &Explanation{Request: request, Trails: []Trail{}, ending: p.ending}
	for i := range p.Gateways {
		found := p.Gateways[i].result.Trace(request)
		if len(found.Listeners) > 0 {
			e.Trails = append(e.Trails, p.Gateways[i].trail(found))
		}
	}
	return e
}

func (g *Gateway) trail(found *gateway.Trace) Trail {
	t := Trail{
		Namespace: g.Namespace, Name: g.Name, Stopped: g.outcome.Message,
		Listeners: make([]Claim, len(found.Listeners)), Beaten: []Beaten{}, Absent: []Absent{}, Elsewhere: []Elsewhere{},
	}
	if p := g.result.Rejected; p != nil {
		t.Rejected = &Rejection{p.Reason, p.Message}
	}
	for i, l := range found.Listeners {
		row := g.Listeners[slices.Index(g.result.Listeners, l)]
		t.Listeners[i] = Claim{Listener: row, Belongs: slices.Contains(found.Claimants, l), Message: messageOf(l)}
	}
	if found.Answer >= 0 {
		t.Answer = &Answer{Rule: newRule(&g.result.Rules[found.Answer], found.Answer), Through: []Attachment{}}
		if p := found.Failure; p != nil {
			t.Answer.Broken = p.Reason + ": " + p.Message
		}
		for _, l := range found.Via {
			t.Answer.Through = append(t.Answer.Through, Attachment{newOwner(l.Owner), string(l.Spec.Name)})
		}
	}
	for i := range found.Shadowed {
		b := &found.Shadowed[i]
		t.Beaten = append(t.Beaten, Beaten{Rule: newRule(&b.Rule, b.Index), HiddenBy: number(b.CoveredBy), Because: b.Reason})
	}
	for _, e := range found.Others {
		t.Elsewhere = append(t.Elsewhere, Elsewhere{
			Route: ownerOf(e.Route), Hostnames: append([]string{}, e.Hostnames...), Paths: append([]string{}, e.Paths...),
		})
	}
	for _, a := range found.Unserved {
		t.Absent = append(t.Absent, Absent{Route: ownerOf(a.Route), At: newOwner(a.Parent), Reason: a.Reason, Message: a.Message})
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
	r := Rule{Hostname: rule.Hostname, Path: rule.Path, Service: rule.Service, RouteRule: rule.RuleIndex, Match: rule.MatchIndex, Number: number(place)}
	if rule.Route != nil {
		r.Route = new(ownerOf(rule.Route))
	}
	return r
}

// number returns a place, or nil for none.
func number(place int) *int {
	if place < 0 {
		return nil
	}
	return &place
}

func ownerOf(route *gateway.Route) Owner { return Owner{route.Kind, route.Namespace, route.Name} }

// WriteTable prints the explanation for people.
func (e *Explanation) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	switch n := len(e.Trails); n {
	case 0:
		printf(out, "%s: no Gateway of this plan has a listener for this hostname.\n", e.Request)
	case 1:
	default:
		printf(out, "%d Gateways have a listener for %s; DNS decides to which tunnel its requests go.\n\n", n, e.Request.Host)
	}
	for i := range e.Trails {
		if i > 0 {
			fmt.Fprintln(out)
		}
		e.Trails[i].write(out, e.Request)
	}
	writeEnding(out, e.ending)
	return out.Flush()
}

func (t *Trail) write(out *tabwriter.Writer, request gateway.Request) {
	printf(out, "%s at Gateway %s/%s\n", request, t.Namespace, t.Name)
	if t.Stopped != "" {
		printf(out, "Gateway %s/%s: %s\n", t.Namespace, t.Name, t.Stopped)
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
	for i, b := range t.Beaten {
		if i == 0 {
			fmt.Fprintln(out, "Before others that the request meets:")
		}
		printf(out, "  %s: %s", b.describe(), b.Because)
		if b.HiddenBy != nil {
			printf(out, "; no request reaches it, because rule %d takes all that it could", *b.HiddenBy)
		}
		fmt.Fprintln(out)
	}
	for i, a := range t.Absent {
		if i == 0 {
			fmt.Fprintln(out, "Not in effect for it:")
		}
		printf(out, "  %s at %s: %s: %s\n", a.Route, a.At, a.Reason, a.Message)
	}
	t.writeElsewhere(out)
}

// writeElsewhere names a few routes: a listener for a wildcard may have hundreds.
func (t *Trail) writeElsewhere(out io.Writer) {
	const few = 10
	for i, e := range t.Elsewhere {
		switch i {
		case 0:
			fmt.Fprintln(out, "At its listeners, for other requests:")
		case few:
			printf(out, "  and %d more\n", len(t.Elsewhere)-few)
			return
		}
		if len(e.Hostnames) > 0 {
			printf(out, "  %s: its hostnames: %s\n", e.Route, some(e.Hostnames))
		} else {
			printf(out, "  %s: its paths: %s\n", e.Route, some(e.Paths))
		}
	}
}

func (c *Claim) write(out *tabwriter.Writer) {
	mark, state := "", c.state()
	if c.Belongs {
		mark = ">"
	}
	if c.Message != "" {
		state += ": " + c.Message
	}
	printf(out, "%s\t%s\t%d %s\t%s\t%s\t%s\n", mark, anyIfEmpty(c.Hostname), c.Port, c.Protocol, c.Owner, c.Name, state)
}

func (t *Trail) writeAnswer(out *tabwriter.Writer) {
	switch a := t.Answer; {
	case a == nil:
	case a.Route != nil:
		printf(out, "Answered by %s -> %s\n", a.describe(), a.Service)
		if a.Broken != "" {
			printf(out, "  %s\n", a.Broken)
		}
		for _, through := range a.Through {
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
	return fmt.Sprintf("%s (%s, %s) of %s rule %d match %d", place, anyIfEmpty(r.Hostname), path, r.Route, r.RouteRule, r.Match)
}
