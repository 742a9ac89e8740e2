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

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// gatewayWithSecrets returns a manifest for a Gateway in the namespace infra whose
// listener refers to the Secrets.
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
	// delay is how long each read takes.
	delay time.Duration
	// fails reports whether the reader returns an error for the Secret, or nil.
	fails func(name string) bool

	mu    sync.Mutex
	reads int // reads of Secrets, not of their metadata
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
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("the load took %s for reads of one second, want 2s", got)
		}
	})
}

func TestLoadReturnsTheErrorOfTheFirstSecret(t *testing.T) {
	// In which order references and reads come does not matter.
	manifests := tunnelClass + gatewayWithSecrets("shared", "tunnel", "e", "d", "c", "b", "a")
	secrets := &secretReader{fails: func(name string) bool { return name != "a" && name != "e" }}
	for range 20 {
		_, err := load(t, manifests, "shared", state.DirectCertificates{Reader: secrets})
		if want := "read Secret infra/b: b: the cache is broken"; err == nil || err.Error() != want {
			t.Fatalf("got error %v, want %s", err, want)
		}
	}
}

func TestLoadReturnsAPanicOfAnInspection(t *testing.T) {
	secrets := &secretReader{fails: func(string) bool { panic("a mistake") }}
	_, err := load(t, tunnelClass+gatewayWithSecrets("shared", "tunnel", "a"), "shared", state.DirectCertificates{Reader: secrets})
	if want := "panic: a mistake"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestLoadReportsForbiddenSecretsInOrder(t *testing.T) {
	manifests := tunnelClass + gatewayWithSecrets("shared", "tunnel", "d", "c", "b", "a", "readable") + gatewayWithSecrets("other", "tunnel", "e", "a")
	certificates := state.NewPermittedCertificates(forbiddenSecrets{})
	for _, name := range []string{"other", "shared"} {
		loaded, err := load(t, manifests, name, certificates)
		if err != nil {
			t.Fatal(err)
		}
		if !loaded.Snapshot.Certificates[types.NamespacedName{Namespace: "infra", Name: "a"}].Unchecked {
			t.Errorf("Gateway %s: the forbidden certificate is not unchecked", name)
		}
	}
	var got []string
	for _, name := range certificates.Forbidden() {
		got = append(got, name.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, got); diff != "" {
		t.Errorf("forbidden Secrets differ (-want +got):\n%s", diff)
	}
}

// forbiddenSecrets is a reader without permission for all Secrets except "readable".
type forbiddenSecrets struct{ client.Reader }

func (forbiddenSecrets) Get(_ context.Context, name client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if name.Name == "readable" {
		return nil
	}
	return forbiddenError("secrets", name.Namespace, name.Name)
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
			if secrets.reads != test.reads {
				t.Errorf("got %d reads of Secrets, want %d", secrets.reads, test.reads)
			}
		})
	}
}

func TestCachedCertificatesReadPermittedNamespaces(t *testing.T) {
	// CachedCertificates reads no Secrets outside the permitted namespaces, and reports
	// their certificates as unchecked.
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

func TestAssumedSecretsAreValidCertificates(t *testing.T) {
	manifests := tunnelClass + gatewayWithSecrets("shared", "tunnel", "b", "a", "readable")
	certificates := state.NewPermittedCertificates(memory(t, objects(t, manifests)))
	certificates.AssumeMissing = true
	loaded, err := load(t, manifests, "shared", certificates)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range certificates.Assumed() {
		if found := loaded.Snapshot.Certificates[name]; found.Problem != "" || found.Unchecked || !found.NotAfter.After(time.Now()) {
			t.Errorf("the certificate in Secret %s is not valid: %+v", name, found)
		}
	}
	if got := len(certificates.Assumed()); got != 3 {
		t.Errorf("%d assumed Secrets, want 3", got)
	}
}
