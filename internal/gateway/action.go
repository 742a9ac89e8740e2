package gateway

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// ruleAction is what one route rule does.
type ruleAction struct {
	action routing.Action
	// unsupported are the parts that the data plane cannot express.
	unsupported []string
	// envoySupports reports whether Envoy would support these parts.
	envoySupports bool
	// problems are the references that do not resolve.
	problems []*Problem
}

// translator translates rules for a data plane.
type translator struct {
	capabilities routing.Capabilities
	expressions  expressions
	backends     backendResolver
	// envoy has the capabilities of Envoy if the data plane has ingress rules, or nil.
	envoy *routing.Capabilities
}

// action returns what a rule in the route does.
//
// "If *all* entries in BackendRefs are invalid, and there are also no filters specified
// in this route rule, *all* traffic which matches this rule MUST receive a 500 status
// code." (HTTPRouteRule.BackendRefs)
//
// A backend with weight 0 receives no requests, so it affects only the route's
// ResolvedRefs condition.
func (t translator) action(route *Route, index int) ruleAction {
	rule := &route.Rules[index]
	result := ruleAction{unsupported: unsupportedParts(rule, t.capabilities)}
	var weighted []routing.WeightedBackend
	var unresolved *Problem
	for i, ref := range rule.BackendRefs {
		backend, problem := t.backends.resolve(ref.BackendObjectReference, route)
		if problem != nil {
			result.problems = append(result.problems, &Problem{Reason: problem.Reason, Message: fmt.Sprintf("Rule %d, backendRef %d: %s.", index, i, problem.Message)})
		}
		if weight(ref) == 0 {
			continue
		}
		w := routing.WeightedBackend{Backend: backend, Weight: weight(ref)}
		if problem != nil {
			unresolved = cmp.Or(unresolved, problem)
			w.Status = t.capabilities.ErrorStatus(route.Kind)
		}
		weighted = append(weighted, w)
	}
	for _, w := range weighted {
		if w.Status == 0 {
			result.refuse(t.capabilities.Backend(route.Kind, w.Backend.Protocol))
		}
	}
	result.envoySupports = len(result.unsupported) > 0 && t.envoySupportsAction(route.Kind, rule, weighted)
	result.action = t.newAction(route, index, result, weighted, unresolved)
	if len(result.unsupported) == 0 {
		result.problems = append(result.problems, t.applyFilters(&result.action, route, index)...)
	}
	return result
}

// envoySupportsAction reports whether Envoy would support an action that ingress rules do not.
func (t translator) envoySupportsAction(kind string, rule *gatewayv1.HTTPRouteRule, weighted []routing.WeightedBackend) bool {
	return t.envoy != nil && len(unsupportedParts(rule, *t.envoy)) == 0 &&
		!slices.ContainsFunc(weighted, func(w routing.WeightedBackend) bool {
			return w.Status == 0 && t.envoy.Backend(kind, w.Backend.Protocol) != ""
		})
}

// refuse adds an unsupported part, unless the reason is empty or known already.
func (a *ruleAction) refuse(reason string) {
	if reason != "" && !slices.Contains(a.unsupported, reason) {
		a.unsupported = append(a.unsupported, reason)
	}
}

// newAction returns the action of a rule without its filters.
func (t translator) newAction(route *Route, index int, a ruleAction, weighted []routing.WeightedBackend, unresolved *Problem) routing.Action {
	rule, status := &route.Rules[index], t.capabilities.ErrorStatus(route.Kind)
	fail := func(reason conditions.Reason, cause string) routing.Action {
		return routing.Action{Status: status, Problem: &routing.Problem{Reason: reason.String(), Cause: cause}}
	}
	switch {
	case len(a.unsupported) > 0:
		return fail(conditions.ReasonUnsupportedValue, describeUnsupportedParts(a.unsupported, a.envoySupports, message.MaxSize/2))
	case redirectOf(rule) != nil:
		return routing.Action{Redirect: newRedirect(redirectOf(rule))}
	case len(rule.BackendRefs) == 0:
		return fail(conditions.ReasonBackendNotFound, "no backendRefs")
	case len(weighted) == 0:
		return fail(conditions.ReasonBackendNotFound, "every backendRef has the weight 0")
	case !slices.ContainsFunc(weighted, func(w routing.WeightedBackend) bool { return w.Status == 0 }):
		return fail(unresolved.Reason, unresolved.Message)
	default:
		return routing.Action{Forward: &routing.Forward{
			Backends: weighted, Timeouts: newTimeouts(rule.Timeouts), Retry: newRetry(rule.Retry),
		}}
	}
}

// sessionPersistence names the field that no data plane supports, and the alternatives.
const sessionPersistence = "sessionPersistence: instead, keep the session in a cookie of the application, " +
	"or with Envoy, set sessionAffinity: ClientIP in the Service"

// unsupportedParts returns the parts in a rule's action that the data plane cannot
// express, and the parts that this controller supports on no data plane.
func unsupportedParts(rule *gatewayv1.HTTPRouteRule, c routing.Capabilities) []string {
	a := ruleAction{unsupported: c.Action(rule)}
	for _, filter := range rule.Filters {
		if !isKnownFilter(filter) {
			a.refuse(fmt.Sprintf("filter %s", filter.Type))
		}
	}
	if rule.SessionPersistence != nil {
		a.refuse(sessionPersistence)
	}
	weighted := routing.WeightedBackends(rule)
	for _, backend := range weighted {
		for _, filter := range backend.Filters {
			isShared := filter.Type == gatewayv1.HTTPRouteFilterCORS || filter.Type == gatewayv1.HTTPRouteFilterRequestRedirect && len(weighted) > 1
			if !isKnownFilter(filter) || isShared {
				a.refuse(fmt.Sprintf("backendRef filter %s", filter.Type))
			}
		}
	}
	return a.unsupported
}

// weight returns the weight of a backend: "If unspecified, weight defaults to 1."
// (BackendRef.Weight)
func weight(backend gatewayv1.HTTPBackendRef) int32 { return ptr.Deref(backend.Weight, 1) }

// redirectOf returns the redirect from a rule or its only backend, or nil.
func redirectOf(rule *gatewayv1.HTTPRouteRule) *gatewayv1.HTTPRequestRedirectFilter {
	if redirect := redirectIn(rule.Filters); redirect != nil {
		return redirect
	}
	if weighted := routing.WeightedBackends(rule); len(weighted) == 1 {
		return redirectIn(weighted[0].Filters)
	}
	return nil
}

func redirectIn(filters []gatewayv1.HTTPRouteFilter) *gatewayv1.HTTPRequestRedirectFilter {
	for _, filter := range filters {
		if filter.Type == gatewayv1.HTTPRouteFilterRequestRedirect {
			return filter.RequestRedirect
		}
	}
	return nil
}

// newRedirect translates a redirect, whose status is 302 by default.
// (HTTPRequestRedirectFilter.StatusCode)
func newRedirect(f *gatewayv1.HTTPRequestRedirectFilter) *routing.Redirect {
	return &routing.Redirect{
		Scheme: ptr.Deref(f.Scheme, ""), Hostname: string(ptr.Deref(f.Hostname, "")), Path: newPathChange(f.Path),
		Port: ptr.Deref(f.Port, 0), Status: ptr.Deref(f.StatusCode, 302),
	}
}

func newPathChange(m *gatewayv1.HTTPPathModifier) *routing.PathChange {
	switch {
	case m == nil:
		return nil
	case m.Type == gatewayv1.PrefixMatchHTTPPathModifier:
		return &routing.PathChange{Prefix: true, Value: ptr.Deref(m.ReplacePrefixMatch, "")}
	default:
		return &routing.PathChange{Value: ptr.Deref(m.ReplaceFullPath, "")}
	}
}
