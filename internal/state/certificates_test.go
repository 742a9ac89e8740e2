package state_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// A Secret in a namespace that is not read costs no request, and its certificate
// is not checked.
func TestCachedCertificatesReadPermittedNamespaces(t *testing.T) {
	server := newAPIServer(t, clusterManifests)
	server.fail = func(client.ObjectKey, any) error { return errRead }
	certificates := &state.CachedCertificates{
		Metadata: server, Live: server, Reads: func(namespace string) bool { return namespace == "infra" },
	}
	found, exists, err := certificates.Inspect(t.Context(), types.NamespacedName{Namespace: "team", Name: "live"})
	if err != nil || !exists || !found.Unchecked {
		t.Errorf("in another namespace: %+v, exists %v, %v", found, exists, err)
	}
	if _, _, err := certificates.Inspect(t.Context(), types.NamespacedName{Namespace: "infra", Name: "live"}); !errors.Is(err, errRead) {
		t.Errorf("in a permitted namespace: %v, want a read", err)
	}
}
