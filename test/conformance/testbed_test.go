package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	root           = "github.com/tunnel-gateway/tunnel-gateway"
	controllerName = "tunnelgateway.dev/controller"
)

// testBed contains the control plane, the controller and the simulator that the
// suite runs against.
type testBed struct {
	t          *testing.T
	kubeconfig string
	kube       client.Client
	cloudflare *simulator.Server
	edgeTLS    *tls.Config

	mu      sync.Mutex
	tunnels map[string]tunnelAddresses // by tunnel ID
}

// tunnelAddresses are the addresses that accept requests for a tunnel, without and
// with TLS.
type tunnelAddresses struct{ http, https string }

// startTestBed starts a test bed and stops it when the test ends. The controller
// writes its log to the file controllerLog.
func startTestBed(t *testing.T, controllerLog string) *testBed {
	envoy, err := binaries.Envoy(t.Context(), os.Stderr)
	must(t, err)
	control, err := cluster.Start(t.Context(), cluster.Options{Progress: os.Stderr, CRDs: installedCRDs})
	stopAtEnd(t, err, func() error { return control.Stop() })
	b := &testBed{t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), tunnels: map[string]tunnelAddresses{}}
	must(t, control.Kubeconfig(b.kubeconfig))

	certificate, authority := edgeCertificate(t)
	b.edgeTLS = certificate
	var pods *node.Node // the simulator dials through the node, and the node needs the simulator's address
	b.cloudflare = simulator.New(simulator.Options{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return pods.Dial(ctx, network, address)
		},
		DialConnector: func(ctx context.Context, connector, _, address string) (net.Conn, error) {
			return pods.DialLoopback(ctx, types.NamespacedName{Namespace: cluster.ControllerNamespace, Name: connector}, address)
		},
		OnCreate: b.listen,
	})
	t.Cleanup(b.cloudflare.Close)
	pods, err = node.Start(t.Context(), control.Config, node.Options{
		ServeAddresses: true, Images: images(envoy, serve(t, b.cloudflare.Edge()), authority),
	})
	stopAtEnd(t, err, func() error { return pods.Stop() })

	scheme := runtime.NewScheme() // the suite adds types to client-go's global scheme
	must(t, errors.Join(corev1.AddToScheme(scheme), gatewayv1.Install(scheme), v1alpha1.Install(scheme)))
	kube, err := client.New(control.Config, client.Options{Scheme: scheme})
	must(t, err)
	b.kube = kube
	must(t, kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.ControllerNamespace}}))
	for _, p := range planes {
		createClass(t, kube, p)
	}
	b.startController(t, serve(t, b.cloudflare.API()), controllerLog)
	for _, p := range planes {
		waitForClass(t, kube, p)
	}
	return b
}

// createClass creates the GatewayClass for the data plane.
func createClass(t *testing.T, kube client.Client, p plane) {
	must(t, kube.Create(t.Context(), configurationOf(p)))
	must(t, kube.Create(t.Context(), &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: p.class},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: controllerName, ParametersRef: parametersOf(p)},
	}))
}

// configurationOf returns the TunnelConfiguration for the data plane. The suite creates
// more Gateways in one namespace, and changes them more often, than a GatewayClass
// permits by default.
func configurationOf(p plane) *v1alpha1.TunnelConfiguration {
	return &v1alpha1.TunnelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.ControllerNamespace, Name: p.class},
		Spec: v1alpha1.TunnelConfigurationSpec{
			DataPlane: &p.name,
			Connector: &v1alpha1.Connector{Replicas: ptr.To[int32](1), ReadyDelay: ptr.To[v1alpha1.Delay]("0s"), Envoy: &v1alpha1.EnvoyProxy{Concurrency: ptr.To[int32](1)}},
			Limits: &v1alpha1.Limits{
				TunnelsPerNamespace:   ptr.To[int32](1000),
				RulesPerTunnel:        ptr.To[int32](10000),
				ListenersPerNamespace: ptr.To[int32](1000),
				ConfigurationUpdates:  &v1alpha1.ConfigurationUpdates{Burst: ptr.To[int32](1000), Interval: ptr.To[v1alpha1.Duration]("1s")},
			},
		},
	}
}

// parametersOf returns the reference to the data plane's TunnelConfiguration.
func parametersOf(p plane) *gatewayv1.ParametersReference {
	return &gatewayv1.ParametersReference{
		Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Namespace: ptr.To(gatewayv1.Namespace(cluster.ControllerNamespace)), Name: p.class,
	}
}

// waitForClass waits until the controller has set the GatewayClass's supported features,
// and writes them to a file.
func waitForClass(t *testing.T, kube client.Client, p plane) {
	var class gatewayv1.GatewayClass
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := kube.Get(ctx, client.ObjectKey{Name: p.class}, &class)
		return len(class.Status.SupportedFeatures) > 0, err
	})
	must(t, err)
	var names []gatewayv1.FeatureName
	for _, feature := range class.Status.SupportedFeatures {
		names = append(names, feature.Name)
	}
	raw, err := yaml.Marshal(names)
	must(t, err)
	must(t, os.WriteFile(p.file(os.Getenv(featuresVariable)), raw, 0o600)) // #nosec G703 -- the parent process sets the path
}

// listen accepts requests for a new tunnel.
func (b *testBed) listen(tunnel simulator.Tunnel) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Errorf("listen for tunnel %s: %v", tunnel.Name, err)
		return
	}
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Errorf("listen for tunnel %s: %v", tunnel.Name, err)
		return
	}
	b.mu.Lock()
	b.tunnels[tunnel.ID] = tunnelAddresses{http: plain.Addr().String(), https: secure.Addr().String()}
	b.mu.Unlock()
	b.cloudflare.Listen(tunnel.ID, plain)
	b.cloudflare.Listen(tunnel.ID, tls.NewListener(secure, b.edgeTLS))
}

// edge returns the address that accepts requests for a tunnel. Like at
// Cloudflare's edge, a tunnel serves every port, and the edge terminates TLS with
// its own certificate.
func (b *testBed) edge(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	id, _ := strings.CutSuffix(host, ".cfargotunnel.com")
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.tunnels[id]
	switch {
	case !ok:
		return "", fmt.Errorf("%s is not the address of a tunnel", host)
	case port == "443":
		return l.https, nil
	default:
		return l.http, nil
	}
}

// edgeCertificate returns a TLS configuration with a certificate that no listener refers
// to, and the path to its certificate authority.
func edgeCertificate(t *testing.T) (*tls.Config, string) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("cloudflare.test", nil, nil)
	must(t, err)
	pair, err := tls.X509KeyPair(certificate, key)
	must(t, err)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(authority, certificate, 0o600))
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, authority
}

// startController starts the controller.
func (b *testBed) startController(t *testing.T, api, log string) {
	out, err := os.Create(log) // #nosec G703 -- the parent process sets the path
	must(t, err)
	defer out.Close() //nolint:errcheck // the controller writes to it
	controller, err := controllerproc.Start(controllerproc.Options{
		Binary: programPath("tunnel-gateway"), Kubeconfig: b.kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: "conformance",
		Cloudflare: api + "/client/v4", Flags: []string{"--xds-bind-address=" + xdsAddress, "--retirement-delay=5s"}, Output: out,
	})
	must(t, err)
	t.Cleanup(func() {
		select {
		case <-controller.Exited():
			t.Errorf("the controller exited unexpectedly (%v); its log is %s", controller.Stop(), log)
		default:
			if err := controller.Stop(); err != nil {
				t.Errorf("stop the controller: %v; its log is %s", err, log)
			}
		}
	})
}

// serve serves the handler until the test ends and returns the URL.
func serve(t *testing.T, handler http.Handler) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go server.Serve(l)                       //nolint:errcheck // returns when the server is closed
	t.Cleanup(func() { _ = server.Close() }) // no client remains
	return "http://" + l.Addr().String()
}

// stopAtEnd fails the test if err is set. Otherwise, it calls end when the test
// ends.
func stopAtEnd(t *testing.T, err error, end func() error) {
	must(t, err)
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
