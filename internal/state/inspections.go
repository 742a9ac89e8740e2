package state

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Inspections are the certificates that were found in the Secrets of a cluster. Several
// Sources, one after the other, inspect each version of a Secret once with them. The zero value
// is empty, and nil remains so.
type Inspections struct {
	mu    sync.Mutex
	found map[types.NamespacedName]cachedVersion[gateway.Certificate]
}

// lookup returns what was found in this version of the Secret.
func (i *Inspections) lookup(secret *corev1.Secret) (gateway.Certificate, bool) {
	if i == nil {
		return gateway.Certificate{}, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	known, ok := i.found[client.ObjectKeyFromObject(secret)]
	return known.found, ok && known.uid == secret.UID && known.version == secret.ResourceVersion
}

// store replaces what was found, unless the Secret comes from a manifest.
func (i *Inspections) store(secret *corev1.Secret, found gateway.Certificate) {
	if i == nil || secret.UID == "" || secret.ResourceVersion == "" {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.found == nil {
		i.found = map[types.NamespacedName]cachedVersion[gateway.Certificate]{}
	}
	i.found[client.ObjectKeyFromObject(secret)] = cachedVersion[gateway.Certificate]{secret.UID, secret.ResourceVersion, found}
}
