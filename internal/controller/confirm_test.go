package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// laggingCache is a cache that has received nothing yet, or everything. Like the real one, it sets
// the kind of what it returns.
type laggingCache struct {
	cache.Cache
	received bool
}

func (c *laggingCache) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if !c.received {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Kind: typeName(object)})
	return nil
}

// recordingReader records which objects the API server is asked for.
type recordingReader struct {
	client.Reader
	asked []string
	err   error
}

func (r *recordingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	r.asked = append(r.asked, key.String())
	if r.err != nil {
		return r.err
	}
	return r.Reader.Get(ctx, key, object, opts...)
}

// confirmedCache is a scopedCache for the namespace team.
type confirmedCache struct {
	*scopedCache
	cached *laggingCache
	live   *recordingReader
}

func newConfirmedCache(t *testing.T, objects ...client.Object) confirmedCache {
	t.Helper()
	c := confirmedCache{cached: &laggingCache{}, live: &recordingReader{Reader: newAPIServer(t, objects...).kube}}
	scope := Scope{ControllerNamespace: controllerNamespace, Namespaces: []string{"team"}}
	c.scopedCache = &scopedCache{Cache: c.cached, scope: scope, confirmer: newConfirmer(c.live)}
	return c
}

// wantAsked reads the object several times, and checks whether it is found and how often the API
// server was asked.
func (c confirmedCache) wantAsked(t *testing.T, key client.ObjectKey, object client.Object, found bool, times int) {
	t.Helper()
	c.live.asked = nil
	for range 3 {
		read := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is a copy
		if err := c.Get(t.Context(), key, read); (err == nil) != found || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("Get of %s: got %v, want an object: %t", key, err, found)
		}
		if len(read.GetAnnotations()) > 0 {
			t.Errorf("the object has annotations that the cache would drop: %v", read.GetAnnotations())
		}
	}
	if len(c.live.asked) != times {
		t.Errorf("the API server was asked %d times for %s, want %d", len(c.live.asked), key, times)
	}
}

func TestCacheConfirmsThatAnObjectDoesNotExist(t *testing.T) {
	key, missing := client.ObjectKey{Namespace: "team", Name: "web"}, client.ObjectKey{Namespace: "team", Name: "missing"}
	for name, object := range map[string]client.Object{"Service": &corev1.Service{}, "TunnelConfiguration": &v1alpha1.TunnelConfiguration{}} {
		t.Run(name, func(t *testing.T) {
			existing := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is a copy
			existing.SetNamespace(key.Namespace)
			existing.SetName(key.Name)
			existing.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}"})
			c := newConfirmedCache(t, existing)
			var recorded []string
			c.confirmer.record = func(o client.Object) { recorded = append(recorded, o.GetName()) }
			c.wantAsked(t, key, object, true, 3)
			if want := []string{"web", "web", "web"}; !slices.Equal(recorded, want) {
				t.Errorf("recorded %v, want %v: without an event, the next decision must read the object again", recorded, want)
			}
			c.wantAsked(t, missing, object, false, 1)
			c.cached.received = true
			c.wantAsked(t, missing, object, true, 0)
			c.cached.received = false // it was deleted
			c.wantAsked(t, missing, object, false, 1)
			c.wantAsked(t, client.ObjectKey{Namespace: "other", Name: "web"}, object, false, 0)
		})
	}
}

func TestCacheAsksFewTimes(t *testing.T) {
	// Thousands of references to objects that do not exist cause few requests, and an API server
	// that does not answer gets a pause.
	synctest.Test(t, func(t *testing.T) {
		c := newConfirmedCache(t)
		read := func() {
			c.live.asked = nil
			for i := range 5000 {
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: fmt.Sprint("web-", i)}, &corev1.Service{}); !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
		}
		if read(); len(c.live.asked) != 2*confirmationsPerSecond {
			t.Errorf("the API server was asked %d times, want %d", len(c.live.asked), 2*confirmationsPerSecond)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		c.live.err = errors.New("timeout")
		if read(); len(c.live.asked) != 1 {
			t.Errorf("an API server without an answer was asked %d times, want 1", len(c.live.asked))
		}
		time.Sleep(confirmPause) //nolint:forbidigo // virtual time
		c.live.err = nil
		if read(); len(c.live.asked) != 2*confirmationsPerSecond {
			t.Errorf("after the pause, the API server was asked %d times, want %d", len(c.live.asked), 2*confirmationsPerSecond)
		}
	})
}
