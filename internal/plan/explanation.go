package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Explanation traces one request through every Gateway that has a listener for its
// host. Its JSON encoding is stable.
type Explanation struct {
	Request gateway.Request `json:"request"`
	Traces  []Trace         `json:"traces"`

	terminating []types.NamespacedName
}

// Trace describes how one Gateway processes a request.
type Trace struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Listeners are the listeners whose hostname covers the host of the request, the
	// most specific hostname first.
	Listeners []MatchingListener `json:"listeners"`
	// Answer is the rule that answers the request; nil if the Gateway is not accepted.
	Answer *Answer `json:"answer"`
	// Shadowed are the other matches of the request, the next in precedence first.
	Shadowed []ShadowedMatch `json:"shadowed"`
	// Unserved are the routes that match the request, but that the Gateway does not
	// serve for it.
	Unserved []UnservedRoute `json:"unserved"`
	// Others are the routes that attach to the listeners of the request, but match
	// other requests. The list is empty if a route answers the request.
	Others []OtherRoute `json:"others"`

	// Rejected is the reason why the Gateway is not accepted; nil if it is accepted.
	Rejected *Rejection `json:"rejected,omitempty"`
	// Problem is the reason why the controller does not push the configuration, or
	// pushes it to a tunnel other than the one in the settings; empty if there is none.
	Problem string `json:"problem,omitempty"`
}

// Rejection is the reason why a Gateway is not accepted.
type Rejection struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// MatchingListener is a listener whose hostname covers the host of the request.
type MatchingListener struct {
	Listener
	// ReceivesRequest reports whether the listener receives the request: it has the
	// most specific hostname of the listeners that claim their hostname.
	ReceivesRequest bool `json:"receivesRequest"`
	// Message describes the problem of the listener; empty if there is none.
	Message string `json:"message,omitempty"`
}

// Answer is the rule that answers the request.
type Answer struct {
	Rule
	// Failure is the reason why the rule answers with an error instead of a backend;
	// empty if it does not.
	Failure string `json:"failure,omitempty"`
	// Via are the listeners that the route of the rule attaches to.
	Via []Attachment `json:"via"`
}

// Attachment identifies a listener.
type Attachment struct {
	Owner    Owner  `json:"owner"`
	Listener string `json:"listener"`
}

// String returns the owner and the name of the listener.
func (a Attachment) String() string { return fmt.Sprintf("%s listener %s", a.Owner, a.Listener) }

// ShadowedMatch is a match of the request that does not answer it, because another
// match takes precedence.
type ShadowedMatch struct {
	Rule
	// CoveredBy is the number of the rule that matches all requests of this match, so
	// that the tunnel has no rule for it; nil if the tunnel has a rule for it.
	CoveredBy *int `json:"coveredBy,omitempty"`
	// Reason is the reason why the other match takes precedence.
	Reason string `json:"reason"`
}

// Rule is an ingress rule of the tunnel, and the match of a route that it serves.
type Rule struct {
	// Number is the index of the rule, from 0; nil if the tunnel has no such rule.
	Number   *int   `json:"number"`
	Hostname string `json:"hostname"`
	Path     string `json:"path"`
	Service  string `json:"service"`
	// Route is the route of the rule; nil for the catch-all rule of a hostname or of
	// the tunnel.
	Route *Owner `json:"route"`
	// RouteRule and Match are the indexes of the rule in the route and of the match in
	// that rule.
	RouteRule int `json:"rule"`
	Match     int `json:"match"`
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

// OtherRoute is a route that matches other hostnames or other paths.
type OtherRoute struct {
	Route     Owner    `json:"route"`
	Hostnames []string `json:"hostnames"`
	Paths     []string `json:"paths"`
}

// Explain explains which rule answers a request.
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

// trace converts the trace of a request through this Gateway.
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
		s := &found.Shadowed[i]
		t.Shadowed = append(t.Shadowed, ShadowedMatch{Rule: newRule(&s.Rule, s.Index), CoveredBy: indexOrNil(s.CoveredBy), Reason: s.Reason})
	}
	for _, o := range found.Others {
		t.Others = append(t.Others, OtherRoute{
			Route: ownerOf(o.Route), Hostnames: append([]string{}, o.Hostnames...), Paths: append([]string{}, o.Paths...),
		})
	}
	for _, u := range found.Unserved {
		t.Unserved = append(t.Unserved, UnservedRoute{Route: ownerOf(u.Route), Parent: newOwner(u.Parent), Reason: u.Reason, Message: u.Message})
	}
	return t
}

// messageOf returns the message about the problem of a listener, or "".
func messageOf(l *gateway.Listener) string {
	if p := cmp.Or(l.Rejected, l.Unresolved); p != nil {
		return p.Message
	}
	return ""
}

// newRule converts a rule. index is negative if the tunnel has no such rule.
func newRule(rule *gateway.Rule, index int) Rule {
	r := Rule{Hostname: rule.Hostname, Path: rule.Path, Service: rule.Service, RouteRule: rule.RuleIndex, Match: rule.MatchIndex, Number: indexOrNil(index)}
	if rule.Route != nil {
		r.Route = new(ownerOf(rule.Route))
	}
	return r
}

// indexOrNil returns nil for a negative index.
func indexOrNil(index int) *int {
	if index < 0 {
		return nil
	}
	return &index
}

func ownerOf(route *gateway.Route) Owner { return Owner{route.Kind, route.Namespace, route.Name} }
