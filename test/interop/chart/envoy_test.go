package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// serviceCIDR is the range for ClusterIPs. On Linux, its addresses belong to the machine,
// so that Envoy can connect to a backend that listens on its Service's address.
const serviceCIDR = "127.97.0.0/16"

var shopGateway = &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}, Spec: gatewayv1.GatewaySpec{
	GatewayClassName: "cloudflare-tunnel",
	Listeners: []gatewayv1.Listener{{
		Name: "web", Hostname: ptr.To[gatewayv1.Hostname]("shop.example.com"), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
	}},
}}

// TestEnvoyServesTheChartsGatewayClass installs the chart with Envoy in a cluster without
// its CRDs, creates a Gateway, and removes the data plane from the values later.
// The Deployments' pods run as processes: two controllers with their ServiceAccount's
// permissions, and connectors with the real Envoy. The Envoys find the leader through the
// name in their configuration.
func TestEnvoyServesTheChartsGatewayClass(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("requires the addresses in " + serviceCIDR + ", which belong only to Linux machines")
	}
	e := &environment{t: t, dir: t.TempDir()}
	e.startCluster(t, cluster.Options{Progress: os.Stderr, ServiceCIDR: serviceCIDR, CRDs: gatewayAPICRDs})
	var pods *node.Node // needs the simulator's address
	e.startEdge(t, simulator.Options{AccountID: account, Token: apiToken, DialConnector: func(ctx context.Context, connector, _, address string) (net.Conn, error) {
		return pods.DialLoopback(ctx, types.NamespacedName{Namespace: namespace, Name: connector}, address)
	}})
	e.create(t, newNamespace(namespace), tokenSecret(namespace), newNamespace(shopGateway.Namespace))

	values := "cloudflare.accountID=" + account + ",cloudflare.existingSecret=cloudflare,cloudflare.baseURL=" + e.apiURL + ",controller.clusterID=chart,gatewayClass.dataPlane=Envoy"
	e.helm(t, "install", release, chartDir, "--namespace", namespace, "--set", values)
	pods = e.startNode(t)
	e.listenShop(t)
	e.create(t, shopGateway.DeepCopy(), shopRoute())
	eventually(t, "the Gateway to be programmed", e.checkProgrammed(t, shopGateway.DeepCopy()))
	eventually(t, "the Envoys to have the routes", e.checkDataPlaneReady(t))
	for header, want := range map[string]string{"x-canary: always": "shop", "x-canary: never": "404"} {
		eventually(t, "the answer with "+header, func() error {
			if got := e.answer("chart.shop.shop", "shop.example.com", header); got != want {
				return fmt.Errorf("got %s, want %s", got, want)
			}
			return nil
		})
	}
	e.checkEnvoysMayConnect(t)

	e.helm(t, "upgrade", release, chartDir, "--namespace", namespace, "--reset-then-reuse-values", "--set", "gatewayClass.dataPlane=")
	eventually(t, "ingress rules to serve the Gateway", func() error {
		tunnel := get(t, e, tunnelObject(namespace, shopGateway)).Status
		if tunnel.DataPlane != v1alpha1.DataPlaneIngressRules || tunnel.DataPlaneChange != nil {
			return fmt.Errorf("the data plane is %s, the change %v", tunnel.DataPlane, tunnel.DataPlaneChange)
		}
		return nil
	})
}

// startNode starts a node that runs the pods for the release and its connectors.
func (e *environment) startNode(t *testing.T) *node.Node {
	t.Helper()
	connectors := httptest.NewServer(e.edge.Edge())
	t.Cleanup(func() {
		connectors.CloseClientConnections()
		connectors.Close()
	})
	controllers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = controllers.Close() })
	n, err := node.Start(t.Context(), e.controlPlane.Config, node.Options{Images: e.images(t, connectors.URL, controllers.Addr().String())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			e.logPods(t)
		}
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	go e.connectEnvoys(controllers, n)
	return n
}

// images returns the programs that run in the pods. The controllers have their
// ServiceAccount's identity. Connectors connect to the address edge, and Envoys to the
// address xds.
func (e *environment) images(t *testing.T, edge, xds string) map[string]node.Image {
	t.Helper()
	envoyProgram, err := binaries.Envoy(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	e.buildPrograms(t)
	kubeconfig := filepath.Join(e.dir, "identity")
	if _, err := cluster.Identity(t.Context(), e.controlPlane.Config, namespace, release, kubeconfig); err != nil {
		t.Fatal(err)
	}
	authority, _, err := cert.GenerateSelfSignedCertKey("backends.test", nil, nil) // no backend has TLS
	authorities := filepath.Join(e.dir, "ca.crt")
	if err := errors.Join(err, os.WriteFile(authorities, authority, 0o600)); err != nil {
		t.Fatal(err)
	}
	return map[string]node.Image{
		"ghcr.io/tunnel-gateway/tunnel-gateway": {
			// Later flags take precedence.
			Command: []string{"/bin/sh", "-c", `exec "$0" "$@" --metrics-address=127.0.0.1:$METRICS_PORT --health-address=127.0.0.1:$HEALTH_PORT ` +
				`--xds-bind-address=127.0.0.1:$XDS_PORT`, filepath.Join(e.dir, "tunnel-gateway")},
			Environment: []string{"KUBECONFIG=" + kubeconfig},
			Ports:       map[int32]string{8080: "METRICS_PORT", 8081: "HEALTH_PORT", 18000: "XDS_PORT"},
		},
		"docker.io/cloudflare/cloudflared": {
			Command: []string{filepath.Join(e.dir, "connector")}, Program: "cloudflared",
			Environment: []string{"TUNNEL_EDGE=" + edge}, Ports: map[int32]string{2000: "METRICS_PORT"},
		},
		"docker.io/envoyproxy/envoy": {
			Command:     []string{filepath.Join(e.dir, "envoy")},
			Environment: []string{"ENVOY=" + envoyProgram, "XDS_ADDRESS=" + xds, "CA_FILE=" + authorities},
			Ports:       map[int32]string{envoy.PortOpen: "OPEN_PORT", envoy.PortProtected: "PROTECTED_PORT", envoy.PortReady: "READY_PORT"},
		},
	}
}

// buildPrograms builds the programs that replace the images.
func (e *environment) buildPrograms(t *testing.T) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", e.dir, "./cmd/tunnel-gateway", "./test/edge/connector", "./test/edge/envoy")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the programs: %v\n%s", err, output)
	}
}

// controllerAddress matches the controller's name and port in an Envoy configuration.
var controllerAddress = regexp.MustCompile(`"address":"([^"]+\.svc\.[^"]+)","portValue":(\d+)`)

// connectEnvoys replaces the cluster DNS for Envoys: it connects them to the controller's
// address in the connectors' Deployment.
func (e *environment) connectEnvoys(listener net.Listener, pods *node.Node) {
	for {
		inbound, err := listener.Accept()
		if err != nil {
			return // the test has ended
		}
		go func() {
			defer inbound.Close() //nolint:errcheck // Envoy notices it
			outbound, err := e.dialController(pods)
			if err != nil {
				return // Envoy tries again
			}
			defer outbound.Close() //nolint:errcheck // the controller notices it
			go func() {
				_, _ = io.Copy(outbound, inbound)
				_ = outbound.Close()
			}()
			_, _ = io.Copy(inbound, outbound)
		}()
	}
}

func (e *environment) dialController(pods *node.Node) (net.Conn, error) {
	deployment := &appsv1.Deployment{ObjectMeta: connectorMeta(namespace, shopGateway)}
	if err := e.kube.Get(context.Background(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		return nil, err
	}
	arguments := strings.Join(deployment.Spec.Template.Spec.InitContainers[0].Args, " ")
	address := controllerAddress.FindStringSubmatch(arguments)
	if address == nil {
		return nil, fmt.Errorf("the arguments of Envoy contain no Service: %s", arguments)
	}
	return pods.Dial(context.Background(), "tcp", net.JoinHostPort(address[1], address[2]))
}

// listenShop creates the Service shop and listens on its address.
func (e *environment) listenShop(t *testing.T) {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: shopGateway.Namespace, Name: "shop"},
		// Envoy connects to the ClusterIP: the API server accepts no loopback address in an
		// EndpointSlice.
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}, InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyLocal)},
	}
	e.create(t, service)
	listener, err := net.Listen("tcp", net.JoinHostPort(service.Spec.ClusterIP, "8080"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "shop") }))
	_ = server.Listener.Close() // it has accepted nothing
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
}

// shopRoute returns a route with a match that ingress rules cannot express.
func shopRoute() *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: shopGateway.Namespace, Name: "shop"}, Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(shopGateway.Name)}}},
		Rules: []gatewayv1.HTTPRouteRule{{
			Matches: []gatewayv1.HTTPRouteMatch{{Headers: []gatewayv1.HTTPHeaderMatch{{Name: "x-canary", Value: "always"}}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{Name: "shop", Port: ptr.To[gatewayv1.PortNumber](8080)},
			}}},
		}},
	}}
}

// checkDataPlaneReady returns a function that returns an error until the Envoys have the routes.
func (e *environment) checkDataPlaneReady(t *testing.T) func() error {
	return func() error {
		g := get(t, e, shopGateway.DeepCopy())
		if c := meta.FindStatusCondition(g.Status.Conditions, "tunnelgateway.dev/DataPlaneReady"); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("DataPlaneReady is %v", c)
		}
		return nil
	}
}

// checkEnvoysMayConnect checks that the chart's NetworkPolicy allows connector pods to
// connect to the controllers. The test bed does not enforce NetworkPolicies.
func (e *environment) checkEnvoysMayConnect(t *testing.T) {
	t.Helper()
	connectors := get(t, e, &appsv1.Deployment{ObjectMeta: connectorMeta(namespace, shopGateway)}).Spec.Template.Labels
	policy := get(t, e, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}})
	for _, rule := range policy.Spec.Ingress {
		if len(rule.Ports) != 1 || rule.Ports[0].Port.IntValue() != 18000 {
			continue
		}
		for _, peer := range rule.From {
			selector, err := metav1.LabelSelectorAsSelector(peer.PodSelector)
			if err != nil {
				t.Fatal(err)
			}
			if selector.Matches(labels.Set(connectors)) {
				return
			}
		}
	}
	t.Errorf("the NetworkPolicy allows no pod with the labels %v to connect to port 18000: %v", connectors, policy.Spec.Ingress)
}

// logPods writes the pods' states to the test log.
func (e *environment) logPods(t *testing.T) {
	var pods corev1.PodList
	if err := e.kube.List(context.Background(), &pods, client.InNamespace(namespace)); err != nil {
		t.Error(err)
	}
	for i := range pods.Items {
		t.Logf("pod %s: %+v %+v", pods.Items[i].Name, pods.Items[i].Status.InitContainerStatuses, pods.Items[i].Status.ContainerStatuses)
	}
}
