package integration

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// guideHost is the hostname in the guides to Envoy features.
const guideHost = "shop.example.com"

// guideNamespace is the namespace for the routes in these guides.
const guideNamespace = "shop"

// patchCommand matches a kubectl patch in a page's shell block.
var patchCommand = regexp.MustCompile(`(?m)^\s*kubectl patch (\w+) (\S+) -n (\S+) --type=(json|merge) -p '([^']+)'$`)

// guide is a page in docs/guides whose manifests and patches a spec applies.
type guide struct {
	env       *environment
	manifests []string     // YAML blocks in their order
	patches   [][]string   // matches of patchCommand in their order
	visitors  *http.Client // connects to the tunnel for every hostname
	edge      string       // address of the tunnel
}

// readGuide reads a page for the Gateway whose tunnel has the ID.
func (env *environment) readGuide(page, id string) *guide {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("../../docs/guides", page))
	Expect(err).NotTo(HaveOccurred())
	g := &guide{env: env, patches: patchCommand.FindAllStringSubmatch(string(text), -1)}
	for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
		g.manifests = append(g.manifests, strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"))
	}
	server := httptest.NewServer(env.cloudflare.Tunnel(id))
	g.edge = server.Listener.Addr().String()
	var dialer net.Dialer
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, g.edge)
	}}
	g.visitors = &http.Client{Transport: transport}
	DeferCleanup(func() {
		transport.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return g
}

// apply applies a YAML block on the page, and deletes its routes after the spec.
func (g *guide) apply(block int) {
	GinkgoHelper()
	for _, object := range g.env.adapt(parseManifests(g.manifests[block], "the guide")) {
		applyStrictly(object)
		if object.GetKind() == "HTTPRoute" {
			DeferCleanup(func() { Expect(client.IgnoreNotFound(kube.Delete(context.Background(), object))).To(Succeed()) })
		}
	}
}

// adapt replaces the controller name in the GatewayClasses.
func (env *environment) adapt(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	GinkgoHelper()
	for _, object := range objects {
		if object.GetKind() == "GatewayClass" {
			Expect(unstructured.SetNestedField(object.Object, env.controllerName, "spec", "controllerName")).To(Succeed())
		}
	}
	return objects
}

// applyStrictly applies an object as kubectl does. It fails if the object has an unknown field.
func applyStrictly(object *unstructured.Unstructured) {
	GinkgoHelper()
	strict := client.WithFieldValidation(kube, metav1.FieldValidationStrict)
	Expect(strict.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)).
		To(Succeed(), "%s %s", object.GetKind(), object.GetName())
}

// patchedKinds are the objects that the guides patch, by resource name.
var patchedKinds = map[string]func() client.Object{
	"httproute":           func() client.Object { return &gatewayv1.HTTPRoute{} },
	"gateway":             func() client.Object { return &gatewayv1.Gateway{} },
	"tunnelconfiguration": func() client.Object { return &v1alpha1.TunnelConfiguration{} },
}

// patch runs a kubectl patch command on the page.
func (g *guide) patch(command int) {
	GinkgoHelper()
	words := g.patches[command]
	Expect(patchedKinds).To(HaveKey(words[1]))
	object := patchedKinds[words[1]]()
	object.SetName(words[2])
	object.SetNamespace(words[3])
	kind := map[string]types.PatchType{"json": types.JSONPatchType, "merge": types.MergePatchType}[words[4]]
	Expect(kube.Patch(context.Background(), object, client.RawPatch(kind, []byte(words[5])))).To(Succeed())
}

// request sends a request to the guides' hostname, with headers as "Name: value". It
// returns the response's status and body, or an error if the response is incomplete.
func (g *guide) request(method, path, body string, headers ...string) (status int, text string, err error) {
	request, err := http.NewRequest(method, "http://"+guideHost+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	response, err := g.visitors.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// get returns the response to a GET as "status body".
func (g *guide) get(path string, headers ...string) string {
	status, body, err := g.request(http.MethodGet, path, "", headers...)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", status, body)
}

// count sends GET requests to / and counts how often each response occurs.
func (g *guide) count(requests int) map[string]int {
	counts := map[string]int{}
	for range requests {
		counts[g.get("/")]++
	}
	return counts
}

// keepVisiting sends requests to / until the caller calls stop. Each response must be one
// of the given responses.
func (g *guide) keepVisiting(responses ...string) (stop func()) {
	var stopping atomic.Bool
	var visiting sync.WaitGroup
	for range 4 {
		visiting.Go(func() {
			defer GinkgoRecover()
			for range time.Tick(5 * time.Millisecond) {
				if stopping.Load() {
					return
				}
				Expect(responses).To(ContainElement(g.get("/")))
			}
		})
	}
	return func() {
		stopping.Store(true)
		visiting.Wait()
	}
}

// webSocket opens a WebSocket.
func (g *guide) webSocket(path string) *webSocket {
	GinkgoHelper()
	config, err := websocket.NewConfig("ws://"+guideHost+path, "http://"+guideHost)
	Expect(err).NotTo(HaveOccurred())
	connection, err := net.Dial("tcp", g.edge)
	Expect(err).NotTo(HaveOccurred())
	socket, err := websocket.NewClient(config, connection)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = socket.Close() })
	return &webSocket{socket, bufio.NewReader(socket)}
}

// webSocket is the visitor's end of a WebSocket.
type webSocket struct {
	*websocket.Conn
	lines *bufio.Reader
}

// echo sends a line and returns the answer, or the error.
func (s *webSocket) echo(line string) string {
	if err := s.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err.Error()
	}
	if _, err := io.WriteString(s, line+"\n"); err != nil {
		return err.Error()
	}
	answer, err := s.lines.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(answer)
}

// echoServer returns each line with its name.
func echoServer(name string) http.Handler {
	return websocket.Server{Handler: func(socket *websocket.Conn) {
		for lines := bufio.NewScanner(socket); lines.Scan(); {
			if _, err := fmt.Fprintf(socket, "%s: %s\n", name, lines.Text()); err != nil {
				return
			}
		}
	}}
}

// guideBackend starts a server and creates its Service with port 8080 for the spec. It
// returns the Service's EndpointSlice.
func (env *environment) guideBackend(name string, handler http.Handler) *discoveryv1.EndpointSlice {
	GinkgoHelper()
	meta := objectMetaIn(guideNamespace, name)
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  *meta.DeepCopy(),
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{env.serve(handler)},
		Ports:       []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	env.create(service, slice)
	DeferCleanup(env.delete, service, slice)
	return slice
}

// answer returns a handler that responds with the text.
func answer(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}
