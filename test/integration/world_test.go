package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func randomSuffix() string { return rand.String(6) }

// The API's paths as the simulator counts them.
const (
	configurations = "/accounts/*/cfd_tunnel/*/configurations"
	anyTunnel      = "/accounts/*/cfd_tunnel/*"
	allTunnels     = "/accounts/*/cfd_tunnel"
)

// world is a Cloudflare, a GatewayClass and a controller of its own.
type world struct {
	edge       *simulator.Server
	api        string
	controller string // name
	class      string
	namespace  string
	system     string                    // the controller's namespace
	process    *controllerproc.Process   // what start started
	launched   []*controllerproc.Process // all there ever were
}

// newWorld makes one in which no controller runs yet.
func newWorld() *world {
	connectorKinds()
	id := unique("w")
	w := &world{controller: "tunnelgateway.dev/" + id, class: id, namespace: id, system: id + "-system"}
	w.edge = simulator.New(simulator.Options{Dial: simulator.NamedOrigins(serviceAt)})
	server := httptest.NewServer(w.edge.API())
	w.api = server.URL + "/client/v4"
	DeferCleanup(func() {
		w.endAll()
		server.CloseClientConnections()
		server.Close()
		w.edge.Close()
	})
	for _, name := range []string{w.namespace, w.system} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	Expect(cluster.ControllerRoles(context.Background(), kube, "../../config/rbac", w.system)).To(Succeed())
	w.create(&gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.class},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(w.controller)},
	})
	return w
}

func (w *world) create(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(kube.Create(context.Background(), object)).To(Succeed())
	}
}

func (w *world) delete(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(kube.Delete(context.Background(), object)).To(Succeed())
	}
}

// fresh reads the object again.
func fresh[T client.Object](object T) T {
	GinkgoHelper()
	Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// change reads the object, changes it and writes it.
func change[T client.Object](object T, how func(T)) {
	GinkgoHelper()
	Eventually(changeAs[T]).WithArguments(kube, object, how).Should(Succeed())
}

// changeAs tries once, as the client's user. Somebody else may write the object
// in between.
func changeAs[T client.Object](c client.Client, object T, how func(T)) error {
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	how(object)
	return c.Update(context.Background(), object)
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// gateway returns a Gateway with one listener for every given hostname, which
// everybody may attach to.
func (w *world) gateway(name string, hostnames ...string) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{ObjectMeta: w.meta(name), Spec: gatewayv1.GatewaySpec{
		GatewayClassName: gatewayv1.ObjectName(w.class),
		AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}},
	}}
	for i, hostname := range hostnames {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{
			Name: gatewayv1.SectionName(fmt.Sprintf("l%d", i)), Hostname: ptr.To(gatewayv1.Hostname(hostname)),
			Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		})
	}
	return g
}

// listenerSet returns a set of the Gateway "shared" with one listener.
func (w *world) listenerSet(name, hostname string) *gatewayv1.ListenerSet {
	return &gatewayv1.ListenerSet{ObjectMeta: w.meta(name), Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Name: "shared"},
		Listeners: []gatewayv1.ListenerEntry{{
			Name: "web", Hostname: ptr.To(gatewayv1.Hostname(hostname)), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		}},
	}}
}

// route returns a route of everything to the Service.
func (w *world) route(name, service string, parents ...gatewayv1.ParentReference) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: w.meta(name), Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: parents},
		Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: ptr.To[int32](80)},
		}}}}},
	}}
}

func (w *world) service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: w.meta(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func toGateway(name string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}
}

func toSet(name string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Name: gatewayv1.ObjectName(name)}
}

// tunnelName returns the name of the tunnel of a Gateway in the world's
// namespace.
func (w *world) tunnelName(gateway string) string { return w.tunnelNameIn(w.namespace, gateway) }

// tunnelNameIn returns the name of the tunnel of a Gateway in any namespace. The
// cluster ID is the name of the world's namespace.
func (w *world) tunnelNameIn(namespace, gateway string) string {
	return tunnel.RemoteName(w.namespace, types.NamespacedName{Namespace: namespace, Name: gateway})
}

// tunnelObject returns the Tunnel of a Gateway, or nil.
func (w *world) tunnelObject(g *gatewayv1.Gateway) *v1alpha1.Tunnel {
	GinkgoHelper()
	object := &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: tunnel.ObjectName(client.ObjectKeyFromObject(g))}}
	if !exists(object) {
		return nil
	}
	return object
}

// tunnelSays returns status and reason of a condition of the Gateway's Tunnel.
func (w *world) tunnelSays(g *gatewayv1.Gateway, kind string) func() string {
	return func() string {
		object := w.tunnelObject(g)
		if object == nil {
			return "no Tunnel"
		}
		return say(object.Status.Conditions, kind)
	}
}

// tunnelPhase returns the phase of the Gateway's Tunnel.
func (w *world) tunnelPhase(g *gatewayv1.Gateway) func() string {
	return func() string {
		object := w.tunnelObject(g)
		if object == nil {
			return "no Tunnel"
		}
		return string(object.Status.Phase)
	}
}

// tunnel returns the id of the Gateway's live tunnel, or "".
func (w *world) tunnel(gateway string) string {
	id, _ := w.edge.TunnelID(w.tunnelName(gateway))
	return id
}

// hostnames returns the hostnames of the rules of the Gateway's tunnel.
func (w *world) hostnames(gateway string) []string {
	var names []string
	for _, rule := range w.document(gateway).Ingress {
		if rule.Hostname != "" {
			names = append(names, rule.Hostname)
		}
	}
	return names
}

func (w *world) document(gateway string) provider.Configuration {
	GinkgoHelper()
	var c provider.Configuration
	if id := w.tunnel(gateway); id != "" {
		if text, version := w.edge.StoredConfiguration(id); version > 0 {
			Expect(json.Unmarshal(text, &c)).To(Succeed())
		}
	}
	return c
}

// get makes a request through the Gateway's tunnel and returns which Service
// answered, or the status of the edge's own answer.
func (w *world) get(gateway, host, path string) string {
	GinkgoHelper()
	id := w.tunnel(gateway)
	if id == "" {
		return "no tunnel"
	}
	return w.getFrom(id, host, path)
}

// serviceAt returns which Service is meant by an address.
func serviceAt(address string) string {
	service, _, _ := strings.Cut(address, ".")
	return service
}

// getFrom is get for a tunnel by its id.
func (w *world) getFrom(id, host, path string) string {
	GinkgoHelper()
	request := httptest.NewRequest(http.MethodGet, "http://"+host+path, http.NoBody)
	recorder := httptest.NewRecorder()
	w.edge.Tunnel(id).ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		return fmt.Sprint(recorder.Code)
	}
	return recorder.Body.String()
}

// foreignTunnel makes a tunnel of the Gateway's name that is not ours.
func (w *world) foreignTunnel(gateway string) string {
	GinkgoHelper()
	w.callAPI(http.MethodPost, "/accounts/account/cfd_tunnel", fmt.Sprintf(`{"name":%q,"config_src":"cloudflare"}`, w.tunnelName(gateway)))
	return w.tunnel(gateway)
}

// tunnelOfOthers creates a tunnel whose name is not one of this installation.
func (w *world) tunnelOfOthers() string {
	GinkgoHelper()
	name := "made-elsewhere-" + w.namespace
	w.callAPI(http.MethodPost, "/accounts/account/cfd_tunnel", fmt.Sprintf(`{"name":%q,"config_src":"cloudflare"}`, name))
	id, _ := w.edge.TunnelID(name)
	return id
}

// callAPI does something at Cloudflare behind the controller's back.
func (w *world) callAPI(method, path, body string) {
	GinkgoHelper()
	request, err := http.NewRequest(method, w.api+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer token")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusOK))
}

// versions returns the resourceVersion of every object that the controller
// writes to, which changes with every write.
func (w *world) versions(ctx context.Context) string {
	GinkgoHelper()
	var all []string
	for _, list := range []client.ObjectList{&gatewayv1.GatewayList{}, &gatewayv1.ListenerSetList{}, &gatewayv1.HTTPRouteList{}, &v1alpha1.TunnelList{}} {
		namespace := w.namespace
		if _, ok := list.(*v1alpha1.TunnelList); ok {
			namespace = w.system
		}
		Expect(kube.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		objects, err := meta.ExtractList(list)
		Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			o := object.(client.Object)
			all = append(all, o.GetName()+"="+o.GetResourceVersion())
		}
	}
	return strings.Join(all, " ")
}

func pointer[T any](value T) *T { return &value }

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}
