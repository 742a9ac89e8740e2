package plan

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Explanation traces one request through every Gateway that has a listener for its
// host. Its JSON encoding is stable.
type Explanation struct {
	Request routing.Request `json:"request"`
	Traces  []Trace         `json:"traces"`
	// Detached are the routes that would serve the host if all their parents existed.
	Detached []DetachedRoute `json:"detached"`
	// Unknown says what the explanation does not know, because the user may not read it.
	// Each text continues "It is not known".
	Unknown []string `json:"unknown,omitempty"`
	// Reported are the statuses in the cluster of objects that can be for the host, and
	// about whose Gateway no decision is possible.
	Reported []ReportedStatus `json:"reported,omitempty"`
	// WhatIf is nil if the explanation is for the source's settings.
	WhatIf *WhatIf `json:"whatIf,omitempty"`

	terminating []types.NamespacedName
	// incomplete reports whether objects that were not read can serve the host.
	incomplete bool
}

// Trace describes how one Gateway processes a request.
type Trace struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Listeners are the listeners whose hostname covers the request's host, the most
	// specific hostname first.
	Listeners []MatchingListener `json:"listeners"`
	// MissedHostnames are the hostnames that the request would match without its letter
	// case or the dot at the end of its host, the most specific first; empty if the
	// form does not matter.
	MissedHostnames []string `json:"missedHostnames,omitempty"`
	// Access is what the hostname requires; nil if it is simply open.
	Access *HostnameAccess `json:"access,omitempty"`
	// Answer is what happens to the request; nil if the Gateway is not accepted.
	Answer *Answer `json:"answer"`
	// Attempts are the entries for the host in the order in which they are tried: those
	// before the answer, the answer, and the Shadowed ones. Without an answer, they are every
	// entry for the host. The list is empty if the data plane refuses the request before.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Shadowed are the request's other matches, the next in precedence first.
	Shadowed []ShadowedMatch `json:"shadowed"`
	// Unserved are the routes that match the request, but that the Gateway does not
	// serve for it.
	Unserved []UnservedRoute `json:"unserved"`
	// Others are the routes that attach to the request's listeners, but match other
	// requests. The list is empty if a route answers the request.
	Others []OtherRoute `json:"others"`

	// Rejected explains why the Gateway is not accepted; nil if it is accepted.
	Rejected *Rejection `json:"rejected,omitempty"`
	// Problem explains why the controller does not push the configuration, or pushes it
	// to another tunnel than the one in the settings; empty if there is none.
	Problem string `json:"problem,omitempty"`

	// openAccess describes what the hostname requires if Access is nil.
	openAccess string
}

// Rejection explains why a Gateway is not accepted.
type Rejection struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// MatchingListener is a listener whose hostname covers the request's host.
type MatchingListener struct {
	Listener
	// ReceivesRequest reports whether the listener receives the request: of the
	// listeners that claim their hostname, it has the most specific one, and it has the
	// request's protocol if the data plane tells the protocols apart.
	ReceivesRequest bool `json:"receivesRequest"`
	// Message describes the listener's problem; empty if there is none.
	Message string `json:"message,omitempty"`
}

// Answer is what happens to the request.
type Answer struct {
	// Entry is the routing table entry that answers; nil if no entry matches, so that
	// the request gets the status 404.
	Entry *Entry `json:"entry"`
	Outcome
	// Access is the Cloudflare Access token that the request must have; nil if it needs
	// none, or if no entry matches.
	Access *provider.AccessSettings `json:"access,omitempty"`
	// BypassThrough are wider hostnames: through their rules, requests for the host in
	// another form reach a backend without a token.
	BypassThrough []string `json:"bypassThrough,omitempty"`
	// Incomplete reports whether no entry matches, but an object that was not read can
	// answer the request.
	Incomplete bool `json:"incomplete,omitempty"`
	// Hints suggest what backendRefs to missing Services or ports probably mean.
	Hints []string `json:"hints,omitempty"`
	// Via are the listeners to which the entry's route attaches.
	Via []Attachment `json:"via"`
}

// Attachment identifies a listener.
type Attachment struct {
	Owner    Owner  `json:"owner"`
	Listener string `json:"listener"`
}

// String returns the owner and the listener's name.
func (a Attachment) String() string { return fmt.Sprintf("%s listener %s", a.Owner, a.Listener) }

// ShadowedMatch is a match that does not answer the request, because another match
// takes precedence.
type ShadowedMatch struct {
	Entry
	// Reason explains why the other match takes precedence.
	Reason string `json:"reason"`
}

// Entry is a routing table entry: a match in a route.
type Entry struct {
	Hostname string `json:"hostname"`
	// Match describes the condition for requests with the hostname.
	Match string `json:"match"`
	// Scheme is the scheme in the requests that the entry answers; empty for both.
	Scheme routing.Scheme `json:"scheme,omitempty"`
	Route  Owner          `json:"route"`
	// Rule is the index of the rule in the route, and MatchIndex that of the match in
	// the rule, both from 0.
	Rule       int `json:"rule"`
	MatchIndex int `json:"matchIndex"`
}

// UnservedRoute is a route that matches the request, but that the Gateway does not
// serve for it.
type UnservedRoute struct {
	Route Owner `json:"route"`
	// Parent is the Gateway or ListenerSet that the route refers to.
	Parent  Owner  `json:"parent"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// OtherRoute is a route that matches other hostnames or other requests.
type OtherRoute struct {
	Route     Owner    `json:"route"`
	Hostnames []string `json:"hostnames"`
	Matches   []string `json:"matches"`
}

// Explain explains which routing table entry answers a request.
func (p *Plan) Explain(request routing.Request) *Explanation {
	e := &Explanation{Request: request, WhatIf: p.WhatIf, Traces: []Trace{}, terminating: p.terminating, incomplete: p.isIncomplete()}
	namespaces := map[string]bool{} // of the backends
	for i := range p.Gateways {
		g := &p.Gateways[i]
		capabilities := p.dataPlanes[g.DataPlane]
		received, err := request.For(capabilities)
		found := g.result.Trace(received)
		if len(found.Listeners)+len(found.Missed) == 0 {
			continue
		}
		t := g.trace(found, capabilities)
		for _, b := range backendsOf(found.Answer) {
			namespaces[b.Backend.Service.Namespace] = true
		}
		if t.Answer != nil {
			p.addEndpoints(g, found.Answer, t.Answer)
			t.Answer.Incomplete = e.incomplete && t.Answer.Entry == nil
			t.Answer.Hints = g.services.ofEntry(found.Answer, g.result)
			t.refuse(g.refusal(request, err))
		}
		e.Traces = append(e.Traces, t)
	}
	e.Detached = p.detachedRoutes(request.Hostname(), e.Traces)
	e.Unknown = p.undecided.unknown(len(e.Traces) > 0, func(namespace string) bool { return namespaces[namespace] })
	e.Unknown = append(e.Unknown, p.unreadPolicies(func(namespace, name string) bool {
		return slices.ContainsFunc(e.Traces, func(t Trace) bool { return t.Namespace == namespace && t.Name == name })
	})...)
	e.Reported = p.reportedFor(request.Hostname())
	return e
}

// refusal returns the answer from a data plane that refuses a request before it tries
// the entries, or nil. problem is why the data plane rejects the path.
func (g *Gateway) refusal(request routing.Request, problem error) *Outcome {
	if status := ingress.EnvoyRefusal(g.result.Table, request); g.DataPlane == v1alpha1.DataPlaneEnvoy && status != 0 {
		return &Outcome{Status: status, Failure: fmt.Sprintf(
			"cloudflared compares hosts exactly, and because of Access, Envoy serves this hostname only in the form %s", request.Hostname())}
	}
	if problem != nil {
		return &Outcome{Status: http.StatusBadRequest, Failure: problem.Error()}
	}
	if t := g.result.Table; t != nil && t.Access.IsClosed(request.Host) {
		return &Outcome{Status: http.StatusForbidden, Failure: "the hostname must be protected by Cloudflare Access, and is closed until it is"}
	}
	return nil
}

// refuse replaces the answer, unless the outcome is nil.
func (t *Trace) refuse(outcome *Outcome) {
	if outcome == nil {
		return
	}
	t.Answer = &Answer{Outcome: *outcome, Via: []Attachment{}}
	t.Attempts, t.Shadowed, t.Unserved, t.Others = nil, []ShadowedMatch{}, []UnservedRoute{}, []OtherRoute{}
}

// trace converts the trace for a request through this Gateway.
func (g *Gateway) trace(found *gateway.Trace, capabilities routing.Capabilities) Trace {
	t := Trace{
		Namespace: g.Namespace, Name: g.Name, Problem: g.outcome.Message, MissedHostnames: found.Missed,
		Listeners: make([]MatchingListener, len(found.Listeners)), Shadowed: []ShadowedMatch{}, Unserved: []UnservedRoute{}, Others: []OtherRoute{},
	}
	if p := g.result.Rejected; p != nil {
		t.Rejected = &Rejection{p.Reason.String(), p.Message}
	}
	for i, l := range found.Listeners {
		row := g.Listeners[slices.Index(g.resultListeners(), l)]
		t.Listeners[i] = MatchingListener{Listener: row, ReceivesRequest: slices.Contains(found.Receivers, l), Message: messageOf(l)}
	}
	if g.result.Table != nil {
		t.Answer = newAnswer(found, g.result.Table, capabilities)
		t.setAccess(g, found.Request.Hostname())
		t.Attempts = newAttempts(g.result.Table, found)
	}
	for _, shadowed := range found.Shadowed {
		t.Shadowed = append(t.Shadowed, ShadowedMatch{Entry: newEntry(shadowed.Entry), Reason: shadowed.Reason})
	}
	for _, o := range found.Others {
		t.Others = append(t.Others, OtherRoute{
			Route: ownerOf(o.Route), Hostnames: append([]string{}, o.Hostnames...), Matches: append([]string{}, o.Matches...),
		})
	}
	for _, u := range found.Unserved {
		t.Unserved = append(t.Unserved, UnservedRoute{Route: ownerOf(u.Route), Parent: newOwner(u.Parent), Reason: u.Reason.String(), Message: u.Message})
	}
	return t
}

// messageOf returns the message about a listener's problem, or "".
func messageOf(l *gateway.Listener) string {
	if p := cmp.Or(l.Rejected, l.Unresolved); p != nil {
		return p.Message
	}
	return ""
}

// newAnswer converts a trace's answer.
func newAnswer(found *gateway.Trace, table *routing.Table, capabilities routing.Capabilities) *Answer {
	a := &Answer{Outcome: newOutcome(found.Answer, found.Request, table.ClusterDomain), Via: []Attachment{}}
	if found.Answer != nil {
		a.Entry = new(newEntry(found.Answer))
		a.RedirectLoop = table.IsRedirectLoop(found.Answer, found.Request)
		a.Access = ingress.RenderAccess(table.Access.Of(found.Request.Host))
		if capabilities.AccessGaps != nil {
			a.BypassThrough = bypassThrough(found.Request.Hostname(), table, capabilities.AccessGaps(table))
		}
	}
	for _, l := range found.Via {
		a.Via = append(a.Via, Attachment{newOwner(l.Owner), string(l.Spec.Name)})
	}
	return a
}

// bypassThrough returns the wider hostnames through which requests for the host bypass
// Cloudflare Access, because connectors compare hostnames case-sensitively.
func bypassThrough(host string, table *routing.Table, gaps []routing.AccessGap) []string {
	decisive, _ := routing.MostSpecific(table.Access, host)
	var through []string
	for _, gap := range gaps {
		if gap.Hostname == decisive {
			through = append(through, orStar(gap.Through))
		}
	}
	return through
}

func newEntry(e *routing.Entry) Entry {
	route := e.Source.Route
	return Entry{
		Hostname: e.Hostname, Match: e.Match.String(), Scheme: e.Scheme, Route: Owner{route.Kind, route.Namespace, route.Name},
		Rule: e.Source.Rule, MatchIndex: e.Source.Match,
	}
}

func ownerOf(route *gateway.Route) Owner { return Owner{route.Kind, route.Namespace, route.Name} }
