package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// gatewayWithSecrets returns the manifest of a Gateway in the namespace infra whose listener
// refers to the Secrets.
func gatewayWithSecrets(name, class string, secrets ...string) string {
	refs := make([]string, len(secrets))
	for i, secret := range secrets {
		refs[i] = "{name: " + secret + "}"
	}
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %s, namespace: infra}
spec:
  gatewayClassName: %s
  listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [%s]}}]
---
`, name, class, strings.Join(refs, ", "))
}

const tunnelClass = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: tunnel}
spec: {controllerName: tunnelgateway.dev/controller}
---
`

// secretReader is a reader for which every Secret exists.
type secretReader struct {
	client.Reader // not used
	// delay is the duration of each read.
	delay time.Duration
	// fails reports whether the reader returns an error for the Secret, or nil.
	fails func(name string) bool

	mu    sync.Mutex
	reads int // of Secrets, without those of their metadata
}

func (r *secretReader) Get(_ context.Context, name client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	time.Sleep(r.delay) //nolint:forbidigo // the time is virtual
	if r.fails != nil && r.fails(name.Name) {
		return fmt.Errorf("%s: %w", name.Name, errRead)
	}
	if _, ok := object.(*metav1.PartialObjectMetadata); !ok {
		r.mu.Lock()
		r.reads++
		r.mu.Unlock()
	}
	object.SetUID("uid")
	object.SetResourceVersion("1")
	return nil
}

func cachedCertificates(r client.Reader) *state.CachedCertificates {
	return &state.CachedCertificates{Metadata: r, Live: r, Reads: func(string) bool { return true }}
}

// load loads the Gateway infra/name from the manifests.
func load(t *testing.T, manifests, name string, certificates state.Certificates) (*state.Loaded, error) {
	t.Helper()
	loader := newLoader(memory(t, objects(t, manifests)))
	loader.Certificates = certificates
	return loader.Load(t.Context(), state.GatewayKey("infra", name))
}

// expectedToFail fails the test if the assertion holds.
func expectedToFail(t *testing.T, reason string, assertion func() bool) {
	t.Helper()
	if assertion() {
		t.Errorf("the assertion holds: remove the mark %q", reason)
	}
}

func TestLoadInspectsFourSecretsAtATime(t *testing.T) {
	manifests := tunnelClass + gatewayWithSecrets("shared", "tunnel", "a", "b", "c", "d", "e", "f", "g", "h")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		loaded, err := load(t, manifests, "shared", state.DirectCertificates{Reader: &secretReader{delay: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		if len(loaded.Snapshot.Certificates) != 8 {
			t.Errorf("got %d certificates, want 8", len(loaded.Snapshot.Certificates))
		}
		expectedToFail(t, "a load inspects one Secret after the other", func() bool { return time.Since(start) == 2*time.Second })
	})
}

func TestCachedCertificatesKeepTheResultsOfReferencedSecrets(t *testing.T) {
	// Each step loads one Gateway from the manifests.
	shared, other := gatewayWithSecrets("shared", "tunnel", "tls"), gatewayWithSecrets("other", "tunnel", "tls")
	type step struct{ gateway, manifests string }
	for name, test := range map[string]struct {
		steps []step
		reads int
	}{
		"unchanged":                             {[]step{{"shared", shared}, {"shared", shared}}, 1},
		"another Secret is added":               {[]step{{"shared", shared}, {"shared", gatewayWithSecrets("shared", "tunnel", "new", "tls")}}, 2},
		"another Secret replaces it":            {[]step{{"shared", shared}, {"shared", gatewayWithSecrets("shared", "tunnel", "new")}, {"shared", shared}}, 3},
		"the Gateway is deleted":                {[]step{{"shared", shared}, {"shared", ""}, {"shared", shared}}, 2},
		"the Gateway gets another class":        {[]step{{"shared", shared}, {"shared", gatewayWithSecrets("shared", "other", "tls")}, {"shared", shared}}, 2},
		"another Gateway refers to the Secret":  {[]step{{"shared", shared}, {"other", other}, {"shared", ""}, {"other", other}}, 1},
		"the last of two references is removed": {[]step{{"shared", shared}, {"other", other}, {"shared", ""}, {"other", ""}, {"shared", shared}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			secrets := &secretReader{}
			certificates := cachedCertificates(secrets)
			for _, step := range test.steps {
				if _, err := load(t, tunnelClass+step.manifests, step.gateway, certificates); err != nil {
					t.Fatal(err)
				}
			}
			check := func() bool { return secrets.reads == test.reads }
			if len(test.steps) == 3 || len(test.steps) == 5 {
				expectedToFail(t, "the results of Secrets without references are kept", check)
				return
			}
			if !check() {
				t.Errorf("got %d reads of Secrets, want %d", secrets.reads, test.reads)
			}
		})
	}
}

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
