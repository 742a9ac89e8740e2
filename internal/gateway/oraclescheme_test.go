package gateway_test

import (
	"cmp"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// isSpecRedirectToHTTPS reports whether a rule keeps everything but the scheme, which
// becomes https.
func isSpecRedirectToHTTPS(rule specRule) bool {
	filters := slices.Clone(rule.Filters)
	for _, backend := range weightedBackends(rule) {
		filters = append(filters, backend.Filters...)
	}
	redirects := 0
	for _, f := range filters {
		switch f.Type {
		case gatewayv1.HTTPRouteFilterRequestHeaderModifier, gatewayv1.HTTPRouteFilterResponseHeaderModifier:
		case gatewayv1.HTTPRouteFilterRequestRedirect:
			redirects++
			r := f.RequestRedirect
			if text(r.Scheme) != "https" || r.Hostname != nil || r.Path != nil || r.Port != nil && *r.Port != 443 {
				return false
			}
		default:
			return false
		}
	}
	return redirects == 1
}

// mayRedirect reports whether the data plane and one of the listeners serve the rule, if
// it is a redirect to https.
func (o *oracle) mayRedirect(rule specRule, listeners []*claim) bool {
	return !isSpecRedirectToHTTPS(rule) || o.everything && slices.ContainsFunc(listeners, isInsecure)
}

func isInsecure(c *claim) bool { return c.Protocol == gatewayv1.HTTPProtocolType }

func isSecure(c *claim) bool { return c.Protocol == gatewayv1.HTTPSProtocolType }

// served returns the served listeners with the hostname that satisfy the condition.
func (o *oracle) served(hostname string, condition func(*claim) bool) []*claim {
	return slices.DeleteFunc(slices.Clone(o.claims), func(c *claim) bool {
		return !c.claims || !c.serves() || c.hostname() != hostname || !condition(c)
	})
}

// best returns the match that answers the request, or nil.
func (o *oracle) best(r routing.Request) *candidate {
	group, found := o.groupOf(r.Host)
	if !found {
		return nil
	}
	insecure, secure, isHTTP := o.served(group, isInsecure), o.served(group, isSecure), r.Scheme == routing.SchemeHTTP
	switch {
	case !o.everything:
		return first(o.withoutScheme(insecure, secure, r))
	case len(insecure) > 0 && len(secure) > 0 && isHTTP:
		return first(o.through(insecure, group, r))
	case len(insecure) > 0 && len(secure) > 0:
		return first(slices.DeleteFunc(o.through(secure, group, r), o.isToHTTPS))
	case len(secure) > 0:
		return o.bestOfHTTPS(secure, group, r)
	case isHTTP:
		return first(o.through(insecure, group, r))
	default:
		return o.bestOfHTTP(insecure, group, r)
	}
}

// bestOfHTTPS returns the match for a hostname with HTTPS listeners alone.
func (o *oracle) bestOfHTTPS(secure []*claim, group string, r routing.Request) *candidate {
	if r.Scheme == routing.SchemeHTTP {
		listeners := o.wider(group, secure[0].owner, isInsecure)
		if len(listeners) == 0 {
			listeners = o.wider(group, o.gatewayOwner(), isInsecure)
		}
		redirect := first(slices.DeleteFunc(o.through(listeners, group, r), func(c *candidate) bool {
			return !o.isToHTTPS(c) || c.route.Namespace != listeners[0].owner.Namespace
		}))
		if redirect != nil {
			return redirect
		}
	}
	return first(slices.DeleteFunc(o.through(secure, group, r), o.isToHTTPS))
}

// bestOfHTTP returns the match for https and a hostname with HTTP listeners alone.
func (o *oracle) bestOfHTTP(insecure []*claim, group string, r routing.Request) *candidate {
	for _, c := range o.through(insecure, group, r) {
		if !o.isToHTTPS(c) {
			return c
		}
		if secure := o.wider(group, insecure[0].owner, isSecure); len(secure) > 0 {
			return first(slices.DeleteFunc(o.through(secure, group, r), o.isToHTTPS))
		}
	}
	return nil
}

// mayRefuse reports whether an https request that an HTTPS listener answers in place of a
// redirect may also get the status 404, because the table cannot hold every such answer.
func (o *oracle) mayRefuse(r routing.Request) bool {
	group, _ := o.groupOf(r.Host)
	insecure := o.served(group, isInsecure)
	if !o.everything || r.Scheme == routing.SchemeHTTP || len(insecure) == 0 || len(o.served(group, isSecure)) > 0 {
		return false
	}
	best := first(o.through(insecure, group, r))
	secure := o.wider(group, insecure[0].owner, isSecure)
	if best == nil || !o.isToHTTPS(best) || len(secure) == 0 {
		return false
	}
	isExact := routing.IsExact(group) || slices.Contains(best.route.hostnames, r.Host)
	return !isExact || !matchesAll(best.route.rules[best.rule].matches[best.match]) || o.countMatches(slices.Concat(secure, insecure)) > 8
}

func matchesAll(m specMatch) bool {
	kind, value := pathOf(m.HTTPRouteMatch)
	return kind == gatewayv1.PathMatchPathPrefix && value == "/" && len(m.Headers)+len(m.QueryParams) == 0 && m.Method == nil
}

// countMatches counts the matches in the routes. A match with an expression counts as
// many.
func (o *oracle) countMatches(listeners []*claim) int {
	matches := 0
	for _, c := range listeners {
		for _, route := range o.attached[c] {
			for _, rule := range route.rules {
				for _, match := range rule.matches {
					matches += 1 + 20*len(match.expressions())
				}
			}
		}
	}
	return matches
}

// expected describes the answer to the request, or no match if the table may also refuse
// the request and does.
func (o *oracle) expected(r routing.Request, got string) string {
	if got == noMatch && o.mayRefuse(r) {
		return noMatch
	}
	return o.describeAnswer(r)
}

func (o *oracle) isToHTTPS(c *candidate) bool { return isSpecRedirectToHTTPS(c.route.rules[c.rule]) }

func (o *oracle) gatewayOwner() gateway.Owner {
	return o.claimsOf(gateway.KindGateway, o.snapshot.Gateway, []gatewayv1.Listener{{}}, true)[0].owner
}

// wider returns the owner's served listeners with the most specific wider hostname.
func (o *oracle) wider(group string, owner gateway.Owner, condition func(*claim) bool) []*claim {
	var widest []*claim
	for _, c := range o.claims {
		if !c.claims || !c.serves() || c.owner != owner || !condition(c) || c.hostname() == group || !hostMatches(c.hostname(), group) {
			continue
		}
		if len(widest) == 0 || specificity(c.hostname()) > specificity(widest[0].hostname()) {
			widest = o.served(c.hostname(), condition)
		}
	}
	return widest
}

// through returns the matches in routes that the listeners admit, for requests that
// belong to the group, in order of precedence.
func (o *oracle) through(listeners []*claim, group string, r routing.Request) []*candidate {
	var found []*candidate
	for _, route := range o.routes {
		var via []*claim
		for _, c := range listeners {
			if slices.Contains(o.attached[c], route) {
				via = append(via, c)
			}
		}
		if len(via) == 0 {
			continue
		}
		for _, c := range o.candidates(route, o.servedFor(via[0], route, group), r) {
			c.via = via
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *candidate) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		default:
			return 0
		}
	})
	return found
}

// withoutScheme returns the matches where the data plane does not know the scheme. A
// match from HTTP listeners comes after the same match from HTTPS listeners.
func (o *oracle) withoutScheme(insecure, secure []*claim, r routing.Request) []*candidate {
	if len(secure) == 0 || len(insecure) == 0 {
		all := slices.Concat(insecure, secure)
		if len(all) == 0 {
			return nil
		}
		return o.through(all, all[0].hostname(), r)
	}
	found := o.through(slices.Concat(secure, insecure), secure[0].hostname(), r)
	found = slices.DeleteFunc(found, func(c *candidate) bool {
		return !slices.ContainsFunc(c.via, isSecure) && !o.isActionSupported(c.route.rules[c.rule])
	})
	slices.SortStableFunc(found, func(a, b *candidate) int {
		order := -slices.Compare(a.precedence, b.precedence)
		return cmp.Or(order, cmp.Compare(after(a), after(b)))
	})
	return found
}

// after is 1 for a match that only HTTP listeners admit.
func after(c *candidate) int {
	if slices.ContainsFunc(c.via, isSecure) {
		return 0
	}
	return 1
}

func first(candidates []*candidate) *candidate {
	if len(candidates) == 0 {
		return nil
	}
	return candidates[0]
}
