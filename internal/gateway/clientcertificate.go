package gateway

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// clientCertificateRef returns the Gateway's reference to the certificate for backends, or
// nil.
func clientCertificateRef(g *gatewayv1.Gateway) *gatewayv1.SecretObjectReference {
	if g.Spec.TLS == nil || g.Spec.TLS.Backend == nil {
		return nil
	}
	return g.Spec.TLS.Backend.ClientCertificateRef
}

// clientSecret returns the Secret that the reference names, and false if it names another
// kind.
func clientSecret(g *gatewayv1.Gateway, ref *gatewayv1.SecretObjectReference) (types.NamespacedName, bool) {
	namespace := ptr.Deref(ref.Namespace, gatewayv1.Namespace(g.Namespace))
	return types.NamespacedName{Namespace: string(namespace), Name: string(ref.Name)},
		ptr.Deref(ref.Group, "") == "" && ptr.Deref(ref.Kind, "Secret") == "Secret"
}

// clientCertificate is the decision about the certificate that the data plane presents to
// backends.
type clientCertificate struct {
	// isSet reports whether the Gateway refers to a certificate.
	isSet bool
	// problem is why the certificate is not valid, or nil.
	problem *Problem
	// usable is nil if there is no valid certificate.
	usable *routing.ClientCertificate
	// warning adds to the message about a valid certificate.
	warning string
}

// resolveClient decides about the certificate for backends. A grant is checked before the
// Secret, so that a message never reveals whether a Secret in another namespace exists.
func (r references) resolveClient(g *gatewayv1.Gateway) clientCertificate {
	ref := clientCertificateRef(g)
	if ref == nil {
		return clientCertificate{}
	}
	fail := func(reason conditions.Reason, format string, args ...any) clientCertificate {
		return clientCertificate{isSet: true, problem: &Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}}
	}
	name, ok := clientSecret(g, ref)
	if !ok {
		return fail(conditions.ReasonInvalidClientCertificateRef, "clientCertificateRef %q has kind %s in group %q; only Secrets of the core group are supported.",
			ref.Name, ptr.Deref(ref.Kind, "Secret"), ptr.Deref(ref.Group, ""))
	}
	if !r.grants.permits(referrer{KindGateway, g.Namespace}, secretTarget(name)) {
		return fail(conditions.ReasonRefNotPermitted, "Secret %s is in another namespace, and no ReferenceGrant there permits references from Gateways in namespace %q.", name, g.Namespace)
	}
	found, exists := r.certificates[name]
	switch {
	case !exists:
		return fail(conditions.ReasonInvalidClientCertificateRef, "Secret %s in clientCertificateRef does not exist.", name)
	case found.Unchecked:
		return fail(conditions.ReasonInvalidClientCertificateRef, "The controller may not read Secret %s in clientCertificateRef, because it does not read Secrets in namespace %q.", name, name.Namespace)
	case found.Problem != "":
		return fail(conditions.ReasonInvalidClientCertificateRef, "Secret %s in clientCertificateRef %s.", name, found.Problem)
	case found.ClientProblem != "":
		return fail(conditions.ReasonInvalidClientCertificateRef, "Secret %s in clientCertificateRef %s.", name, found.ClientProblem)
	}
	c := clientCertificate{isSet: true, usable: &routing.ClientCertificate{Secret: name, Fingerprint: found.Fingerprint}}
	if r.now.After(found.NotAfter) {
		c.warning = fmt.Sprintf(" The certificate in Secret %s expired at %s.", name, found.NotAfter.UTC().Format(time.RFC3339))
	}
	return c
}

// ClientKeyPair is a certificate chain and its private key, encoded again as PEM. Nothing
// may print or log the key.
type ClientKeyPair struct {
	Chain, Key  []byte
	Fingerprint string
}

// String hides the private key.
func (p ClientKeyPair) String() string { return "client certificate " + p.Fingerprint }

// GoString hides the private key.
func (p ClientKeyPair) GoString() string { return p.String() }

// ReadClientKeyPair returns the key pair in a Secret that [InspectCertificate] has found
// valid as a client certificate, and false if it is not valid.
func ReadClientKeyPair(secret *corev1.Secret) (ClientKeyPair, bool) {
	for _, check := range certificateChecks {
		if check(secret) != "" {
			return ClientKeyPair{}, false
		}
	}
	pair, problem := clientKeyPair(secret)
	return pair, problem == ""
}

const (
	minClientRSABits = 2048
	maxClientRSABits = 8192
)

// clientKeyPair returns the key pair in a Secret that has passed the certificateChecks, or
// why Envoy would reject it.
func clientKeyPair(secret *corev1.Secret) (ClientKeyPair, string) {
	chain, leaf, problem := clientChain(secret)
	if problem != "" {
		return ClientKeyPair{}, problem
	}
	switch public := leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < minClientRSABits || bits > maxClientRSABits {
			return ClientKeyPair{}, fmt.Sprintf("has an RSA key of %d bits, but Envoy requires %d to %d bits", bits, minClientRSABits, maxClientRSABits)
		}
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P224() {
			return ClientKeyPair{}, "has a key for the curve P-224, but Envoy requires P-256, P-384 or P-521"
		}
	default:
		return ClientKeyPair{}, "has a key that is neither RSA nor ECDSA, which Envoy does not support"
	}
	key, ok := encodePrivateKey(privateKeyDER(secret))
	if !ok {
		return ClientKeyPair{}, unusablePair
	}
	sum := sha256.Sum256(chain)
	return ClientKeyPair{Chain: chain, Key: key, Fingerprint: hex.EncodeToString(sum[:])}, ""
}

// clientChain returns the certificates, encoded again, and the first one.
func clientChain(secret *corev1.Secret) (chain []byte, leaf *x509.Certificate, problem string) {
	var encoded bytes.Buffer
	for rest := secret.Data[corev1.TLSCertKey]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return encoded.Bytes(), leaf, ""
		}
		certificate := readCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || certificate == nil {
			return nil, nil, fmt.Sprintf("has data in key %q that is not a certificate that Envoy can read", corev1.TLSCertKey)
		}
		if leaf == nil {
			leaf = certificate
		}
		_ = pem.Encode(&encoded, &pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}) // a Buffer returns no error
	}
}

// encodePrivateKey encodes a private key as PKCS #8.
func encodePrivateKey(der []byte) ([]byte, bool) {
	var key any
	var err error
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
	} {
		if key, err = parse(der); err == nil {
			break
		}
	}
	if err != nil {
		return nil, false
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), err == nil
}
