package controller

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// emptyCache is a cache that has received nothing yet.
type emptyCache struct{ cache.Cache }

func (emptyCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// countedReader counts the requests to the API server.
type countedReader struct {
	client.Reader
	gets int
}

func (r *countedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	r.gets++
	return r.Reader.Get(ctx, key, object, opts...)
}

func TestCacheConfirmsThatAnObjectDoesNotExist(t *testing.T) {
	key := client.ObjectKey{Namespace: "team", Name: "web"}
	for name, object := range map[string]client.Object{"Service": &corev1.Service{}, "TunnelConfiguration": &v1alpha1.TunnelConfiguration{}} {
		t.Run(name, func(t *testing.T) {
			existing := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is a copy
			existing.SetNamespace(key.Namespace)
			existing.SetName(key.Name)
			existing.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}"})
			live := &countedReader{Reader: newAPIServer(t, existing).kube}
			c := &scopedCache{Cache: emptyCache{}, scope: Scope{ControllerNamespace: controllerNamespace}, confirmer: newConfirmer(live)}
			if err := c.Get(t.Context(), key, object); err != nil || object.GetName() != "web" || len(object.GetAnnotations()) > 0 {
				t.Errorf("Get of an object that the cache has not received: got %v and %v", object, err)
			}
			missing := client.ObjectKey{Namespace: "team", Name: "missing"}
			asked := live.gets
			for range 3 {
				if err := c.Get(t.Context(), missing, object); !apierrors.IsNotFound(err) {
					t.Errorf("Get of an object that does not exist: got %v, want NotFound", err)
				}
			}
			if live.gets-asked != 1 {
				t.Errorf("the API server was asked %d times for the same object, want 1", live.gets-asked)
			}
		})
	}
}

func TestCacheConfirmsFewObjects(t *testing.T) {
	// Thousands of references to objects that do not exist cause few requests, and no request
	// for an object outside the scope.
	live := &countedReader{Reader: newAPIServer(t).kube}
	c := &scopedCache{Cache: emptyCache{}, scope: Scope{ControllerNamespace: controllerNamespace, Namespaces: []string{"team"}}, confirmer: newConfirmer(live)}
	for i := range 5000 {
		namespace := []string{"team", "other"}[i%2]
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web" + string(rune('a'+i))}, &corev1.Service{}); !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	if live.gets < 20 || live.gets > 200 {
		t.Errorf("the API server was asked %d times, want about 20", live.gets)
	}
}
