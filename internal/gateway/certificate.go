package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Certificate is what the controller found in a Secret that a listener or a Gateway refers
// to. It contains no private key.
//
// The controller checks the certificates of listeners to report mistakes, but never uses
// them: Cloudflare's edge terminates TLS with its own certificates.
type Certificate struct {
	// Unchecked reports whether the controller did not read the Secret, because its
	// configuration or its permissions do not allow it. The other fields are then empty.
	Unchecked bool
	// Problem describes the failed check, as a predicate for a sentence whose subject is
	// the Secret. It is empty when the certificate is valid.
	Problem string
	// ClientProblem describes why Envoy would not accept a valid certificate as a client
	// certificate, like Problem.
	ClientProblem string
	// Fingerprint identifies the certificate and its chain if both problems are empty.
	Fingerprint string
	// NotAfter is when the certificate expires.
	NotAfter time.Time
}

// certificateCheck checks one aspect of a Secret. It returns the problem, without any
// data from the Secret, or "".
type certificateCheck func(*corev1.Secret) string

// certificateChecks run in this order. The result is the first problem.
//
// Tenants choose the data, so a check limits what the checks after it cost: tooMuchData
// limits the parsers, and largeRSAKey and unusableRSAKey limit the arithmetic in
// mismatchedPair.
var certificateChecks = []certificateCheck{
	wrongSecretType,
	missingData,
	tooMuchData,
	notPEM,
	largeRSAKey,
	unusableRSAKey,
	mismatchedPair,
}

// maxCertificateBytes limits the data in each key of a Secret.
const maxCertificateBytes = 64 << 10

// unusablePair is the problem with a pair that crypto/tls rejects.
const unusablePair = "has a certificate and a private key that cannot be parsed or do not match"

// InspectCertificate checks the certificate and the private key in a Secret. It takes
// less than 100 ms for any Secret.
func InspectCertificate(secret *corev1.Secret) Certificate {
	for _, check := range certificateChecks {
		if problem := check(secret); problem != "" {
			return Certificate{Problem: problem}
		}
	}
	leaf, err := x509.ParseCertificate(leafDER(secret))
	if err != nil {
		return Certificate{Problem: unusablePair}
	}
	pair, problem := clientKeyPair(secret)
	return Certificate{NotAfter: leaf.NotAfter, ClientProblem: problem, Fingerprint: pair.Fingerprint}
}

// leafDER returns the first certificate, which the private key belongs to.
func leafDER(secret *corev1.Secret) []byte {
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	return block.Bytes
}

// privateKeyDER returns the first private key, or nil. Other PEM blocks can precede it,
// for example elliptic curve parameters.
func privateKeyDER(secret *corev1.Secret) []byte {
	for rest := secret.Data[corev1.TLSPrivateKeyKey]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil
		}
		if block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY") {
			return block.Bytes
		}
	}
}

func wrongSecretType(secret *corev1.Secret) string {
	if secret.Type != corev1.SecretTypeTLS {
		return fmt.Sprintf("has type %q instead of %q", secret.Type, corev1.SecretTypeTLS)
	}
	return ""
}

func missingData(secret *corev1.Secret) string {
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[key]) == 0 {
			return fmt.Sprintf("has no data in key %q", key)
		}
	}
	return ""
}

func tooMuchData(secret *corev1.Secret) string {
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if size := len(secret.Data[key]); size > maxCertificateBytes {
			return fmt.Sprintf("has %d bytes of data in key %q, more than the limit of %d bytes", size, key, maxCertificateBytes)
		}
	}
	return ""
}

func notPEM(secret *corev1.Secret) string {
	if block, _ := pem.Decode(secret.Data[corev1.TLSCertKey]); block == nil || block.Type != "CERTIFICATE" {
		return fmt.Sprintf("has no PEM-encoded certificate at the start of key %q", corev1.TLSCertKey)
	}
	if block, _ := pem.Decode(secret.Data[corev1.TLSPrivateKeyKey]); block == nil {
		return fmt.Sprintf("has no PEM-encoded data in key %q", corev1.TLSPrivateKeyKey)
	}
	return ""
}

// mismatchedPair passes only the first certificate and the first private key to
// crypto/tls, so that crypto/tls validates exactly the key that the preceding checks
// allow. The chain's other certificates are not parsed.
func mismatchedPair(secret *corev1.Secret) string {
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	if _, err := tls.X509KeyPair(encode("CERTIFICATE", leafDER(secret)), encode("PRIVATE KEY", privateKeyDER(secret))); err != nil {
		// The error is omitted, because it could quote data from the Secret.
		return unusablePair
	}
	return ""
}

// secretRef returns the Secret that a certificateRef names. It returns false when the
// certificateRef names another kind. The namespace defaults to the listener owner's
// namespace.
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

// SecretsOfGateway returns the Secrets that the Gateway and its listeners refer to. The
// Secret with the certificate for backends is the first.
func SecretsOfGateway(g *gatewayv1.Gateway) []types.NamespacedName {
	var names []types.NamespacedName
	if ref := clientCertificateRef(g); ref != nil {
		if name, ok := clientSecret(g, ref); ok {
			names = append(names, name)
		}
	}
	for _, l := range g.Spec.Listeners {
		names = append(names, secretsOfListener(&Listener{Owner: gatewayOwner(g), Spec: l})...)
	}
	return names
}

// SecretsOfListenerSet returns the Secrets that the listeners in the ListenerSet refer
// to.
func SecretsOfListenerSet(set *gatewayv1.ListenerSet) []types.NamespacedName {
	var names []types.NamespacedName
	for _, entry := range set.Spec.Listeners {
		names = append(names, secretsOfListener(&Listener{Owner: listenerSetOwner(set), Spec: gatewayv1.Listener(entry)})...)
	}
	return names
}

func secretsOfListener(l *Listener) []types.NamespacedName {
	var names []types.NamespacedName
	for _, ref := range certificateRefs(l) {
		if name, ok := secretRef(l, ref); ok {
			names = append(names, name)
		}
	}
	return names
}

func (l *Listener) referrer() referrer { return referrer{l.Owner.Kind, l.Owner.Namespace} }

func secretTarget(name types.NamespacedName) target {
	return target{"", "Secret", name.Namespace, name.Name}
}
