package state

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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

	mu sync.Mutex
	// retained maps each key to its Secrets, if it has any.
	retained map[Key]sets.Set[types.NamespacedName]
	// secrets contains the retained Secrets.
	secrets map[types.NamespacedName]*cachedSecret
}

// cachedSecret contains a cached certificate and the keys that retain it.
type cachedSecret struct {
	keys sets.Set[Key]
	// certificate is nil if no version of the Secret has been inspected.
	certificate *cachedCertificate
}

// cachedCertificate is the certificate in one version of a Secret.
type cachedCertificate struct {
	uid         types.UID
	version     string
	certificate gateway.Certificate
}

// Retain replaces the Secrets that the key refers to. The cache drops the certificates in
// Secrets that no key refers to.
func (c *CachedCertificates) Retain(key Key, names []types.NamespacedName) {
	current := sets.New(names...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.retained[key].Difference(current) {
		secret := c.secrets[name]
		if secret.keys.Delete(key); secret.keys.Len() == 0 {
			delete(c.secrets, name)
		}
	}
	if current.Len() == 0 {
		delete(c.retained, key)
		return
	}
	if c.retained == nil {
		c.retained, c.secrets = map[Key]sets.Set[types.NamespacedName]{}, map[types.NamespacedName]*cachedSecret{}
	}
	c.retained[key] = current
	for name := range current {
		if c.secrets[name] == nil {
			c.secrets[name] = &cachedSecret{keys: sets.Set[Key]{}}
		}
		c.secrets[name].keys.Insert(key)
	}
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
	c.store(name, &cachedCertificate{secret.UID, secret.ResourceVersion, found})
	return found, true, nil
}

// lookup returns the cached certificate if it belongs to the Secret's current version.
func (c *CachedCertificates) lookup(name types.NamespacedName, metadata *metav1.PartialObjectMetadata) (gateway.Certificate, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	secret := c.secrets[name]
	if secret == nil || secret.certificate == nil {
		return gateway.Certificate{}, false
	}
	v := secret.certificate
	return v.certificate, v.uid == metadata.UID && v.version == metadata.ResourceVersion
}

// store replaces the cached certificate, or deletes it if v is nil.
func (c *CachedCertificates) store(name types.NamespacedName, v *cachedCertificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if secret := c.secrets[name]; secret != nil {
		secret.certificate = v
	}
}
