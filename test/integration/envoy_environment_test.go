package integration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// xdsAddress is the address on which controllers serve Envoys. The specs of one process run
// one after the other. In a spec with several environments, the first one uses xdsAddress and
// the others use [xdsAddressOf].
var xdsAddress = networkOf(os.Getenv(partVariable)).xds + "1:18000"

// concurrentEnvironments limits the environments with Envoys in one spec.
const concurrentEnvironments = 8

// xdsAddressOf returns the address on which an environment's controllers serve Envoys.
func xdsAddressOf(number int) string {
	return fmt.Sprintf("%s%d:18000", networkOf(os.Getenv(partVariable)).xds, number+1)
}

// envoyImageOf returns the image for Envoys that connect to an environment's controllers.
func envoyImageOf(number int) string { return fmt.Sprintf("docker.io/test/envoy-%d", number) }

// meteredEnvoyImage is for Envoys whose listeners have the metrics by route and backend.
// The others have listeners without any, because an Envoy here cannot get listeners from
// the controller.
const meteredEnvoyImage = "docker.io/test/envoy-metered"

// maxProgramSize limits the expressions in Envoys with an image from [envoyImageOf].
// These Envoys therefore reject a configuration that the controller considers valid.
const maxProgramSize = 500

// edges tells connectors apart by their tunnel, and registers each with its simulator in
// the running spec, because the node has only one edge address.
type edges struct {
	mu      sync.Mutex
	servers []*simulator.Server
}

func (e *edges) add(s *simulator.Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers = append(e.servers, s)
}

func (e *edges) remove(s *simulator.Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers = slices.DeleteFunc(e.servers, func(other *simulator.Server) bool { return other == s })
}

// find returns the simulator that has the token's tunnel, or nil.
func (e *edges) find(token string) *simulator.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	var credentials struct {
		Tunnel string `json:"t"`
	}
	content, err := base64.StdEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(content, &credentials) != nil {
		return nil
	}
	for _, s := range e.servers {
		if slices.ContainsFunc(s.Tunnels(), func(t simulator.Tunnel) bool { return t.ID == credentials.Tunnel }) {
			return s
		}
	}
	return nil
}

func (e *edges) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s := e.find(token); s != nil {
		s.Edge().ServeHTTP(w, r)
		return
	}
	http.Error(w, "no running spec has the tunnel", http.StatusServiceUnavailable)
}

// bed is the node that runs the connector pods, and the edge to which they connect.
type bed struct {
	*node.Node
	edges *edges
}

// stopBed stops the node if it was started.
var stopBed = func() error { return nil }

var _ = AfterSuite(func() { Expect(stopBed()).To(Succeed()) })

var podLogs kubernetes.Interface

// startBed starts the node on its first call. A connector pod consists of the stand-in
// for cloudflared and the real Envoy.
var startBed = sync.OnceValue(func() *bed {
	GinkgoHelper()
	envoy, err := binaries.Envoy(context.Background(), GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp("", "tg-bed-")
	Expect(err).NotTo(HaveOccurred())
	// No spec has a backend with TLS, so any authority is sufficient.
	authority, _, err := cert.GenerateSelfSignedCertKey("backends.test", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	authorities := filepath.Join(dir, "ca.crt")
	Expect(os.WriteFile(authorities, authority, 0o600)).To(Succeed())
	b := &bed{edges: &edges{}}
	edge := httptest.NewServer(b.edges)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	podLogs, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	envoyImage := func(xdsAddress string, environment ...string) node.Image {
		return node.Image{
			Command:     []string{programPath("envoy")},
			Environment: append([]string{"ENVOY=" + envoy, "XDS_ADDRESS=" + xdsAddress, "CA_FILE=" + authorities}, environment...),
			Ports:       map[int32]string{10080: "OPEN_PORT", 10081: "PROTECTED_PORT", 2001: "READY_PORT"},
		}
	}
	images := map[string]node.Image{
		"docker.io/cloudflare/cloudflared": {
			Command: []string{programPath("connector")}, Program: "cloudflared",
			Environment: []string{"TUNNEL_EDGE=" + edge.URL}, Ports: map[int32]string{2000: "METRICS_PORT"},
		},
		"docker.io/envoyproxy/envoy": envoyImage(xdsAddress),
		meteredEnvoyImage:            envoyImage(xdsAddress, `SETTINGS={"metrics":{"by":["Route","Backend"]}}`),
	}
	for number := range concurrentEnvironments {
		images[envoyImageOf(number)] = envoyImage(xdsAddressOf(number), fmt.Sprintf("MAX_PROGRAM_SIZE=%d", maxProgramSize))
	}
	b.Node, err = node.Start(context.Background(), config, node.Options{
		ServeAddresses: true, Images: images, PodCIDR: networkOf(os.Getenv(partVariable)).pods,
	})
	Expect(err).NotTo(HaveOccurred())
	stopBed = func() error {
		err := b.Stop()
		edge.CloseClientConnections()
		edge.Close()
		return errors.Join(err, os.RemoveAll(dir))
	}
	return b
})

// newEnvoyEnvironment returns an environment whose GatewayClass uses the Envoy data
// plane. Requests go through the simulator to the Envoys in the connector pods, and from
// there to real servers.
func newEnvoyEnvironment() *environment {
	GinkgoHelper()
	return newLaggingEnvironment(nil)
}

// newLaggingEnvironment is like newEnvoyEnvironment, for an edge with the lag. Without a lag,
// connectors become ready at once.
func newLaggingEnvironment(lag func() simulator.Lag) *environment {
	GinkgoHelper()
	netns.Require(GinkgoTB())
	env := &environment{}
	b := startBed()
	env.prepare(simulator.Options{
		Lag: lag, Dial: b.Dial,
		DialConnector: func(ctx context.Context, connector, _, address string) (net.Conn, error) {
			return b.DialLoopback(ctx, types.NamespacedName{Namespace: env.controllerNamespace, Name: connector}, address)
		},
	})
	b.edges.add(env.cloudflare)
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			env.describePods()
		}
		env.stopAll() // a controller would create the Deployments again
		env.deletePods()
		b.edges.remove(env.cloudflare)
	})
	connector := &v1alpha1.Connector{Replicas: ptr.To[int32](2)}
	if lag == nil {
		connector.ReadyDelay = ptr.To[v1alpha1.Delay]("0s")
	}
	env.create(env.classSettings("envoy", v1alpha1.TunnelConfigurationSpec{DataPlane: ptr.To(v1alpha1.DataPlaneEnvoy), Connector: connector}))
	env.useClassSettings("envoy")
	return env
}

// visitConnectors sends 20 requests, so that each connector's Envoy answers.
func (env *environment) visitConnectors(gateway, host, path string) []string {
	var answers []string
	for range 20 {
		answers = append(answers, env.visit(gateway, host, path))
	}
	return answers
}

// startWithEnvoy starts a controller that serves Envoys.
func (env *environment) startWithEnvoy(arguments ...string) {
	GinkgoHelper()
	env.start(append([]string{"--xds-bind-address=" + xdsAddress}, arguments...)...)
}

// backendAddresses are the server addresses in specs, such as 10.111.255.1. They are local in
// the network namespace, because they are in the Service range, and no pod on the node has
// them.
var backendAddresses struct {
	sync.Mutex
	next int
}

// backend starts a server that responds to every request with the name, and creates a
// Service for it. It returns the Service's EndpointSlice.
func (env *environment) backend(name string, change ...func(*corev1.Service)) *discoveryv1.EndpointSlice {
	GinkgoHelper()
	return env.backendAt(name, env.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })), change...)
}

// backendAt creates a Service with the endpoint, and returns its EndpointSlice.
func (env *environment) backendAt(name string, endpoint discoveryv1.Endpoint, change ...func(*corev1.Service)) *discoveryv1.EndpointSlice {
	GinkgoHelper()
	service := env.service(name)
	for _, c := range change {
		c(service)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: env.namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{endpoint},
		Ports:       []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}},
	}
	env.create(service, slice)
	return slice
}

// listenBackend listens on port 80 on a new address, and returns its endpoint.
func listenBackend() (net.Listener, discoveryv1.Endpoint) {
	GinkgoHelper()
	backendAddresses.Lock()
	backendAddresses.next++
	address := fmt.Sprintf("%s%d", networkOf(os.Getenv(partVariable)).backends, backendAddresses.next)
	backendAddresses.Unlock()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "80"))
	Expect(err).NotTo(HaveOccurred())
	return listener, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}
}

// serve starts a server on port 80 on a new address, and returns its endpoint.
func (env *environment) serve(handler http.Handler) discoveryv1.Endpoint {
	GinkgoHelper()
	listener, endpoint := listenBackend()
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols} // #nosec G112 -- Envoy is the only client
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return endpoint
}

// visit is like get, with request headers as "Name: value".
func (env *environment) visit(gateway, host, path string, headers ...string) string {
	GinkgoHelper()
	request := httptest.NewRequest(http.MethodGet, "http://"+gateway+path, http.NoBody)
	request.Host = host
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	id := env.tunnel(gateway)
	if id == "" {
		return "no tunnel"
	}
	recorder := httptest.NewRecorder()
	env.cloudflare.Tunnel(id).ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		return strconv.Itoa(recorder.Code)
	}
	return recorder.Body.String()
}

// dataPlaneReady returns the Gateway condition about its Envoys as "Status Reason".
func dataPlaneReady(g *gatewayv1.Gateway) func() string {
	return gatewayCondition(g, "tunnelgateway.dev/DataPlaneReady")
}

// deletePods ends the connectors. Each Envoy uses inotify instances, which the kernel limits to
// 128 for a user by default.
func (env *environment) deletePods() {
	ctx, namespace := context.Background(), client.InNamespace(env.controllerNamespace)
	Expect(kube.DeleteAllOf(ctx, &appsv1.Deployment{}, namespace, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	Expect(kube.DeleteAllOf(ctx, &appsv1.ReplicaSet{}, namespace, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	Expect(kube.DeleteAllOf(ctx, &corev1.Pod{}, namespace, client.GracePeriodSeconds(0))).To(Succeed())
	Eventually(env.connectorPods).Should(BeEmpty())
}

// describePods writes the state of each connector container, and the end of its log.
func (env *environment) describePods() {
	for _, pod := range env.connectorPods() {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			fmt.Fprintf(GinkgoWriter, "pod %s, container %s: ready %t, %d restarts, state %+v\n", pod.Name, status.Name, status.Ready, status.RestartCount, status.State)
			request := podLogs.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: status.Name, TailLines: ptr.To[int64](60)})
			if text, err := request.DoRaw(context.Background()); err != nil {
				fmt.Fprintf(GinkgoWriter, "  no log: %v\n", err)
			} else {
				fmt.Fprintf(GinkgoWriter, "%s\n", text)
			}
		}
	}
}
