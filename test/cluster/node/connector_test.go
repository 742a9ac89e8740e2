package node_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// connectorNodeName names the node that runs connectors. It runs only the Pods that name
// it.
const connectorNodeName = "connectors"

func TestConnectorWithMetricsOnLoopbackBecomesReadyAndUnready(t *testing.T) {
	t.Parallel()
	cloudflare := newCloudflare(t)
	startConnectorNode(t, cloudflare.edge.URL, node.Options{Name: connectorNodeName})
	deployment := applyConnectors(t, connectorNodeName, v1alpha1.Connector{Metrics: new(v1alpha1.MetricsLoopback)}, cloudflare.token)

	eventuallyReports(t, deployment, "Ready")
	cloudflare.server.RotateToken(cloudflare.tunnel)
	cloudflare.disconnectAll(t) // the edge refuses the old token
	eventuallyReports(t, deployment, "Unavailable")
}

func TestConnectorWithAnIPv6AddressAloneBecomesReady(t *testing.T) {
	t.Parallel()
	cloudflare := newCloudflare(t)
	const name = "ipv6"
	startConnectorNode(t, cloudflare.edge.URL, node.Options{Name: name, IPv6: true}, "METRICS_HOST=::1")
	deployment := applyConnectors(t, name, v1alpha1.Connector{}, cloudflare.token)
	eventuallyReports(t, deployment, "Ready")
}

// With the default settings, connectors listen on the IPv4 and the IPv6 addresses of
// their pods.
func TestMetricsAddressOfConnectorsCoversIPv6(t *testing.T) {
	t.Parallel()
	arguments := connectorObjects(t, types.NamespacedName{Namespace: "infra", Name: "shared"}, v1alpha1.Connector{}).Deployment.Spec.Template.Spec.Containers[0].Args
	address := strings.Replace(arguments[slices.Index(arguments, "--metrics")+1], "2000", "0", 1)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test ends
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		connection, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Error(err)
			continue
		}
		_ = connection.Close()
	}
}

// cloudflare is the simulator with one tunnel.
type cloudflare struct {
	server        *simulator.Server
	api, edge     *httptest.Server
	tunnel, token string
}

func newCloudflare(t *testing.T) *cloudflare {
	t.Helper()
	server := simulator.New(simulator.Options{})
	c := &cloudflare{server: server, api: httptest.NewServer(server.API()), edge: httptest.NewServer(server.Edge())}
	t.Cleanup(func() {
		server.Close() // the HTTP servers wait until their connections have ended
		c.edge.Close()
		c.api.Close()
	})
	var created struct{ ID string }
	c.call(t, http.MethodPost, "", `{"name":"one","config_src":"cloudflare"}`, &created)
	c.tunnel = created.ID
	c.call(t, http.MethodGet, "/"+c.tunnel+"/token", "", &c.token)
	return c
}

// call calls the API at a path below cfd_tunnel, and stores the result in result.
func (c *cloudflare) call(t *testing.T, method, path, body string, result any) {
	t.Helper()
	url := c.api.URL + "/client/v4/accounts/account/cfd_tunnel" + path
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer any")
	response, err := c.api.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	envelope := struct{ Result any }{result}
	if err := json.NewDecoder(response.Body).Decode(&envelope); err != nil {
		t.Fatal(err)
	}
}

func (c *cloudflare) disconnectAll(t *testing.T) {
	t.Helper()
	c.call(t, http.MethodDelete, "/"+c.tunnel+"/connections", "", nil)
}

// startConnectorNode starts a node that replaces cloudflared, until the test ends.
func startConnectorNode(t *testing.T, edge string, o node.Options, environment ...string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "connector")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/tunnel-gateway/tunnel-gateway/test/edge/connector")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the connector: %v\n%s", err, output)
	}
	o.OnlyNamed, o.Images = true, map[string]node.Image{
		"docker.io/cloudflare/cloudflared": {
			Command: []string{program}, Program: "cloudflared",
			Environment: append([]string{"TUNNEL_EDGE=" + edge}, environment...), Ports: map[int32]string{2000: "METRICS_PORT"},
		},
	}
	n, err := node.Start(t.Context(), testCluster.Config, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// connectorObjects returns the objects that run a Gateway's connectors.
func connectorObjects(t *testing.T, gateway types.NamespacedName, settings v1alpha1.Connector) connector.Objects {
	t.Helper()
	objects, err := connector.Build(connector.Input{
		Tunnel: &v1alpha1.Tunnel{
			ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Namespace, Name: tunnel.ObjectName(gateway), UID: "0b3c"},
			Spec:       v1alpha1.TunnelSpec{Gateway: v1alpha1.GatewayReference{Namespace: gateway.Namespace, Name: gateway.Name}},
		},
		Settings: settings,
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// applyConnectors creates the objects that run a connector on the node, and returns the
// Deployment. Without a ready delay and with a short probe period, the test is faster.
func applyConnectors(t *testing.T, nodeName string, settings v1alpha1.Connector, token string) *appsv1.Deployment {
	t.Helper()
	gateway := types.NamespacedName{Namespace: namespace(t), Name: "shared"}
	settings.Replicas, settings.ReadyDelay = new(int32(1)), new(v1alpha1.Delay("0s"))
	objects := connectorObjects(t, gateway, settings)
	name := tunnel.ConnectorName(gateway)
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Namespace, Name: name},
		StringData: map[string]string{connector.TokenKey: token},
	})
	pod := objects.Deployment.Spec.Template.Spec.WithNodeName(nodeName)
	pod.Containers[0].ReadinessProbe.WithPeriodSeconds(1)
	// No Tunnel exists, so the garbage collector would delete the objects.
	objects.ServiceAccount.OwnerReferences, objects.Deployment.OwnerReferences = nil, nil
	for _, apply := range []func() error{
		func() error { return kube.Apply(t.Context(), objects.ServiceAccount, client.FieldOwner("test")) },
		func() error { return kube.Apply(t.Context(), objects.Deployment, client.FieldOwner("test")) },
	} {
		if err := apply(); err != nil {
			t.Fatal(err)
		}
	}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Namespace, Name: name}}
}

// eventuallyReports waits until the condition ConnectorsReady has the reason.
func eventuallyReports(t *testing.T, deployment *appsv1.Deployment, reason string) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(kube.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		g.Expect(connector.NewReadiness(deployment, v1alpha1.Connector{}).Reason.String()).To(Equal(reason))
	}, timeout, 50*time.Millisecond).Should(Succeed())
}
