package state_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

func TestCachedCertificatesReadPermittedNamespaces(t *testing.T) {
	// CachedCertificates reads no Secrets outside the permitted namespaces, and reports their
	// certificates as unchecked.
	server := newAPIServer(t, clusterManifests)
	server.fail = func(client.ObjectKey, any) error { return errRead }
	certificates := &state.CachedCertificates{
		Metadata: server, Live: server, Reads: func(namespace string) bool { return namespace == "infra" },
	}
	found, exists, err := certificates.Inspect(t.Context(), types.NamespacedName{Namespace: "team", Name: "live"})
	if err != nil || !exists || !found.Unchecked {
		t.Errorf("in another namespace: got %+v, %v, %v, want an unchecked certificate", found, exists, err)
	}
	if _, _, err := certificates.Inspect(t.Context(), types.NamespacedName{Namespace: "infra", Name: "live"}); !errors.Is(err, errRead) {
		t.Errorf("in a permitted namespace: got %v, want the read error", err)
	}
}
