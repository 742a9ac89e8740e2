package controller

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

const (
	// confirmTimeout limits how long a decision waits for a confirmation.
	confirmTimeout = time.Second
	// confirmationsPerSecond limits the requests for references to objects that do not exist.
	confirmationsPerSecond = 10
	// maxConfirmed limits the memory for references to objects that do not exist.
	maxConfirmed = 10_000
)

// confirmer asks the API server whether an object exists that the cache does not contain.
// The cache receives every kind by itself, so that an object can arrive before the object
// that it refers to, although that was created first. Without a confirmation, its status
// would report a wrong reference for some milliseconds, and Argo CD considers a sync failed
// that degrades an object.
type confirmer struct {
	live    client.Reader
	limiter *rate.Limiter

	mu sync.Mutex
	// missing are the objects about which the API server was asked, and that the cache has not
	// received since.
	missing map[objectRef]bool
}

// objectRef is an object by its kind, in the form of kindOf.
type objectRef struct {
	kind string
	client.ObjectKey
}

func newConfirmer(live client.Reader) *confirmer {
	return &confirmer{live: live, limiter: rate.NewLimiter(confirmationsPerSecond, 2*confirmationsPerSecond), missing: map[objectRef]bool{}}
}

// isConfirmed reports whether the confirmer asks for objects of this type: what routes,
// Gateways and GatewayClasses refer to and is often created together with them.
func isConfirmed(object client.Object) bool {
	switch object.(type) {
	case *corev1.Service, *v1alpha1.TunnelConfiguration:
		return true
	}
	return false
}

// confirm returns nil if cached, the cache's answer, is that the object does not exist, but
// it does; object is the object then. Otherwise, it returns cached.
func (c *confirmer) confirm(ctx context.Context, key client.ObjectKey, object client.Object, cached error) error {
	ref := objectRef{kindOf(object), key}
	if !apierrors.IsNotFound(cached) {
		c.setMissing(ref, false)
		return cached
	}
	if c.isMissing(ref) || !c.limiter.Allow() {
		return cached
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	c.setMissing(ref, true)
	if err := c.live.Get(ctx, key, object); err != nil {
		return cached
	}
	_, err := compact(object)
	return err
}

func (c *confirmer) isMissing(ref objectRef) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missing[ref]
}

func (c *confirmer) setMissing(ref objectRef, missing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !missing {
		delete(c.missing, ref)
		return
	}
	if len(c.missing) >= maxConfirmed {
		clear(c.missing)
	}
	c.missing[ref] = true
}
