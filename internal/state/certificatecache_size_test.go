package state

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

func TestCertificateCacheForgetsSecretsWithoutAKey(t *testing.T) {
	first, second := GatewayKey("infra", "first"), GatewayKey("infra", "second")
	shared, own := types.NamespacedName{Namespace: "infra", Name: "shared"}, types.NamespacedName{Namespace: "infra", Name: "own"}
	c := &CachedCertificates{}
	c.Retain(first, []types.NamespacedName{shared, own})
	c.Retain(second, []types.NamespacedName{shared})
	for _, name := range []types.NamespacedName{shared, own} {
		c.store(name, &cachedVersion[gateway.Certificate]{found: gateway.Certificate{}})
	}
	c.Retain(first, nil)
	if len(c.retained) != 1 || len(c.objects) != 1 || c.objects[shared].version == nil {
		t.Errorf("%d keys and %d Secrets while one key refers to one Secret, want 1 of each", len(c.retained), len(c.objects))
	}
	c.Retain(second, nil)
	c.store(shared, &cachedVersion[gateway.Certificate]{}) // an inspection that ends after its key
	if len(c.retained) != 0 || len(c.objects) != 0 {
		t.Errorf("%d keys and %d Secrets without references, want none", len(c.retained), len(c.objects))
	}
}
