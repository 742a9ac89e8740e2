package envoy

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// schemeMatcher returns the condition for the request scheme, as [routing.SchemeOf]
// defines it. Envoy itself writes http into a missing header, so the listeners add https
// to such a request before Envoy looks at it.
func schemeMatcher(scheme routing.Scheme) *routev3.HeaderMatcher {
	isHTTP := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: string(routing.SchemeHTTP)}, IgnoreCase: true}
	return &routev3.HeaderMatcher{
		Name:                      strings.ToLower(routing.ForwardedProto),
		HeaderMatchSpecifier:      &routev3.HeaderMatcher_StringMatch{StringMatch: isHTTP},
		InvertMatch:               scheme == routing.SchemeHTTPS,
		TreatMissingHeaderAsEmpty: scheme == routing.SchemeHTTPS, // a missing header would match neither condition
	}
}
