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

// The Cloudflare API paths in the simulator's counters.
const (
	configurationPath = "/accounts/*/cfd_tunnel/*/configurations"
	tunnelPath        = "/accounts/*/cfd_tunnel/*"
	tunnelsPath       = "/accounts/*/cfd_tunnel"
)

// environment isolates a spec from others: it has a Cloudflare simulator, a GatewayClass
// with its own controller name, and two namespaces.
type environment struct {
	cloudflare          *simulator.Server
	apiURL              string
	controllerName      string
	className           string
	namespace           string // for Gateways and routes
	controllerNamespace string
	process             *controllerproc.Process   // the controller that was started last
	processes           []*controllerproc.Process // all controllers, including exited ones
}

// All environment names begin with environmentPrefix.
const environmentPrefix = "env"

// newEnvironment creates an environment without a running controller.
func newEnvironment() *environment {
	env := &environment{}
	env.prepare(simulator.Options{Dial: simulator.NamedOrigins(serviceName)})
	return env
}

// prepare starts the simulator and creates the objects that all specs need.
func (env *environment) prepare(o simulator.Options) {
	id := uniqueName(environmentPrefix)
	env.controllerName, env.className, env.namespace, env.controllerNamespace = "tunnelgateway.dev/"+id, id, id, id+"-system"
	env.cloudflare = simulator.New(o)
	server := httptest.NewServer(env.cloudflare.API())
	env.apiURL = server.URL + "/client/v4"
	DeferCleanup(func() {
		env.stopAll()
		server.CloseClientConnections()
		server.Close()
		env.cloudflare.Close()
	})
	for _, name := range []string{env.namespace, env.controllerNamespace} {
		env.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	Expect(cluster.ControllerRoles(context.Background(), kube, "../../config/rbac", env.controllerNamespace)).To(Succeed())
	env.create(&gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: env.className},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(env.controllerName)},
	})
}

func (env *environment) create(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(kube.Create(context.Background(), object)).To(Succeed())
	}
}

func (env *environment) delete(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(kube.Delete(context.Background(), object)).To(Succeed())
	}
}

// latest reads the object from the API server and returns it.
func latest[T client.Object](object T) T {
	GinkgoHelper()
	Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// update reads the object, changes it and writes it. It retries after a conflict.
func update[T client.Object](object T, mutate func(T)) {
	GinkgoHelper()
	Eventually(updateAs[T]).WithArguments(kube, object, mutate).Should(Succeed())
}

// updateAs updates the object once, as the client's user. It fails if the object changes
// between the read and the write.
func updateAs[T client.Object](c client.Client, object T, mutate func(T)) error {
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	mutate(object)
	return c.Update(context.Background(), object)
}

func (env *environment) objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: env.namespace, Name: name}
}

// gateway returns a Gateway with one listener for each hostname. ListenerSets in all
// namespaces can attach to it.
func (env *environment) gateway(name string, hostnames ...string) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{ObjectMeta: env.objectMeta(name), Spec: gatewayv1.GatewaySpec{
		GatewayClassName: gatewayv1.ObjectName(env.className),
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

// listenerSet returns a ListenerSet with one listener for the Gateway "shared".
func (env *environment) listenerSet(name, hostname string) *gatewayv1.ListenerSet {
	return &gatewayv1.ListenerSet{ObjectMeta: env.objectMeta(name), Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Name: "shared"},
		Listeners: []gatewayv1.ListenerEntry{{
			Name: "web", Hostname: ptr.To(gatewayv1.Hostname(hostname)), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		}},
	}}
}

// route returns an HTTPRoute that sends all requests to the Service.
func (env *environment) route(name, service string, parents ...gatewayv1.ParentReference) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: env.objectMeta(name), Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: parents},
		Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(service), Port: ptr.To[int32](80)},
		}}}}},
	}}
}

func (env *environment) service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: env.objectMeta(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func gatewayParent(name string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}
}

func listenerSetParent(name string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Name: gatewayv1.ObjectName(name)}
}

// tunnelName returns the tunnel name for a Gateway in the environment's namespace.
func (env *environment) tunnelName(gateway string) string {
	return env.tunnelNameIn(env.namespace, gateway)
}

// tunnelNameIn returns the tunnel name for a Gateway in any namespace. The cluster ID is
// the name of the environment's namespace.
func (env *environment) tunnelNameIn(namespace, gateway string) string {
	return tunnel.RemoteName(env.namespace, types.NamespacedName{Namespace: namespace, Name: gateway})
}

// tunnelObject returns the Gateway's Tunnel, or nil if there is none.
func (env *environment) tunnelObject(g *gatewayv1.Gateway) *v1alpha1.Tunnel {
	GinkgoHelper()
	object := &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: env.controllerNamespace, Name: tunnel.ObjectName(client.ObjectKeyFromObject(g))}}
	if !exists(object) {
		return nil
	}
	return object
}

// tunnelCondition returns a condition of the Gateway's Tunnel as "Status Reason".
func (env *environment) tunnelCondition(g *gatewayv1.Gateway, kind string) func() string {
	return func() string {
		object := env.tunnelObject(g)
		if object == nil {
			return "no Tunnel"
		}
		return formatCondition(object.Status.Conditions, kind)
	}
}

func (env *environment) tunnelPhase(g *gatewayv1.Gateway) func() string {
	return func() string {
		object := env.tunnelObject(g)
		if object == nil {
			return "no Tunnel"
		}
		return string(object.Status.Phase)
	}
}

// tunnel returns the ID of the Gateway's tunnel, or "" if there is none.
func (env *environment) tunnel(gateway string) string {
	id, _ := env.cloudflare.TunnelID(env.tunnelName(gateway))
	return id
}

// hostnames returns the hostnames in the ingress rules of the Gateway's tunnel.
func (env *environment) hostnames(gateway string) []string {
	var names []string
	for _, rule := range env.configuration(gateway).Ingress {
		if rule.Hostname != "" {
			names = append(names, rule.Hostname)
		}
	}
	return names
}

// configuration returns the stored configuration for the Gateway's tunnel.
func (env *environment) configuration(gateway string) provider.Configuration {
	GinkgoHelper()
	var c provider.Configuration
	if id := env.tunnel(gateway); id != "" {
		if text, version := env.cloudflare.StoredConfiguration(id); version > 0 {
			Expect(json.Unmarshal(text, &c)).To(Succeed())
		}
	}
	return c
}

// get sends a request through the Gateway's tunnel. It returns the name of the Service
// that responded, or the status code if no Service responded.
func (env *environment) get(gateway, host, path string) string {
	GinkgoHelper()
	id := env.tunnel(gateway)
	if id == "" {
		return "no tunnel"
	}
	return env.getThrough(id, host, path)
}

// serviceName returns the Service name in an address.
func serviceName(address string) string {
	service, _, _ := strings.Cut(address, ".")
	return service
}

// getThrough is like get, for the tunnel with this ID.
func (env *environment) getThrough(id, host, path string) string {
	GinkgoHelper()
	request := httptest.NewRequest(http.MethodGet, "http://"+host+path, http.NoBody)
	recorder := httptest.NewRecorder()
	env.cloudflare.Tunnel(id).ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		return fmt.Sprint(recorder.Code)
	}
	return recorder.Body.String()
}

// createPreviousTunnel creates a tunnel named like the Gateway's tunnel, as a previous
// installation would, and returns its ID.
func (env *environment) createPreviousTunnel(gateway string) string {
	GinkgoHelper()
	env.callCloudflareAPI(http.MethodPost, "/accounts/account/cfd_tunnel", fmt.Sprintf(`{"name":%q,"config_src":"cloudflare"}`, env.tunnelName(gateway)))
	return env.tunnel(gateway)
}

// createUnrelatedTunnel creates a tunnel whose name does not refer to a Gateway,
// and returns its ID.
func (env *environment) createUnrelatedTunnel() string {
	GinkgoHelper()
	name := "unrelated-" + env.namespace
	env.callCloudflareAPI(http.MethodPost, "/accounts/account/cfd_tunnel", fmt.Sprintf(`{"name":%q,"config_src":"cloudflare"}`, name))
	id, _ := env.cloudflare.TunnelID(name)
	return id
}

// callCloudflareAPI sends a request to the Cloudflare API that does not come
// from the controller.
func (env *environment) callCloudflareAPI(method, path, body string) {
	GinkgoHelper()
	request, err := http.NewRequest(method, env.apiURL+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer token")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusOK))
}

// resourceVersions returns the resourceVersion of each object that the controller writes
// to. The result changes with each write.
func (env *environment) resourceVersions(ctx context.Context) string {
	GinkgoHelper()
	var all []string
	for _, list := range []client.ObjectList{&gatewayv1.GatewayList{}, &gatewayv1.ListenerSetList{}, &gatewayv1.HTTPRouteList{}, &v1alpha1.TunnelList{}} {
		namespace := env.namespace
		if _, ok := list.(*v1alpha1.TunnelList); ok {
			namespace = env.controllerNamespace
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

func labelSelector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}
