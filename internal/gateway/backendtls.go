package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// MaxAncestors is how many entries the status of a policy can have: "If this slice is full,
// implementations MUST NOT add further entries." (PolicyStatus.Ancestors)
const MaxAncestors = 16

// backendTLS decides about the BackendTLSPolicies for the Services that routes use.
type backendTLS struct {
	*backendPolicies
	now        time.Time
	bundles    map[types.NamespacedName]CABundle
	gateway    Owner
	controller gatewayv1.GatewayController
	// unsupported is [routing.Capabilities.BackendTLS].
	unsupported func(*routing.BackendTLS) string
}

// policyDecision is what follows from a policy's validation and status.
type policyDecision struct {
	done bool
	// tls is how to connect, without HTTP2. It is nil if the policy is invalid.
	tls *routing.BackendTLS
	// authorities identifies the certificate authorities in tls.
	authorities string
	// invalid is why the policy is not valid, and unresolved why its references do not
	// resolve. Both can be nil.
	invalid, unresolved *Problem
	// full reports whether the policy's status has no space for the Gateway.
	full bool
	// resolved adds to the message about references that resolve.
	resolved string
}

func newBackendTLS(s *Snapshot, controller gatewayv1.GatewayController, c routing.Capabilities) *backendTLS {
	return &backendTLS{
		backendPolicies: newBackendPolicies(s.BackendTLSPolicies), now: s.Now, bundles: s.CABundles,
		gateway: gatewayOwner(s.Gateway), controller: controller, unsupported: c.BackendTLS,
	}
}

// connect returns how to connect to a Service port: nil without a policy. If the policy is
// not valid, requests must not reach the port, and connect returns the problem.
func (b *backendTLS) connect(service types.NamespacedName, number int32, port string, http2 bool) (*routing.BackendTLS, *Problem) {
	p := b.of(service, port)
	if p == nil {
		return nil, nil
	}
	d := b.decide(p)
	switch {
	case d.full:
		return nil, routeProblem(conditions.ReasonInvalidBackendTLSPolicy,
			"BackendTLSPolicy %s for port %d of Service %s has %d entries in its status, the maximum, so this Gateway cannot implement it. Use the Service in fewer Gateways",
			p.name, number, service, MaxAncestors)
	case d.tls == nil:
		return nil, routeProblem(conditions.ReasonInvalidBackendTLSPolicy, "BackendTLSPolicy %s for port %d of Service %s is not valid (%s). See its status",
			p.name, number, service, d.invalid.Reason)
	}
	tls := *d.tls
	tls.HTTP2 = http2
	return routing.NewBackendTLS(tls, d.authorities), nil
}

// decide returns the decision about an effective policy.
func (b *backendTLS) decide(p *backendPolicy) *policyDecision {
	d := &p.decided
	if d.done {
		return d
	}
	d.done, d.full = true, b.isFull(p.object)
	v := &p.object.Spec.Validation
	tls := &routing.BackendTLS{Policy: p.name, Hostname: string(v.Hostname), Names: certificateNames(v)}
	if known := ptr.Deref(v.WellKnownCACertificates, ""); known != "" {
		if known != gatewayv1.WellKnownCACertificatesSystem {
			d.invalid = &Problem{Reason: conditions.ReasonInvalid, Message: fmt.Sprintf("wellKnownCACertificates %q is not supported; only System is.", known)}
			return d
		}
	} else {
		b.readAuthorities(p, d, tls)
	}
	if d.invalid != nil {
		return d
	}
	if part := b.unsupported(tls); part != "" {
		d.invalid = &Problem{Reason: conditions.ReasonInvalid, Message: fmt.Sprintf(
			"Ingress rules do not support %s: they verify a backend by wellKnownCACertificates System and the hostname. Its backends return 500. %s.", part, remedyEnvoy)}
		return d
	}
	d.tls = tls
	return d
}

// isFull reports whether the policy's status has no entry for the Gateway and no space for
// another one.
func (b *backendTLS) isFull(policy *gatewayv1.BackendTLSPolicy) bool {
	return len(policy.Status.Ancestors) >= MaxAncestors && !slices.ContainsFunc(policy.Status.Ancestors, func(a gatewayv1.PolicyAncestorStatus) bool {
		owner, ok := AncestorOfPolicy(a.AncestorRef, policy.Namespace)
		return ok && owner == b.gateway && a.ControllerName == b.controller
	})
}

// certificateNames returns the names of which a certificate needs one: "If SubjectAltNames
// are specified, Hostname [...] MUST NOT be used for authentication."
// (BackendTLSPolicyValidation.Hostname)
func certificateNames(v *gatewayv1.BackendTLSPolicyValidation) []routing.CertificateName {
	var names []routing.CertificateName
	for _, san := range v.SubjectAltNames {
		switch {
		case san.Type == gatewayv1.HostnameSubjectAltNameType && san.Hostname != "":
			names = append(names, routing.CertificateName{Value: string(san.Hostname)})
		case san.Type == gatewayv1.URISubjectAltNameType && san.URI != "":
			names = append(names, routing.CertificateName{URI: true, Value: string(san.URI)})
		}
	}
	if len(names) == 0 {
		names = append(names, routing.CertificateName{Value: string(v.Hostname)})
	}
	return names
}

// readAuthorities sets the certificate authorities. The policy is invalid if no reference
// has a usable certificate.
func (b *backendTLS) readAuthorities(p *backendPolicy, d *policyDecision, tls *routing.BackendTLS) {
	problems := message.List{Separator: " ", More: "And %d more.", MaxSize: message.MaxSize / 2}
	notes := message.List{Separator: " ", More: "And %d more.", MaxSize: message.MaxSize / 2}
	reason := conditions.Reason{}
	var bundles, digests []string
	size := 0
	for _, ref := range p.object.Spec.Validation.CACertificateRefs {
		bundle, problem := b.authorities(p.name.Namespace, ref)
		if problem != nil {
			problems.Add("%s", problem.Message)
			if reason == (conditions.Reason{}) {
				reason = problem.Reason
			}
			continue
		}
		b.describeBundle(&notes, ref, bundle)
		size += len(bundle.Certificates)
		bundles, digests = append(bundles, bundle.Certificates), append(digests, bundle.Digest)
	}
	if problems.Len() > 0 {
		d.unresolved = &Problem{Reason: reason, Message: problems.String()}
	}
	switch {
	case len(bundles) == 0:
		d.invalid = &Problem{Reason: conditions.ReasonNoValidCACertificate, Message: "No reference in caCertificateRefs has a valid certificate. Backends of the policy return errors. " + problems.String()}
	case size > maxCABytes:
		d.invalid = &Problem{Reason: conditions.ReasonInvalid, Message: fmt.Sprintf(
			"The ConfigMaps in caCertificateRefs have %d bytes of certificates, more than the limit of %d bytes. Remove certificates that the backends do not need.", size, maxCABytes)}
	}
	tls.Authorities, d.authorities, d.resolved = strings.Join(bundles, ""), strings.Join(digests, " "), notes.String()
}

// authorities returns the certificates that a reference names.
func (b *backendTLS) authorities(namespace string, ref gatewayv1.LocalObjectReference) (CABundle, *Problem) {
	if !isConfigMap(ref) {
		return CABundle{}, &Problem{Reason: conditions.ReasonInvalidKind, Message: fmt.Sprintf(
			"caCertificateRef %q has kind %s in group %q; only ConfigMaps of the core group are supported.", ref.Name, ref.Kind, ref.Group)}
	}
	name := types.NamespacedName{Namespace: namespace, Name: string(ref.Name)}
	bundle, ok := b.bundles[name]
	if !ok {
		bundle.Problem = "does not exist"
	}
	if bundle.Problem != "" {
		return CABundle{}, &Problem{Reason: conditions.ReasonInvalidCACertificateRef, Message: fmt.Sprintf("ConfigMap %s in caCertificateRefs %s.", name, bundle.Problem)}
	}
	return bundle, nil
}

func (b *backendTLS) describeBundle(notes *message.List, ref gatewayv1.LocalObjectReference, bundle CABundle) {
	if b.now.After(bundle.NotAfter) {
		notes.Add("A certificate in ConfigMap %s expired at %s.", ref.Name, bundle.NotAfter.UTC().Format(time.RFC3339))
	}
	if bundle.Ignored > 0 {
		notes.Add("PEM blocks in ConfigMap %s that are not valid certificates are ignored: %d.", ref.Name, bundle.Ignored)
	}
}
