package gateway

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// CABundle is what the controller found in a ConfigMap that a BackendTLSPolicy refers to.
type CABundle struct {
	// Certificates are the usable certificates, encoded again as PEM.
	Certificates string
	// Digest identifies the certificates.
	Digest string
	// Problem explains why the ConfigMap has no usable certificate, as a predicate for a
	// sentence whose subject is the ConfigMap. It is empty when it has one.
	Problem string
	// Ignored counts the PEM blocks that are not usable certificates.
	Ignored int
	// NotAfter is when the first certificate expires.
	NotAfter time.Time
}

const (
	// caKey is the key in a ConfigMap with certificate authorities.
	caKey = "ca.crt"
	// maxCABytes limits the certificate authorities in one BackendTLSPolicy.
	maxCABytes = 256 << 10
)

// InspectCABundle reads the certificates in a ConfigMap. Envoy rejects all clusters at once
// for data that it cannot read, so only certificates that this function has parsed and
// encoded again reach it.
func InspectCABundle(c *corev1.ConfigMap) CABundle {
	text, ok := c.Data[caKey]
	switch {
	case !ok:
		return CABundle{Problem: fmt.Sprintf("has no key %q", caKey)}
	case len(text) > maxCABytes:
		return CABundle{Problem: fmt.Sprintf("has %d bytes of data in key %q, more than the limit of %d bytes", len(text), caKey, maxCABytes)}
	}
	var found CABundle
	var certificates bytes.Buffer
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		parsed := parseAuthority(block)
		if parsed == nil {
			found.Ignored++
			continue
		}
		_ = pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: parsed.Raw}) // a Buffer returns no error
		if found.NotAfter.IsZero() || parsed.NotAfter.Before(found.NotAfter) {
			found.NotAfter = parsed.NotAfter
		}
	}
	if certificates.Len() == 0 {
		return CABundle{Problem: fmt.Sprintf("has no valid PEM-encoded certificate in key %q", caKey)}
	}
	sum := sha256.Sum256(certificates.Bytes())
	found.Certificates, found.Digest = certificates.String(), hex.EncodeToString(sum[:])
	return found
}

// parseAuthority returns the certificate in the block, or nil if Envoy might not read it.
func parseAuthority(block *pem.Block) *x509.Certificate {
	if block.Type != "CERTIFICATE" && block.Type != "TRUSTED CERTIFICATE" && block.Type != "X509 CERTIFICATE" {
		return nil
	}
	certificate := readCertificate(block.Bytes)
	if certificate == nil {
		return nil
	}
	switch certificate.PublicKey.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
		return certificate
	default:
		return nil
	}
}

// CABundlesToRead returns the ConfigMaps that the effective policies for the snapshot's
// Services refer to. A Service port has one effective policy, so tenants cannot make the
// controller read any number of ConfigMaps. It requires the Services.
func CABundlesToRead(s *Snapshot) []types.NamespacedName {
	policies := newBackendPolicies(s.BackendTLSPolicies)
	var names []types.NamespacedName
	read := map[*backendPolicy]bool{}
	for name, service := range s.Services.All() {
		if service == nil {
			continue
		}
		for i := range service.Spec.Ports {
			if p := policies.of(name, service.Spec.Ports[i].Name); p != nil && !read[p] {
				read[p] = true
				names = append(names, ConfigMapsOfPolicy(p.object)...)
			}
		}
	}
	return names
}

// ConfigMapsOfPolicy returns the ConfigMaps that the policy refers to.
func ConfigMapsOfPolicy(policy *gatewayv1.BackendTLSPolicy) []types.NamespacedName {
	var names []types.NamespacedName
	for _, ref := range policy.Spec.Validation.CACertificateRefs {
		if isConfigMap(ref) {
			names = append(names, types.NamespacedName{Namespace: policy.Namespace, Name: string(ref.Name)})
		}
	}
	return names
}

func isConfigMap(ref gatewayv1.LocalObjectReference) bool {
	return ref.Group == "" && ref.Kind == "ConfigMap"
}
