package state

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
)

// CachedCertificates caches what it finds in the certificate of each retained Secret
// until the Secret metadata changes.
type CachedCertificates struct {
	// Metadata reads Secret metadata from a cache.
	Metadata client.Reader
	// Live reads Secrets from the API server.
	Live client.Reader
	// Reads reports whether Secrets in the namespace are read. Certificates in other
	// namespaces are not checked.
	Reads func(namespace string) bool

	versionCache[gateway.Certificate]
}

// Inspect implements Certificates. It caches the result only if a key retains the Secret.
func (c *CachedCertificates) Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error) {
	if !c.Reads(name.Namespace) {
		return gateway.Certificate{Unchecked: true}, true, nil
	}
	metadata, err := get(ctx, c.Metadata, name, secrets.Metadata(name))
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
	found, err := inspections.run(ctx, secret)
	if err != nil {
		return gateway.Certificate{}, false, err
	}
	c.store(name, &cachedVersion[gateway.Certificate]{secret.UID, secret.ResourceVersion, found})
	return found, true, nil
}
