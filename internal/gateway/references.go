package gateway

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// KindHTTPRoute is the kind of the routes that ingress rules can serve.
const KindHTTPRoute = "HTTPRoute"

// referenceCheck looks at one aspect of what a listener references and
// returns why it does not resolve, or nil.
type referenceCheck func(*Listener) *Problem

// referenceChecks run in this order; the first problem is the condition's.
var referenceChecks = []referenceCheck{
	invalidRouteKinds,
	certificateNotPermitted,
	certificateNotChecked,
}

// unresolvedReference returns the first problem among the listener's
// references, or nil. It is asked for every listener, those with an
// unsupported protocol too.
func unresolvedReference(l *Listener) *Problem {
	for _, check := range referenceChecks {
		if problem := check(l); problem != nil {
			return problem
		}
	}
	return nil
}

// carriedKinds are the route kinds that a listener of the protocol can carry
// and that we support.
func carriedKinds(p gatewayv1.ProtocolType) []gatewayv1.RouteGroupKind {
	if !supportedProtocol(p) {
		return nil
	}
	return []gatewayv1.RouteGroupKind{{Group: ptr.To(gatewayv1.Group(gatewayv1.GroupName)), Kind: KindHTTPRoute}}
}

// supportedKinds returns the kinds for the listener's status: "If kinds are
// specified in Spec that are not supported, they MUST NOT appear in this
// list". (ListenerStatus.SupportedKinds)
func supportedKinds(l *Listener) []gatewayv1.RouteGroupKind {
	carried := carriedKinds(l.Spec.Protocol)
	wanted := wantedKinds(l)
	if len(wanted) == 0 {
		return carried
	}
	return slices.DeleteFunc(carried, func(kind gatewayv1.RouteGroupKind) bool {
		return !slices.ContainsFunc(wanted, func(w gatewayv1.RouteGroupKind) bool { return sameKind(w, kind) })
	})
}

// invalidRouteKinds: "If kinds are specified in Spec that are not supported
// [...] an implementation MUST set the "ResolvedRefs" condition to "False"
// with the "InvalidRouteKinds" reason." (ListenerStatus.SupportedKinds)
func invalidRouteKinds(l *Listener) *Problem {
	carried := carriedKinds(l.Spec.Protocol)
	for _, wanted := range wantedKinds(l) {
		if !slices.ContainsFunc(carried, func(kind gatewayv1.RouteGroupKind) bool { return sameKind(wanted, kind) }) {
			return &Problem{string(gatewayv1.ListenerReasonInvalidRouteKinds), fmt.Sprintf(
				"allowedRoutes.kinds names %s of group %q, which a listener of protocol %s cannot carry here.",
				wanted.Kind, ptr.Deref(wanted.Group, gatewayv1.GroupName), l.Spec.Protocol)}
		}
	}
	return nil
}

func wantedKinds(l *Listener) []gatewayv1.RouteGroupKind {
	if l.Spec.AllowedRoutes == nil {
		return nil
	}
	return l.Spec.AllowedRoutes.Kinds
}

func sameKind(a, b gatewayv1.RouteGroupKind) bool {
	return a.Kind == b.Kind && ptr.Deref(a.Group, gatewayv1.GroupName) == ptr.Deref(b.Group, gatewayv1.GroupName)
}

// admitsKind reports whether routes of the kind may attach to the listener.
func admitsKind(l *Listener, kind string) bool {
	return slices.ContainsFunc(l.SupportedKinds, func(k gatewayv1.RouteGroupKind) bool { return string(k.Kind) == kind })
}

// certificateNotPermitted refuses every certificateRef that leaves the
// namespace of the listener's owner: grants are not looked at, so nothing
// permits it.
func certificateNotPermitted(l *Listener) *Problem {
	for _, ref := range certificateRefs(l) {
		if ref.Namespace != nil && string(*ref.Namespace) != l.Owner.Namespace {
			return &Problem{string(gatewayv1.ListenerReasonRefNotPermitted), fmt.Sprintf(
				"certificateRef %s/%s is in another namespace, and no ReferenceGrant permits it.", *ref.Namespace, ref.Name)}
		}
	}
	return nil
}

// certificateNotChecked fails closed: what was not validated is not resolved.
func certificateNotChecked(l *Listener) *Problem {
	for _, ref := range certificateRefs(l) {
		return &Problem{string(gatewayv1.ListenerReasonInvalidCertificateRef), fmt.Sprintf(
			"certificateRef %q is not checked yet; a listener without a tls block is served with the certificate of Cloudflare's edge.", ref.Name)}
	}
	return nil
}

func certificateRefs(l *Listener) []gatewayv1.SecretObjectReference {
	if l.Spec.TLS == nil {
		return nil
	}
	return l.Spec.TLS.CertificateRefs
}
