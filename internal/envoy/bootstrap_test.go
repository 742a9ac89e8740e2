package envoy_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// update makes the test write the golden file; make golden sets it.
var update = flag.Bool("update", false, "rewrite the golden files")

const golden = "testdata/bootstrap.golden.yaml"

const controllerName = "tunnel-gateway-xds.tunnel-gateway.svc.cluster.local."

// The bootstrap is the one in testdata/bootstrap.golden.yaml. Run make golden to update the
// file, and read the diff.
func TestGoldenBootstrap(t *testing.T) {
	checkGolden(t, golden, asYAML(t, envoy.Bootstrap(controllerName)))
}

// checkGolden compares the content with the golden file.
func checkGolden(t *testing.T, golden string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); run make golden to update it:\n%s", golden, diff)
	}
}

// asYAML returns the message as YAML with stable spaces and sorted fields.
func asYAML(t *testing.T, m proto.Message) []byte {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	content, err := yaml.JSONToYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// envoyBinary returns the path of Envoy. It downloads Envoy if necessary.
func envoyBinary(t *testing.T) string {
	t.Helper()
	path, err := binaries.Envoy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Envoy accepts the bootstrap, with the listeners that it normally gets from the
// controller.
func TestEnvoyAcceptsTheBootstrap(t *testing.T) {
	binary, certificates := envoyBinary(t), t.TempDir()
	for _, name := range []string{"sds-cert.yaml", "sds-ca.yaml"} { // Envoy rejects paths that do not exist
		if err := os.WriteFile(filepath.Join(certificates, name), []byte("resources: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, listeners := range map[string][]*listenerv3.Listener{
		"the bootstrap": nil, "the listeners": envoy.Listeners(envoy.ReadyOptions{Metrics: true, IPv6: true}, routing.Telemetry{}),
		"the listeners without metrics and IPv6": envoy.Listeners(envoy.ReadyOptions{}, routing.Telemetry{}),
		"the listeners with metrics by route":    envoy.Listeners(envoy.ReadyOptions{}, byRoute),
		"the listeners with metrics by backend":  envoy.Listeners(envoy.ReadyOptions{}, byBackend),
		"the listeners with access logs":         envoy.Listeners(envoy.ReadyOptions{}, routing.Telemetry{AccessLog: &v1alpha1.AccessLog{}}),
	} {
		bootstrap := envoy.Bootstrap(controllerName)
		bootstrap.StaticResources.Listeners = listeners
		file := filepath.Join(t.TempDir(), "bootstrap.json")
		text, err := protojson.Marshal(bootstrap)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(text, []byte(`"`+envoy.CertificatesPath), []byte(`"`+certificates))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		output, err := exec.Command(binary, "--mode", "validate", "--log-level", "error", "-c", file).CombinedOutput()
		// With a shared scope for metrics, Envoy crashes at its exit from this mode.
		if err != nil && !bytes.Contains(output, []byte("' OK")) {
			t.Errorf("Envoy rejects %s: %v\n%s", name, err, output)
		}
	}
}
