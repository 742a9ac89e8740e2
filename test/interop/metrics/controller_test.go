package metrics

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// controllerBed is a real controller with the metrics that it serves, on a control plane
// without connectors and with a simulated Cloudflare.
type controllerBed struct {
	t                          *testing.T
	kube                       client.Client
	options                    controllerproc.Options
	process                    *controllerproc.Process
	metricsAddress, xdsAddress string
	families                   map[string]*dto.MetricFamily
}

// newControllerBed starts a control plane and a controller.
func newControllerBed(t *testing.T) *controllerBed {
	t.Helper()
	log.SetLogger(logr.Discard())
	b := &controllerBed{t: t, metricsAddress: freeAddress(t), xdsAddress: freeAddress(t)}
	dir := t.TempDir()
	binary := filepath.Join(dir, "tunnel-gateway")
	b.check(controllerproc.Build(t.Context(), binary))
	controlPlane, err := cluster.Start(t.Context(), cluster.Options{WithoutControllers: true})
	b.check(err)
	t.Cleanup(func() { b.check(controlPlane.Stop()) })
	kubeconfig := filepath.Join(dir, "kubeconfig")
	b.check(controlPlane.Kubeconfig(kubeconfig))
	b.kube, err = client.New(controlPlane.Config, client.Options{Scheme: manifest.Scheme()})
	b.check(err)
	edge := simulator.New(simulator.Options{})
	server := httptest.NewServer(edge.API())
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); edge.Close() })
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.ControllerNamespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sharedGateway.Namespace}})
	output, err := os.Create(filepath.Join(t.ArtifactDir(), "controller.log"))
	b.check(err)
	t.Cleanup(func() { b.check(output.Close()) })
	b.options = controllerproc.Options{
		Binary: binary, Kubeconfig: kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: "metrics", Cloudflare: server.URL + "/client/v4",
		Flags:  []string{"--metrics-address=" + b.metricsAddress, "--xds-bind-address=" + b.xdsAddress},
		Output: output,
	}
	b.start()
	t.Cleanup(func() { b.check(b.process.Stop()) })
	return b
}

func (b *controllerBed) start() {
	b.t.Helper()
	var err error
	b.process, err = controllerproc.Start(b.options)
	b.check(err)
}

// restart replaces the controller's process.
func (b *controllerBed) restart() {
	b.t.Helper()
	b.check(b.process.Stop())
	b.start()
}

func (b *controllerBed) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *controllerBed) create(objects ...client.Object) {
	b.t.Helper()
	for _, object := range objects {
		b.check(b.kube.Create(b.t.Context(), object))
	}
}

// serve creates a GatewayClass with the data plane, and a Gateway with the same name and
// a route.
func (b *controllerBed) serve(name string, dataPlane v1alpha1.DataPlane) {
	b.t.Helper()
	namespace := gatewayv1.Namespace(cluster.ControllerNamespace)
	meta := metav1.ObjectMeta{Namespace: sharedGateway.Namespace, Name: name}
	hostname := gatewayv1.Hostname(name + ".example.com")
	port := gatewayv1.PortNumber(80)
	route := &gatewayv1.HTTPRoute{ObjectMeta: meta}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(name)}}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(name), Port: &port},
	}}}}}
	b.create(
		&v1alpha1.TunnelConfiguration{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster.ControllerNamespace, Name: name},
			Spec:       v1alpha1.TunnelConfigurationSpec{DataPlane: &dataPlane},
		},
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gatewayv1.GatewayClassSpec{
			ControllerName: "tunnelgateway.dev/controller",
			ParametersRef:  &gatewayv1.ParametersReference{Group: gatewayv1.Group(v1alpha1.GroupVersion.Group), Kind: "TunnelConfiguration", Namespace: &namespace, Name: name},
		}},
		&gatewayv1.Gateway{ObjectMeta: meta, Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(name),
			Listeners:        []gatewayv1.Listener{{Name: "web", Hostname: &hostname, Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		route,
	)
}

// setReplicas sets the number of connectors in the GatewayClass settings.
func (b *controllerBed) setReplicas(name string, replicas int32) {
	b.t.Helper()
	c := &v1alpha1.TunnelConfiguration{}
	b.check(b.kube.Get(b.t.Context(), types.NamespacedName{Namespace: cluster.ControllerNamespace, Name: name}, c))
	c.Spec.Connector = &v1alpha1.Connector{Replicas: &replicas}
	b.check(b.kube.Update(b.t.Context(), c))
}

// setPath changes the route to an exact path.
func (b *controllerBed) setPath(name, path string) {
	b.t.Helper()
	exact := gatewayv1.PathMatchExact
	route := &gatewayv1.HTTPRoute{}
	b.check(b.kube.Get(b.t.Context(), types.NamespacedName{Namespace: sharedGateway.Namespace, Name: name}, route))
	route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &exact, Value: &path}}}
	b.check(b.kube.Update(b.t.Context(), route))
}

// connect connects an Envoy with the certificate that the controller has written for it.
func (b *controllerBed) connect(name string, rejectsRoutes bool) *envoyClient {
	b.t.Helper()
	tunnelName := sharedGateway.Namespace + "." + name
	object, secret := &v1alpha1.Tunnel{}, &corev1.Secret{}
	b.check(b.kube.Get(b.t.Context(), types.NamespacedName{Namespace: cluster.ControllerNamespace, Name: tunnelName}, object))
	b.check(b.kube.Get(b.t.Context(), types.NamespacedName{Namespace: cluster.ControllerNamespace, Name: connector.IdentitySecretName(object)}, secret))
	pair, err := tls.X509KeyPair(secret.Data[envoy.CertificateFile], secret.Data[envoy.KeyFile])
	b.check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secret.Data[envoy.CAFile])
	return connectEnvoy(b.t, b.xdsAddress, &tls.Config{MinVersion: tls.VersionTLS13, ServerName: envoy.ServerName, RootCAs: pool, Certificates: []tls.Certificate{pair}}, rejectsRoutes)
}

// await scrapes the controller until the Gateway's metric has the value; -1 means that it
// is absent.
func (b *controllerBed) await(metric, gateway string, want float64) {
	b.t.Helper()
	b.awaitValue(metric, gateway, func(got float64) bool { return got == want })
}

// awaitValue scrapes the controller until the metric has the expected value. A label
// value, for example the Gateway's name, selects the series.
func (b *controllerBed) awaitValue(metric, labelValue string, isExpected func(float64) bool) {
	b.t.Helper()
	err := wait.PollUntilContextTimeout(b.t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		b.scrape()
		return len(b.families) > 0 && isExpected(b.value(metric, labelValue)), nil
	})
	if err != nil {
		b.t.Fatalf("%s of %s is %v, which is not the expected value", metric, labelValue, b.value(metric, labelValue))
	}
}

// scrape reads the controller's metrics; none while it does not respond.
func (b *controllerBed) scrape() {
	b.t.Helper()
	b.families = nil
	response, err := http.Get("http://" + b.metricsAddress + "/metrics")
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	b.families, err = parser.TextToMetricFamilies(response.Body)
	b.check(err)
}

// value returns the sum of the metric's series with the label value, or -1.
func (b *controllerBed) value(metric, labelValue string) float64 {
	found, sum := false, 0.0
	for _, m := range b.families["tunnel_gateway_"+metric].GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetValue() == labelValue {
				found, sum = true, sum+m.GetGauge().GetValue()+m.GetCounter().GetValue()
			}
		}
	}
	if !found {
		return -1
	}
	return sum
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing uses it
	return fmt.Sprint(listener.Addr())
}
