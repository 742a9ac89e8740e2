package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TLS material is checked, so that a mistake shows before a move to another
// data plane, and never used: Cloudflare's edge terminates TLS with
// certificates of its own.

// Certificate is the verdict on a Secret that a listener refers to. It holds no
// byte of the Secret.
type Certificate struct {
	// Unchecked is whether the Secret was not read, because the settings or the
	// permissions do not allow it. Nothing else is known then.
	Unchecked bool
	// Problem says which check failed; empty when the material is valid.
	Problem string
	// NotAfter is when the certificate expires.
	NotAfter time.Time
}

// certificateCheck looks at one aspect of a Secret and says what is wrong with
// it, never what it contains, or returns "".
type certificateCheck func(*corev1.Secret) string

// certificateChecks run in this order; the first that fails is the verdict.
var certificateChecks = []certificateCheck{
	wrongSecretType,
	missingData,
	notPEM,
	mismatchedPair,
}

// InspectCertificate checks the material of a Secret.
func InspectCertificate(secret *corev1.Secret) Certificate {
	for _, check := range certificateChecks {
		if problem := check(secret); problem != "" {
			return Certificate{Problem: problem}
		}
	}
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Certificate{Problem: "its certificate cannot be parsed"}
	}
	return Certificate{NotAfter: leaf.NotAfter}
}

func wrongSecretType(secret *corev1.Secret) string {
	if secret.Type != corev1.SecretTypeTLS {
		return fmt.Sprintf("it is of type %q, not %q", secret.Type, corev1.SecretTypeTLS)
	}
	return ""
}

func missingData(secret *corev1.Secret) string {
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[key]) == 0 {
			return fmt.Sprintf("it has no data under %q", key)
		}
	}
	return ""
}

func notPEM(secret *corev1.Secret) string {
	if block, _ := pem.Decode(secret.Data[corev1.TLSCertKey]); block == nil || block.Type != "CERTIFICATE" {
		return fmt.Sprintf("its %q does not begin with a certificate in PEM", corev1.TLSCertKey)
	}
	if block, _ := pem.Decode(secret.Data[corev1.TLSPrivateKeyKey]); block == nil {
		return fmt.Sprintf("its %q is not PEM", corev1.TLSPrivateKeyKey)
	}
	return ""
}

func mismatchedPair(secret *corev1.Secret) string {
	if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
		// The error could quote the material.
		return "its certificate and its private key do not parse or do not match"
	}
	return ""
}

// secretRef returns the Secret that a certificateRef names, and false when it
// names something else. The namespace defaults to that of the listener's
// owner.
func secretRef(l *Listener, ref gatewayv1.SecretObjectReference) (types.NamespacedName, bool) {
	namespace := ptr.Deref(ref.Namespace, gatewayv1.Namespace(l.Owner.Namespace))
	return types.NamespacedName{Namespace: string(namespace), Name: string(ref.Name)},
		ptr.Deref(ref.Group, "") == "" && ptr.Deref(ref.Kind, "Secret") == "Secret"
}

func certificateRefs(l *Listener) []gatewayv1.SecretObjectReference {
	if l.Spec.TLS == nil {
		return nil
	}
	return l.Spec.TLS.CertificateRefs
}

// GatewayCertificates names the Secrets that the Gateway's listeners refer to.
func GatewayCertificates(g *gatewayv1.Gateway) []types.NamespacedName {
	var names []types.NamespacedName
	for _, l := range g.Spec.Listeners {
		names = append(names, certificateNames(&Listener{Owner: gatewayOwner(g), Spec: l})...)
	}
	return names
}

// ListenerSetCertificates names the Secrets that the set's listeners refer to.
func ListenerSetCertificates(set *gatewayv1.ListenerSet) []types.NamespacedName {
	var names []types.NamespacedName
	for _, entry := range set.Spec.Listeners {
		names = append(names, certificateNames(&Listener{Owner: listenerSetOwner(set), Spec: gatewayv1.Listener(entry)})...)
	}
	return names
}

func certificateNames(l *Listener) []types.NamespacedName {
	var names []types.NamespacedName
	for _, ref := range certificateRefs(l) {
		if name, ok := secretRef(l, ref); ok {
			names = append(names, name)
		}
	}
	return names
}

// SecretsToRead names the Secrets that the snapshot's listeners refer to and
// may refer to. Others must not be read: whether they exist is not for their
// owner to know.
func SecretsToRead(s *Snapshot) []types.NamespacedName {
	permitted := newGrants(s.Grants)
	var names []types.NamespacedName
	read := func(from referrer, referred []types.NamespacedName) {
		for _, name := range referred {
			if permitted.permits(from, secretTarget(name)) {
				names = append(names, name)
			}
		}
	}
	read(referrer{KindGateway, s.Gateway.Namespace}, GatewayCertificates(s.Gateway))
	for _, set := range s.ListenerSets {
		read(referrer{KindListenerSet, set.Namespace}, ListenerSetCertificates(set))
	}
	return names
}

func (l *Listener) referrer() referrer { return referrer{l.Owner.Kind, l.Owner.Namespace} }

func secretTarget(name types.NamespacedName) target {
	return target{"Secret", name.Namespace, name.Name}
}
