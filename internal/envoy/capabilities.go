package envoy

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Capabilities returns what Envoy can express, and which values it must not get.
func Capabilities() routing.Capabilities {
	return routing.Capabilities{
		Match:            unsupportedFields,
		Action:           unsupportedActions,
		Backend:          func(string, routing.Protocol) string { return "" },
		BackendTLS:       func(*routing.BackendTLS) string { return "" },
		ErrorStatus:      errorStatus,
		Protocols:        []routing.Protocol{routing.ProtocolHTTP, routing.ProtocolHTTPS, routing.ProtocolH2C},
		Path:             normalizePath,
		RequestPath:      normalizePath,
		Expression:       unsupportedExpression,
		FollowsEndpoints: true,
		NeedsClusterIP:   true,

		PresentsCertificates: true,
		RepeatsEntries:       true,
		KnowsScheme:          true,
		Cost:                 entryCost,
	}
}

// errorStatus returns "a 500 status code" (HTTPRouteRule.BackendRefs) for HTTPRoutes. For
// GRPCRoutes it is 503, which gRPC clients read as UNAVAILABLE: "the Implementation MUST
// return `UNAVAILABLE` gRPC status" (GRPCRouteRule.BackendRefs).
func errorStatus(kind string) int {
	if kind == routing.KindGRPCRoute {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func unsupportedFields(match gatewayv1.HTTPRouteMatch) []string {
	var fields []string
	for _, h := range match.Headers {
		if problem := matchedHeaderProblem(string(h.Name)); problem != "" {
			fields = append(fields, problem)
		}
	}
	if match.Method != nil && *match.Method == gatewayv1.HTTPMethodConnect {
		fields = append(fields, "method CONNECT")
	}
	return fields
}

func unsupportedActions(rule *gatewayv1.HTTPRouteRule) []string {
	var parts parts
	for _, f := range rule.Filters {
		parts.addFilter("filter", f)
	}
	backends := routing.WeightedBackends(rule) // the filters of the others have no effect
	for _, backend := range backends {
		for _, f := range backend.Filters {
			parts.addFilter("backendRef filter", f)
		}
	}
	parts.addCombinations(rule, backends)
	parts.addRetry(rule.Retry)
	return parts
}

// parts are the unsupported parts of an action, each once.
type parts []string

func (p *parts) add(part string) {
	if !slices.Contains(*p, part) {
		*p = append(*p, part)
	}
}

// addFilter adds the problem that a value in the filter has.
func (p *parts) addFilter(noun string, f gatewayv1.HTTPRouteFilter) {
	problem := ""
	switch f.Type {
	case gatewayv1.HTTPRouteFilterRequestHeaderModifier:
		problem = modifierProblem(f.RequestHeaderModifier)
	case gatewayv1.HTTPRouteFilterResponseHeaderModifier:
		problem = modifierProblem(f.ResponseHeaderModifier)
	case gatewayv1.HTTPRouteFilterURLRewrite:
		if f.URLRewrite != nil {
			problem = pathModifierProblem(f.URLRewrite.Path)
		}
	case gatewayv1.HTTPRouteFilterRequestRedirect:
		if f.RequestRedirect != nil {
			problem = pathModifierProblem(f.RequestRedirect.Path)
		}
	case gatewayv1.HTTPRouteFilterCORS:
		problem = corsProblem(f.CORS)
	default: // a mirror has no text, and package gateway refuses unknown filters
	}
	if problem != "" {
		p.add(fmt.Sprintf("%s %s: %s", noun, f.Type, problem))
	}
}

func pathModifierProblem(m *gatewayv1.HTTPPathModifier) string {
	if m == nil {
		return ""
	}
	if problem := replacementProblem(ptr.Deref(m.ReplaceFullPath, "")); problem != "" {
		return problem
	}
	return replacementProblem(ptr.Deref(m.ReplacePrefixMatch, ""))
}

// corsProblem checks the values that become response headers.
func corsProblem(f *gatewayv1.HTTPCORSFilter) string {
	if f == nil {
		return ""
	}
	for _, name := range slices.Concat(f.AllowHeaders, f.ExposeHeaders) {
		if name != "*" && !token.MatchString(string(name)) {
			return fmt.Sprintf("header name %q, which is not valid", name)
		}
	}
	for _, method := range f.AllowMethods {
		if method != "*" && !token.MatchString(string(method)) {
			return fmt.Sprintf("method %q, which is not valid", method)
		}
	}
	return ""
}

// addCombinations adds the combinations that one Envoy route cannot express.
func (p *parts) addCombinations(rule *gatewayv1.HTTPRouteRule, backends []gatewayv1.HTTPBackendRef) {
	for _, backend := range backends {
		for _, f := range backend.Filters {
			if len(backends) > 1 && isRouteFilter(f) {
				p.add(fmt.Sprintf("backendRef filter %s with several backendRefs", f.Type))
			}
			if rewritesPath(f) && slices.ContainsFunc(rule.Filters, rewritesPath) {
				p.add("path rewrites in both the rule and a backendRef")
			}
		}
	}
	if hasFilter(rule.Filters, gatewayv1.HTTPRouteFilterCORS) && redirects(rule.Filters, backends) {
		p.add(routing.IncompatibleFilters)
	}
	if replacesPrefix(rule.Filters, backends) && slices.ContainsFunc(rule.Matches, hasNoPrefix) {
		p.add("ReplacePrefixMatch with a match that is not a PathPrefix")
	}
}

func hasFilter(filters []gatewayv1.HTTPRouteFilter, kind gatewayv1.HTTPRouteFilterType) bool {
	return slices.ContainsFunc(filters, func(f gatewayv1.HTTPRouteFilter) bool { return f.Type == kind })
}

// redirects reports whether the rule or its only backend answers with a redirect.
func redirects(filters []gatewayv1.HTTPRouteFilter, backends []gatewayv1.HTTPBackendRef) bool {
	return hasFilter(filters, gatewayv1.HTTPRouteFilterRequestRedirect) ||
		len(backends) == 1 && hasFilter(backends[0].Filters, gatewayv1.HTTPRouteFilterRequestRedirect)
}

// isRouteFilter reports whether Envoy applies the filter to a route, and not to one of its
// backends.
func isRouteFilter(f gatewayv1.HTTPRouteFilter) bool {
	return f.Type == gatewayv1.HTTPRouteFilterRequestMirror || f.Type == gatewayv1.HTTPRouteFilterRequestRedirect || rewritesPath(f)
}

func rewritesPath(f gatewayv1.HTTPRouteFilter) bool {
	return f.URLRewrite != nil && f.URLRewrite.Path != nil
}

func replacesPrefix(filters []gatewayv1.HTTPRouteFilter, backends []gatewayv1.HTTPBackendRef) bool {
	replaces := func(f gatewayv1.HTTPRouteFilter) bool {
		return f.URLRewrite != nil && isPrefixModifier(f.URLRewrite.Path) || f.RequestRedirect != nil && isPrefixModifier(f.RequestRedirect.Path)
	}
	return slices.ContainsFunc(filters, replaces) || slices.ContainsFunc(backends, func(b gatewayv1.HTTPBackendRef) bool {
		return slices.ContainsFunc(b.Filters, replaces)
	})
}

func isPrefixModifier(m *gatewayv1.HTTPPathModifier) bool {
	return m != nil && m.Type == gatewayv1.PrefixMatchHTTPPathModifier
}

// hasNoPrefix reports whether the match is not a prefix match, which is the default.
func hasNoPrefix(m gatewayv1.HTTPRouteMatch) bool {
	return m.Path != nil && ptr.Deref(m.Path.Type, gatewayv1.PathMatchPathPrefix) != gatewayv1.PathMatchPathPrefix
}
