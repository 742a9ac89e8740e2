package state_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// versionedConfigMap is a reader for one ConfigMap. It counts the reads of its data.
type versionedConfigMap struct {
	client.Reader
	version string // "" if the ConfigMap does not exist
	reads   int
}

func (r *versionedConfigMap) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if r.version == "" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	if _, isMetadata := object.(*metav1.PartialObjectMetadata); !isMetadata {
		r.reads++
		object.(*corev1.ConfigMap).Data = map[string]string{"ca.crt": r.version}
	}
	object.SetResourceVersion(r.version)
	return nil
}

func TestCachedCABundlesReadEachVersionOnce(t *testing.T) {
	r := &versionedConfigMap{version: "1"}
	c := &state.CachedCABundles{Metadata: r, Live: r}
	key, name := state.GatewayKey("infra", "shared"), types.NamespacedName{Namespace: "shop", Name: "ca"}
	inspect := func(wantExists bool, wantReads int, when string) {
		t.Helper()
		_, exists, err := c.InspectBundle(t.Context(), name)
		if err != nil || exists != wantExists || r.reads != wantReads {
			t.Errorf("%s: exists %t, %v, %d reads, want %t and %d", when, exists, err, r.reads, wantExists, wantReads)
		}
	}
	c.Retain(key, []types.NamespacedName{name})
	inspect(true, 1, "first")
	inspect(true, 1, "unchanged")
	r.version = "2"
	inspect(true, 2, "changed")
	r.version = ""
	inspect(false, 2, "deleted")
	r.version = "2"
	inspect(true, 3, "created again")
	c.Retain(key, nil)
	inspect(true, 4, "no longer retained")
	inspect(true, 5, "not cached")
}
