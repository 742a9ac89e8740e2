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

// Certificates looks at Secrets, one by one.
type Certificates interface {
	// Inspect returns what is found of a Secret, and false when it does not exist.
	// The Secret's bytes are not kept.
	Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error)
}

// DirectCertificates reads each Secret whenever it is asked.
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

// PermittedCertificates reads each Secret once, and does not check a Secret that
// it may not read: a user who plans often has fewer permissions than the
// controller.
type PermittedCertificates struct {
	direct    DirectCertificates
	results   map[types.NamespacedName]inspection
	forbidden []types.NamespacedName
}

// inspection is the answer to Look.
type inspection struct {
	certificate gateway.Certificate
	exists      bool
}

// NewPermittedCertificates returns one that reads with r.
func NewPermittedCertificates(r client.Reader) *PermittedCertificates {
	return &PermittedCertificates{direct: DirectCertificates{Reader: r}, results: map[types.NamespacedName]inspection{}}
}

// Inspect implements Certificates.
func (c *PermittedCertificates) Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error) {
	if known, ok := c.results[name]; ok {
		return known.certificate, known.exists, nil
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

// Forbidden returns the Secrets that could not be looked at, in the order in
// which that was tried.
func (c *PermittedCertificates) Forbidden() []types.NamespacedName { return c.forbidden }

// CachedCertificates keeps the verdict on a Secret until its metadata says
// that it changed.
type CachedCertificates struct {
	// Metadata reads from a cache that holds no data of Secrets.
	Metadata client.Reader
	// Live reads a Secret from the API server.
	Live client.Reader
	// Reads reports whether Secrets in the namespace are read. Certificates in
	// others are not checked.
	Reads func(namespace string) bool

	mu     sync.Mutex
	cached map[types.NamespacedName]cachedCertificate
}

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
	if known, ok := c.lookup(name, metadata); ok {
		return known, true, nil
	}
	secret, err := get(ctx, c.Live, name, &corev1.Secret{})
	if err != nil || secret == nil {
		return gateway.Certificate{}, false, err
	}
	found := gateway.InspectCertificate(secret)
	c.store(name, &cachedCertificate{secret.UID, secret.ResourceVersion, found})
	return found, true, nil
}

func (c *CachedCertificates) lookup(name types.NamespacedName, metadata *metav1.PartialObjectMetadata) (gateway.Certificate, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.cached[name]
	return v.certificate, ok && v.uid == metadata.UID && v.version == metadata.ResourceVersion
}

// store keeps a verdict, or forgets the one there is.
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
