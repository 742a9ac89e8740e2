package gateway

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

type references struct {
	now          time.Time
	grants       grants
	certificates map[types.NamespacedName]Certificate
	// notRead are the Secrets that the controller does not read, because the listeners in
	// a namespace refer to too many.
	notRead map[types.NamespacedName]bool
}

func newReferences(s *Snapshot, permitted grants) references {
	r := references{now: s.Now, grants: permitted, certificates: s.Certificates}
	if countCertificateRefs(s) > maxSecretsPerNamespace { // otherwise no namespace is above the limit
		_, r.notRead = limitSecrets(s, permitted)
	}
	return r
}

// referenceCheck checks one aspect of the references of a listener and returns why a
// reference is not resolved, or nil.
type referenceCheck func(references, *Listener) *Problem

// referenceChecks run in this order, and the condition reports the first problem.
// Grants are checked before Secrets, so that a message never reveals whether a
// Secret in another namespace exists.
var referenceChecks = []referenceCheck{
	references.routeKinds,
	references.certificateKind,
	references.certificateGrant,
	references.certificateMaterial,
}

// resolve sets l.Unresolved to the first problem with the references of the listener. It
// applies to every listener, including listeners with an unsupported protocol.
func (r references) resolve(l *Listener) {
	for _, check := range referenceChecks {
		if l.Unresolved = check(r, l); l.Unresolved != nil {
			return
		}
	}
	l.certificateWarnings = r.certificateWarnings(l)
}

// httpKinds are the route kinds that HTTP and HTTPS listeners support. All listeners
// share this slice, which must not be changed.
var httpKinds = []gatewayv1.RouteGroupKind{
	{Group: ptr.To[gatewayv1.Group](gatewayv1.GroupName), Kind: KindHTTPRoute},
	{Group: ptr.To[gatewayv1.Group](gatewayv1.GroupName), Kind: KindGRPCRoute},
}

// protocolKinds returns the route kinds that listeners with the protocol support.
func protocolKinds(p gatewayv1.ProtocolType) []gatewayv1.RouteGroupKind {
	if !supportedProtocol(p) {
		return nil
	}
	return httpKinds
}

// supportedKinds returns the kinds for the listener's status: "If kinds are specified in
// Spec that are not supported, they MUST NOT appear in this list".
// (ListenerStatus.SupportedKinds)
func supportedKinds(l *Listener) []gatewayv1.RouteGroupKind {
	supported := protocolKinds(l.Spec.Protocol)
	allowed := allowedKinds(l)
	if len(allowed) == 0 {
		return supported
	}
	return slices.DeleteFunc(slices.Clone(supported), func(kind gatewayv1.RouteGroupKind) bool {
		return !slices.ContainsFunc(allowed, func(a gatewayv1.RouteGroupKind) bool { return sameKind(a, kind) })
	})
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

// admitsKind reports whether routes with the kind can attach to the listener.
func admitsKind(l *Listener, kind string) bool {
	return slices.ContainsFunc(l.SupportedKinds, func(k gatewayv1.RouteGroupKind) bool { return string(k.Kind) == kind })
}

// certificateKind returns the first certificateRef that does not name a core group
// Secret.
func (references) certificateKind(l *Listener) *Problem {
	for _, ref := range certificateRefs(l) {
		if _, ok := secretRef(l, ref); !ok {
			return &Problem{Reason: conditions.ReasonInvalidCertificateRef, Message: fmt.Sprintf(
				"certificateRef %q has kind %s in group %q; only Secrets of the core group are supported.",
				ref.Name, ptr.Deref(ref.Kind, "Secret"), ptr.Deref(ref.Group, ""))}
		}
	}
	return nil
}

// certificateGrant returns the first certificateRef that requires a grant and has
// none: "References to a resource in different namespace are invalid UNLESS there
// is a ReferenceGrant in the target namespace that allows the certificate to be
// attached." (ListenerTLSConfig.CertificateRefs)
func (r references) certificateGrant(l *Listener) *Problem {
	for _, ref := range certificateRefs(l) {
		name, _ := secretRef(l, ref)
		if !r.grants.permits(l.referrer(), secretTarget(name)) {
			return &Problem{Reason: conditions.ReasonRefNotPermitted, Message: fmt.Sprintf(
				"Secret %s is in another namespace, and no ReferenceGrant there permits references from %ss in namespace %q.",
				name, l.Owner.Kind, l.Owner.Namespace)}
		}
	}
	return nil
}

// certificateMaterial returns the first certificateRef whose Secret does not exist or
// fails a check in [InspectCertificate].
func (r references) certificateMaterial(l *Listener) *Problem {
	for _, ref := range certificateRefs(l) {
		name, _ := secretRef(l, ref)
		problem := "does not exist"
		if found, ok := r.certificates[name]; ok || r.notRead[name] {
			problem = found.Problem
		}
		if problem != "" {
			return &Problem{Reason: conditions.ReasonInvalidCertificateRef, Message: fmt.Sprintf(
				"Secret %s in certificateRefs %s.", name, problem)}
		}
	}
	return nil
}

// certificateWarnings lists the certificates that have expired or were not checked. Their
// references are resolved nevertheless, because clients receive the certificate from
// Cloudflare's edge.
func (r references) certificateWarnings(l *Listener) string {
	list := message.List{Separator: " ", More: "And %d more certificates.", MaxSize: l.messageSize}
	for _, ref := range certificateRefs(l) {
		name, _ := secretRef(l, ref)
		switch found := r.certificates[name]; {
		case r.notRead[name]:
			list.Add("The controller did not validate the certificate in Secret %s, because the listeners of namespace %q refer to more than %d Secrets.", name, l.Owner.Namespace, maxSecretsPerNamespace)
		case found.Unchecked:
			list.Add("The controller did not validate the certificate in Secret %s, because it does not read Secrets in namespace %q.", name, name.Namespace)
		case r.now.After(found.NotAfter):
			list.Add("The certificate in Secret %s expired at %s.", name, found.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	if list.Len() == 0 {
		return ""
	}
	return " " + list.String()
}
