package routing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// BackendTLS is how a BackendTLSPolicy makes the data plane connect to a Service port.
type BackendTLS struct {
	// Policy is the BackendTLSPolicy.
	Policy types.NamespacedName
	// Hostname is the name that the data plane asks for (SNI).
	Hostname string
	// Names are the names of which the certificate must have one. It is never empty.
	Names []CertificateName
	// Authorities are PEM certificates that sign the certificate. It is empty for the
	// authorities in the image of the data plane.
	Authorities string
	// HTTP2 reports whether the backend expects HTTP/2.
	HTTP2 bool
	// ID identifies everything that affects connections.
	ID string
}

// CertificateName is a subject alternative name.
type CertificateName struct {
	// URI reports whether the name is a URI, and not a DNS name.
	URI   bool
	Value string
}

// NewBackendTLS returns b with its ID. authorities identifies the content of
// [BackendTLS.Authorities], which can be large.
func NewBackendTLS(b BackendTLS, authorities string) *BackendTLS {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %t", b.Hostname, authorities, b.HTTP2)
	for _, name := range b.Names {
		_, _ = fmt.Fprintf(h, " %t %q", name.URI, name.Value)
	}
	b.ID = hex.EncodeToString(h.Sum(nil))
	return &b
}

// UsesOnlyHostname reports whether the authorities are those in the image of the data
// plane, and the certificate must have the name that the data plane asks for.
func (b *BackendTLS) UsesOnlyHostname() bool {
	return b.Authorities == "" && len(b.Names) == 1 && b.Names[0] == CertificateName{Value: b.Hostname}
}

// ClientCertificate is the certificate that the data plane presents to backends with TLS.
type ClientCertificate struct {
	// Secret contains the certificate and the private key.
	Secret types.NamespacedName
	// Fingerprint identifies the certificate. It is empty if it is not known.
	Fingerprint string
}
