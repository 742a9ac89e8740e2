package gateway

import (
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// expressionsLength returns the total length of the route's regular expressions, before
// they are parsed.
func (r *Route) expressionsLength() int {
	length := 0
	for i := range r.Rules {
		for j, match := range matchesOf(&r.Rules[i]) {
			length += matchExpressionsLength(&match, r.call(i, j))
		}
	}
	return length
}

func matchExpressionsLength(match *gatewayv1.HTTPRouteMatch, call *routing.Call) int {
	length := 0
	if call != nil && call.Expression {
		length += expressionLength(call.Service) + expressionLength(call.Method)
	}
	if p := match.Path; p != nil && ptr.Deref(p.Type, gatewayv1.PathMatchPathPrefix) == gatewayv1.PathMatchRegularExpression {
		length += expressionLength(ptr.Deref(p.Value, ""))
	}
	for _, h := range match.Headers {
		if ptr.Deref(h.Type, gatewayv1.HeaderMatchExact) == gatewayv1.HeaderMatchRegularExpression {
			length += expressionLength(h.Value)
		}
	}
	for _, q := range match.QueryParams {
		if ptr.Deref(q.Type, gatewayv1.QueryParamMatchExact) == gatewayv1.QueryParamMatchRegularExpression {
			length += expressionLength(q.Value)
		}
	}
	return length
}

// mayAttach reports whether a listener allows routes with the namespace and the kind, so
// that the route's expressions count for its tenant.
func (r *Route) mayAttach(p parents) bool {
	return slices.ContainsFunc(r.parentRefs, func(ref gatewayv1.ParentReference) bool {
		owner, _ := OwnerOf(ref, r.Namespace)
		parent, ok := p[owner]
		return ok && parent.notAllowed == nil && slices.ContainsFunc(parent.inSection(ref.SectionName), func(l *Listener) bool {
			return selects(ref, l) && l.routeNamespaces.admits(r.Namespace) && admitsKind(l, r.Kind)
		})
	})
}
