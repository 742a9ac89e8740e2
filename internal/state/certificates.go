package state

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Certificates inspects the certificates in Secrets.
type Certificates interface {
	// Inspect returns the properties of the certificate in a Secret, and false if the
	// Secret does not exist. Implementations do not keep the data of the Secret.
	Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error)
}

// DirectCertificates reads the Secret at each inspection.
type DirectCertificates struct {
	Reader client.Reader
}

// Inspect implements Certificates.
func (c DirectCertificates) Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error) {
	secret, err := get(ctx, c.Reader, name, &corev1.Secret{})
	if err != nil || secret == nil {
		return gateway.Certificate{}, false, err
	}
	return gateway.InspectCertificate(secret), true, nil
}

// PermittedCertificates reads each Secret once. It reports a Secret that the user cannot
// read as unchecked, because users of the plan command often have fewer permissions than
// the controller.
type PermittedCertificates struct {
	direct    DirectCertificates
	results   map[types.NamespacedName]inspection
	forbidden []types.NamespacedName
}

// inspection is the result of Inspect.
type inspection struct {
	certificate gateway.Certificate
	exists      bool
}

// NewPermittedCertificates returns PermittedCertificates that read with r.
func NewPermittedCertificates(r client.Reader) *PermittedCertificates {
	return &PermittedCertificates{direct: DirectCertificates{Reader: r}, results: map[types.NamespacedName]inspection{}}
}

// Inspect implements Certificates.
func (c *PermittedCertificates) Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error) {
	if result, ok := c.results[name]; ok {
		return result.certificate, result.exists, nil
	}
	certificate, exists, err := c.direct.Inspect(ctx, name)
	switch {
	case apierrors.IsForbidden(err):
		c.forbidden = append(c.forbidden, name)
		certificate, exists = gateway.Certificate{Unchecked: true}, true
	case err != nil:
		return gateway.Certificate{}, false, err
	}
	c.results[name] = inspection{certificate, exists}
	return certificate, exists, nil
}

// Forbidden returns the Secrets that the user cannot read, in the order of their
// inspection.
func (c *PermittedCertificates) Forbidden() []types.NamespacedName { return c.forbidden }

// CachedCertificates caches the properties of each certificate until the metadata of the
// Secret changes.
type CachedCertificates struct {
	// Metadata reads the metadata of Secrets from a cache.
	Metadata client.Reader
	// Live reads Secrets from the API server.
	Live client.Reader
	// Reads reports whether Secrets in the namespace are read. Certificates in other
	// namespaces are not checked.
	Reads func(namespace string) bool

	mu     sync.Mutex
	cached map[types.NamespacedName]cachedCertificate
}

// cachedCertificate contains the properties of a certificate in one version of a Secret.
type cachedCertificate struct {
	uid         types.UID
	version     string
	certificate gateway.Certificate
}

// Inspect implements Certificates.
func (c *CachedCertificates) Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error) {
	if !c.Reads(name.Namespace) {
		return gateway.Certificate{Unchecked: true}, true, nil
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	metadata, err := get(ctx, c.Metadata, name, metadata)
	if err != nil || metadata == nil {
		c.store(name, nil)
		return gateway.Certificate{}, false, err
	}
	if cached, ok := c.lookup(name, metadata); ok {
		return cached, true, nil
	}
	secret, err := get(ctx, c.Live, name, &corev1.Secret{})
	if err != nil || secret == nil {
		return gateway.Certificate{}, false, err
	}
	found := gateway.InspectCertificate(secret)
	c.store(name, &cachedCertificate{secret.UID, secret.ResourceVersion, found})
	return found, true, nil
}

// lookup returns the cached certificate if it belongs to the current version of the
// Secret.
func (c *CachedCertificates) lookup(name types.NamespacedName, metadata *metav1.PartialObjectMetadata) (gateway.Certificate, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.cached[name]
	return v.certificate, ok && v.uid == metadata.UID && v.version == metadata.ResourceVersion
}

// store replaces the cached certificate, or deletes it if v is nil.
func (c *CachedCertificates) store(name types.NamespacedName, v *cachedCertificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v == nil {
		delete(c.cached, name)
		return
	}
	if c.cached == nil {
		c.cached = map[types.NamespacedName]cachedCertificate{}
	}
	c.cached[name] = *v
}
