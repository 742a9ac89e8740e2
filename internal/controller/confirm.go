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
	// confirmTimeout limits how long a decision waits for a confirmation, and confirmPause is
	// how long none is requested after the API server did not answer.
	confirmTimeout, confirmPause = time.Second, 10 * time.Second
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
	// record makes the next decision read an object again that the cache has not received. It
	// never does if the object is deleted within a gap of the watch, and no event follows.
	record func(client.Object)

	mu sync.Mutex
	// missing are the objects that did not exist, and that the cache has not received since.
	missing map[typedName]bool
	// pausedUntil is when the API server is asked again.
	pausedUntil time.Time
}

func newConfirmer(live client.Reader) *confirmer {
	return &confirmer{live: live, limiter: rate.NewLimiter(confirmationsPerSecond, 2*confirmationsPerSecond), missing: map[typedName]bool{}, record: func(client.Object) {}}
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
	name := typedName{typeName(object), key}
	if !apierrors.IsNotFound(cached) {
		c.received(name)
		return cached
	}
	if !c.asks(name) {
		return cached
	}
	limited, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	if err := c.live.Get(limited, key, object); err != nil {
		c.answered(name, err)
		return cached
	}
	c.record(object)
	_, err := compact(object)
	return err
}

// received records that the cache has the object.
func (c *confirmer) received(name typedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.missing, name)
}

// asks reports whether the API server is to be asked about the object.
func (c *confirmer) asks(name typedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.missing[name] && !time.Now().Before(c.pausedUntil) && c.limiter.Allow()
}

// answered records an answer without an object.
func (c *confirmer) answered(name typedName, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !apierrors.IsNotFound(err) {
		c.pausedUntil = time.Now().Add(confirmPause)
		return
	}
	if len(c.missing) >= maxConfirmed {
		clear(c.missing)
	}
	c.missing[name] = true
}
