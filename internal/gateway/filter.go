package gateway

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// isKnownFilter reports whether the routing table can hold the filter.
func isKnownFilter(f gatewayv1.HTTPRouteFilter) bool {
	switch f.Type {
	case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
		return f.RequestHeaderModifier != nil
	case gatewayv1.HTTPRouteFilterResponseHeaderModifier:
		return f.ResponseHeaderModifier != nil
	case gatewayv1.HTTPRouteFilterRequestRedirect:
		return f.RequestRedirect != nil
	case gatewayv1.HTTPRouteFilterURLRewrite:
		return f.URLRewrite != nil
	case gatewayv1.HTTPRouteFilterRequestMirror:
		return f.RequestMirror != nil
	case gatewayv1.HTTPRouteFilterCORS:
		return f.CORS != nil
	default:
		return false
	}
}

// applyFilters adds the filters from a rule and its backends to the action. It returns
// the problems with mirrors that do not resolve. Such mirrors are omitted.
func (t translator) applyFilters(action *routing.Action, route *Route, index int) []*Problem {
	rule := &route.Rules[index]
	action.Response = responseChanges(rule.Filters)
	for _, f := range rule.Filters {
		if f.Type == gatewayv1.HTTPRouteFilterCORS {
			action.CORS = newCORS(f.CORS)
		}
	}
	filters, problems := t.newFilters(rule.Filters, route, index)
	if action.Forward == nil {
		return problems
	}
	action.Forward.Filters = filters
	next := 0
	for _, ref := range rule.BackendRefs {
		if weight(ref) == 0 {
			continue
		}
		b := &action.Forward.Backends[next]
		next++
		filters, found := t.newFilters(ref.Filters, route, index)
		b.Filters, b.Response, problems = filters, responseChanges(ref.Filters), append(problems, found...)
	}
	return problems
}

// responseChanges translates the filter that changes responses. It returns nil when
// there is none.
func responseChanges(filters []gatewayv1.HTTPRouteFilter) *routing.HeaderChanges {
	for _, f := range filters {
		if f.Type == gatewayv1.HTTPRouteFilterResponseHeaderModifier {
			return newHeaderChanges(f.ResponseHeaderModifier)
		}
	}
	return nil
}

// newFilters translates the filters that change requests. It returns nil when there
// are none.
func (t translator) newFilters(filters []gatewayv1.HTTPRouteFilter, route *Route, index int) (*routing.Filters, []*Problem) {
	if len(filters) == 0 {
		return nil, nil
	}
	result := &routing.Filters{}
	var problems []*Problem
	changes := false
	for _, f := range filters {
		switch f.Type {
		case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
			result.Request = newHeaderChanges(f.RequestHeaderModifier)
		case gatewayv1.HTTPRouteFilterURLRewrite:
			result.Rewrite = routing.Rewrite{Hostname: string(ptr.Deref(f.URLRewrite.Hostname, "")), Path: newPathChange(f.URLRewrite.Path)}
		case gatewayv1.HTTPRouteFilterRequestMirror:
			mirror, problem := t.newMirror(f.RequestMirror, route)
			if problem != nil {
				problems = append(problems, &Problem{Reason: problem.Reason, Message: fmt.Sprintf("Rule %d, filter RequestMirror: %s.", index, problem.Message)})
				continue
			}
			result.Mirrors = append(result.Mirrors, mirror)
		default:
			continue
		}
		changes = true
	}
	if !changes {
		return nil, problems
	}
	return result, problems
}

func newHeaderChanges(f *gatewayv1.HTTPHeaderFilter) *routing.HeaderChanges {
	c := &routing.HeaderChanges{Remove: slices.Clone(f.Remove)}
	for _, h := range f.Set {
		c.Set = append(c.Set, routing.Header{Name: string(h.Name), Value: h.Value})
	}
	for _, h := range f.Add {
		c.Add = append(c.Add, routing.Header{Name: string(h.Name), Value: h.Value})
	}
	return c
}

// newMirror translates a mirror: "Only one of Fraction or Percent may be specified.
// If neither field is specified, 100% of requests will be mirrored."
// (HTTPRequestMirrorFilter.Percent)
func (t translator) newMirror(f *gatewayv1.HTTPRequestMirrorFilter, route *Route) (routing.Mirror, *Problem) {
	backend, problem := t.backends.resolve(f.BackendRef, route)
	m := routing.Mirror{Backend: backend, Numerator: 1, Denominator: 1}
	switch {
	case f.Percent != nil:
		m.Numerator, m.Denominator = *f.Percent, 100
	case f.Fraction != nil:
		m.Numerator, m.Denominator = f.Fraction.Numerator, ptr.Deref(f.Fraction.Denominator, 100)
	}
	return m, problem
}

func newTimeouts(t *gatewayv1.HTTPRouteTimeouts) *routing.Timeouts {
	if t == nil {
		return nil
	}
	return &routing.Timeouts{Request: newDuration(t.Request), Backend: newDuration(t.BackendRequest)}
}

// newDuration parses a GEP-2257 duration, which is always a valid Go duration. The CRD
// rejects other values.
func newDuration(d *gatewayv1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	parsed, err := time.ParseDuration(string(*d))
	if err != nil {
		return nil
	}
	return &parsed
}

// newRetry translates a retry policy. By default, a request is repeated once: "When this field
// is unspecified, the number of times to attempt to retry a backend request is
// implementation-specific." (HTTPRouteRetry.Attempts)
func newRetry(r *gatewayv1.HTTPRouteRetry) *routing.Retry {
	if r == nil {
		return nil
	}
	retry := &routing.Retry{Attempts: ptr.Deref(r.Attempts, 1)}
	for _, code := range r.Codes {
		retry.Codes = append(retry.Codes, int(code))
	}
	return retry
}

func newCORS(f *gatewayv1.HTTPCORSFilter) *routing.CORS {
	return &routing.CORS{
		AllowOrigins: texts(f.AllowOrigins), AllowMethods: texts(f.AllowMethods), AllowHeaders: texts(f.AllowHeaders), ExposeHeaders: texts(f.ExposeHeaders),
		AllowCredentials: ptr.Deref(f.AllowCredentials, false), MaxAge: time.Duration(f.MaxAge) * time.Second,
	}
}

func texts[S ~string](values []S) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}
