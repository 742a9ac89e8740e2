package flagger

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// xdsAddress is the address on which the controller serves Envoys, in the network namespace.
// The conformance tests, which use 127.0.0.1, can run at the same time.
const xdsAddress = "127.0.0.99:18000"

// bed is a cluster with the controller, Flagger, Prometheus, and a Gateway for each data
// plane.
type bed struct {
	kube client.Client
	edge *simulator.Server
	pods *node.Node
	// checks is the URL of the webhooks for analyses: /pass and /fail.
	checks string
	// prometheus is the URL of Prometheus.
	prometheus string
}

// settings has the settings of the Envoys, which are also in [platform].
const settings = `{"metrics": {"by": ["Route", "Backend"], "allowWorkInProgress": true}}`

// platform contains the platform team's objects.
const platform = `
apiVersion: v1
kind: Namespace
metadata: {name: platform}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: envoy, namespace: platform}
spec: {dataPlane: Envoy, connector: {replicas: 1, readyDelay: 0s, envoy: {concurrency: 1, metrics: {by: [Route, Backend], allowWorkInProgress: true}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: envoy}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: envoy, namespace: platform}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ingress-rules}
spec: {controllerName: tunnelgateway.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: envoy, namespace: platform}
spec:
  gatewayClassName: envoy
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: ingress-rules, namespace: platform}
spec:
  gatewayClassName: ingress-rules
  listeners: [{name: web, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
`

// startBed starts a bed and stops it when the test ends.
func startBed(t *testing.T) *bed {
	t.Helper()
	netns.Require(t)
	control, err := cluster.Start(t.Context(), cluster.Options{Progress: os.Stderr, CRDs: withCRDsOfFlagger(t)})
	must(t, err)
	stopAtEnd(t, control.Stop)
	control.Config.QPS, control.Config.Burst = 1000, 1000
	b := &bed{}
	b.kube, err = client.New(control.Config, client.Options{Scheme: manifest.Scheme()})
	must(t, err)
	b.kube = client.WithFieldValidation(b.kube, metav1.FieldValidationStrict)
	b.edge = simulator.New(simulator.Options{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return b.pods.Dial(ctx, network, address)
		},
		DialConnector: func(ctx context.Context, connector, _, address string) (net.Conn, error) {
			return b.pods.DialLoopback(ctx, types.NamespacedName{Namespace: cluster.ControllerNamespace, Name: connector}, address)
		},
	})
	t.Cleanup(b.edge.Close)
	b.pods, err = node.Start(t.Context(), control.Config, node.Options{ServeAddresses: true, Images: images(t, serve(t, b.edge.Edge()))})
	must(t, err)
	stopAtEnd(t, b.pods.Stop)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, control.Kubeconfig(kubeconfig))
	must(t, b.kube.Create(t.Context(), namespaceObject(cluster.ControllerNamespace)))
	b.startController(t, kubeconfig)
	b.apply(t, platform)
	b.apply(t, readSample(t, "canary/00-weight-policy.yaml"))
	b.checks = serve(t, newChecks())
	b.startPrometheus(t)
	b.apply(t, strings.ReplaceAll(readSample(t, "canary/20-metric-templates.yaml"), "http://prometheus.monitoring:9090", b.prometheus))
	b.startFlagger(t, kubeconfig)
	return b
}

// withCRDsOfFlagger returns a function that adds the CRDs in Flagger's source.
func withCRDsOfFlagger(t *testing.T) func([]*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	file, err := os.Open(filepath.Join(moduleDir(t), "artifacts", "flagger", "crd.yaml"))
	must(t, err)
	defer file.Close() //nolint:errcheck // the file is only read
	var own []*apiextensionsv1.CustomResourceDefinition
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := decoder.Decode(crd); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		own = append(own, crd)
	}
	return func(defaults []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
		return append(defaults, own...)
	}
}

// images returns the programs that replace the images of cloudflared, Envoy and the
// application.
func images(t *testing.T, edge string) map[string]node.Image {
	t.Helper()
	envoy, err := binaries.Envoy(t.Context(), os.Stderr)
	must(t, err)
	// No backend has TLS, so any authority is sufficient.
	authority, _, err := cert.GenerateSelfSignedCertKey("backends.test", nil, nil)
	must(t, err)
	authorities := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(authorities, authority, 0o600))
	return map[string]node.Image{
		"docker.io/cloudflare/cloudflared": {
			Command: []string{programPath("connector")}, Program: "cloudflared",
			Environment: []string{"TUNNEL_EDGE=" + edge}, Ports: map[int32]string{2000: "METRICS_PORT"},
		},
		"docker.io/envoyproxy/envoy": {
			Command:     []string{programPath("envoy")},
			Environment: []string{"ENVOY=" + envoy, "XDS_ADDRESS=" + xdsAddress, "CA_FILE=" + authorities, "SETTINGS=" + settings},
			Ports:       map[int32]string{10080: "OPEN_PORT", 10081: "PROTECTED_PORT", 2001: "READY_PORT"},
		},
		"docker.io/test/app": {Command: []string{programPath("app")}, Ports: map[int32]string{8080: "APP_PORT"}},
	}
}

// newChecks returns the webhooks' handler.
func newChecks() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/pass", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/fail", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the checkout fails", http.StatusInternalServerError)
	})
	return mux
}

func (b *bed) startController(t *testing.T, kubeconfig string) {
	t.Helper()
	process, err := controllerproc.Start(controllerproc.Options{
		Binary: programPath("tunnel-gateway"), Kubeconfig: kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: "interop",
		Cloudflare: serve(t, b.edge.API()) + "/client/v4", Flags: []string{"--xds-bind-address=" + xdsAddress}, Output: logOf(t, "the controller"),
	})
	must(t, err)
	stopAtEnd(t, process.Stop)
}

// startFlagger starts Flagger. Only MetricTemplates name Prometheus.
func (b *bed) startFlagger(t *testing.T, kubeconfig string) {
	t.Helper()
	binary, err := Binary(t.Context(), os.Stderr)
	must(t, err)
	command := exec.Command(binary, "-kubeconfig="+kubeconfig, "-mesh-provider=gatewayapi:v1", "-control-loop-interval=1s", "-log-level=info",
		"-port=0", "-metrics-server=http://127.0.0.1:1") // #nosec G204 -- the test has built it
	command.Stdout = logOf(t, "Flagger")
	command.Stderr = command.Stdout
	process, err := controllerproc.Run(command)
	must(t, err)
	stopAtEnd(t, process.Stop)
}

// apply applies manifests with server-side apply.
func (b *bed) apply(t *testing.T, manifests string) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		must(t, b.kube.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership))
	}
}

// readSample returns a file in config/samples.
func readSample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "samples", filepath.FromSlash(name)))
	must(t, err)
	return string(text)
}

func namespaceObject(name string) *corev1.Namespace {
	namespace := &corev1.Namespace{}
	namespace.Name = name
	return namespace
}

// serve serves the handler until the test ends and returns the URL.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func stopAtEnd(t *testing.T, stop func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

type processLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *processLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// logOf returns a writer for the process's log, which it prints if the test fails.
func logOf(t *testing.T, process string) io.Writer {
	t.Helper()
	l := &processLog{}
	t.Cleanup(func() {
		if t.Failed() {
			l.mu.Lock()
			defer l.mu.Unlock()
			t.Logf("the log of %s:\n%s", process, l.text.String())
		}
	})
	return l
}
