package state

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

// CABundles inspects the certificate authorities in ConfigMaps. Implementations are safe
// for concurrent use.
type CABundles interface {
	// InspectBundle inspects a ConfigMap. It returns false if the ConfigMap does not exist.
	InspectBundle(ctx context.Context, name types.NamespacedName) (gateway.CABundle, bool, error)
}

// DirectCABundles reads the ConfigMap at each inspection.
type DirectCABundles struct {
	Reader client.Reader
}

// InspectBundle implements CABundles. With a Source that permits gaps, a ConfigMap that the
// user may not read has no problem.
func (c DirectCABundles) InspectBundle(ctx context.Context, name types.NamespacedName) (gateway.CABundle, bool, error) {
	found, err := get(ctx, c.Reader, name, &corev1.ConfigMap{})
	if source, ok := c.Reader.(*Source); ok && source.permits(kinds.ConfigMap, name, err) {
		return gateway.CABundle{}, true, nil
	}
	if err != nil || found == nil {
		return gateway.CABundle{}, false, err
	}
	return gateway.InspectCABundle(found), true, nil
}

// CachedCABundles caches the certificate authorities in each retained ConfigMap until the
// ConfigMap's metadata changes. A cluster's other ConfigMaps take no memory for their
// data.
type CachedCABundles struct {
	// Metadata reads ConfigMap metadata from a cache.
	Metadata client.Reader
	// Live reads ConfigMaps from the API server.
	Live client.Reader

	versionCache[gateway.CABundle]
}

// InspectBundle implements CABundles. It caches the result only if a key retains the
// ConfigMap.
func (c *CachedCABundles) InspectBundle(ctx context.Context, name types.NamespacedName) (gateway.CABundle, bool, error) {
	metadata, err := get(ctx, c.Metadata, name, configMapMetadata())
	if err != nil || metadata == nil {
		c.store(name, nil)
		return gateway.CABundle{}, false, err
	}
	if cached, ok := c.lookup(name, metadata); ok {
		return cached, true, nil
	}
	found, err := get(ctx, c.Live, name, &corev1.ConfigMap{})
	if err != nil || found == nil {
		return gateway.CABundle{}, false, err
	}
	bundle := gateway.InspectCABundle(found)
	c.store(name, &cachedVersion[gateway.CABundle]{found.UID, found.ResourceVersion, bundle})
	return bundle, true, nil
}

func configMapMetadata() *metav1.PartialObjectMetadata {
	return kinds.ConfigMap.NewWatched().(*metav1.PartialObjectMetadata)
}
