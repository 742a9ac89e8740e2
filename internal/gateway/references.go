package gateway

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// references looks at what listeners refer to.
type references struct {
	now          time.Time
	grants       grants
	certificates map[types.NamespacedName]Certificate
}

// referenceCheck looks at one aspect of what a listener refers to and returns
// why that does not resolve, or nil.
type referenceCheck func(references, *Listener) *Problem

// referenceChecks run in this order; the first problem is the condition's. A
// missing grant hides whether the Secret exists.
var referenceChecks = []referenceCheck{
	references.routeKinds,
	references.certificateKind,
	references.certificateGrant,
	references.certificateMaterial,
}

// resolve finds the first problem among the listener's references. It is asked
// for every listener, those with an unsupported protocol too.
func (r references) resolve(l *Listener) {
	for _, check := range referenceChecks {
		if l.Unresolved = check(r, l); l.Unresolved != nil {
			return
		}
	}
	l.certificateWarnings = r.certificateWarnings(l)
}

// httpKinds are the route kinds that HTTP and HTTPS carry. Every listener
// shares the list, so nobody may change it.
var httpKinds = []gatewayv1.RouteGroupKind{
	{Group: ptr.To[gatewayv1.Group](gatewayv1.GroupName), Kind: KindHTTPRoute},
	{Group: ptr.To[gatewayv1.Group](gatewayv1.GroupName), Kind: KindGRPCRoute},
}

// protocolKinds are the route kinds that a listener of the protocol can carry
// and that we support.
func protocolKinds(p gatewayv1.ProtocolType) []gatewayv1.RouteGroupKind {
	if !supportedProtocol(p) {
		return nil
	}
	return httpKinds
}

// supportedKinds returns the kinds for the listener's status: "If kinds are
// specified in Spec that are not supported, they MUST NOT appear in this
// list". (ListenerStatus.SupportedKinds)
func supportedKinds(l *Listener) []gatewayv1.RouteGroupKind {
	carried := protocolKinds(l.Spec.Protocol)
	wanted := allowedKinds(l)
	if len(wanted) == 0 {
		return carried
	}
	return slices.DeleteFunc(slices.Clone(carried), func(kind gatewayv1.RouteGroupKind) bool {
		return !slices.ContainsFunc(wanted, func(w gatewayv1.RouteGroupKind) bool { return sameKind(w, kind) })
	})
}

// routeKinds: "If kinds are specified in Spec that are not supported [...] an
// implementation MUST set the "ResolvedRefs" condition to "False" with the
// "InvalidRouteKinds" reason." (ListenerStatus.SupportedKinds)
func (references) routeKinds(l *Listener) *Problem {
	carried := protocolKinds(l.Spec.Protocol)
	for _, wanted := range allowedKinds(l) {
		if !slices.ContainsFunc(carried, func(kind gatewayv1.RouteGroupKind) bool { return sameKind(wanted, kind) }) {
			return &Problem{Reason: string(gatewayv1.ListenerReasonInvalidRouteKinds), Message: fmt.Sprintf(
				"allowedRoutes.kinds names %s of group %q, which a listener of protocol %s cannot carry here.",
				wanted.Kind, ptr.Deref(wanted.Group, gatewayv1.GroupName), l.Spec.Protocol)}
		}
	}
	return nil
}

func allowedKinds(l *Listener) []gatewayv1.RouteGroupKind {
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

// certificateKind: only Secrets of the core group can hold a certificate.
func (references) certificateKind(l *Listener) *Problem {
	for _, ref := range certificateRefs(l) {
		if _, ok := secretRef(l, ref); !ok {
			return &Problem{Reason: string(gatewayv1.ListenerReasonInvalidCertificateRef), Message: fmt.Sprintf(
				"certificateRef %q is of kind %s, group %q; only Secrets of the core group are supported.",
				ref.Name, ptr.Deref(ref.Kind, "Secret"), ptr.Deref(ref.Group, ""))}
		}
	}
	return nil
}

// certificateGrant: "References to a resource in different namespace are
// invalid UNLESS there is a ReferenceGrant in the target namespace that allows
// the certificate to be attached." (ListenerTLSConfig.CertificateRefs)
func (r references) certificateGrant(l *Listener) *Problem {
	for _, ref := range certificateRefs(l) {
		name, _ := secretRef(l, ref)
		if !r.grants.permits(l.referrer(), secretTarget(name)) {
			return &Problem{Reason: string(gatewayv1.ListenerReasonRefNotPermitted), Message: fmt.Sprintf(
				"certificateRef %s is in another namespace, and no ReferenceGrant there permits it from %ss of namespace %q.",
				name, l.Owner.Kind, l.Owner.Namespace)}
		}
	}
	return nil
}

// certificateMaterial: the Secret exists, and [InspectCertificate] finds
// nothing wrong with it.
func (r references) certificateMaterial(l *Listener) *Problem {
	for _, ref := range certificateRefs(l) {
		name, _ := secretRef(l, ref)
		problem := "it does not exist"
		if found, ok := r.certificates[name]; ok {
			problem = found.Problem
		}
		if problem != "" {
			return &Problem{Reason: string(gatewayv1.ListenerReasonInvalidCertificateRef), Message: fmt.Sprintf(
				"certificateRef Secret %s: %s.", name, problem)}
		}
	}
	return nil
}

// certificateWarnings says which certificates have expired, and which ones were not checked.
// They resolve all the same: visitors get the certificate of Cloudflare's edge.
func (r references) certificateWarnings(l *Listener) string {
	text := ""
	for _, ref := range certificateRefs(l) {
		name, _ := secretRef(l, ref)
		switch found := r.certificates[name]; {
		case found.Unchecked:
			text += fmt.Sprintf(" The certificate in Secret %s was not checked, because Secrets in namespace %q are not read.", name, name.Namespace)
		case r.now.After(found.NotAfter):
			text += fmt.Sprintf(" The certificate in Secret %s expired at %s.", name, found.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	return text
}
