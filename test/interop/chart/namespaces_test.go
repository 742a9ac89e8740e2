package chart

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// keepsToNamespaces installs a second release, for two namespaces other than its
// own.
func (w *world) keepsToNamespaces(t *testing.T) *running {
	for _, name := range []string{"narrow", "narrow-a", "narrow-b", "outside"} {
		w.create(t, namespaceCalled(name))
	}
	w.create(t, tokenSecret("narrow"))
	w.helm(t, "install", "narrow", chartDir, "--namespace", "narrow", "--set", w.narrowValues())
	r := w.run(t, w.pod(t, "narrow", "narrow"), "narrow")
	inside, outside := narrowGateway("narrow-a"), narrowGateway("outside")
	w.create(t, outside, inside, webService("narrow-b"), webService("outside"),
		narrowRoute("narrow-b", "web.example.com", "narrow-b"), narrowRoute("outside", "unseen.example.com", "outside"),
		narrowRoute("narrow-a", "broken.example.com", "outside"))
	eventually(t, "the Gateway in one of the namespaces", w.programmed(t, inside))
	for host, want := range map[string]string{
		"web.example.com": "web.narrow-b",
		// The Service and the route in the other namespace do not exist for the controller.
		"broken.example.com": "500", "unseen.example.com": "404",
	} {
		eventually(t, "the answer of "+host, func() error {
			if got := w.ask(narrowTunnel(inside), host); got != want {
				return fmt.Errorf("%s answers, want %s", got, want)
			}
			return nil
		})
	}
	if conditions := get(t, w, outside).Status.Conditions; len(conditions) == 0 || conditions[0].Status != metav1.ConditionUnknown {
		t.Errorf("the Gateway in the other namespace has a status: %v", conditions)
	}
	for _, request := range w.requests(t, r.user) {
		if request.Namespace == "outside" {
			t.Errorf("a request to a namespace that is not listed: %s", request)
		}
	}
	if err := w.kube.Delete(t.Context(), inside); err != nil {
		t.Fatal(err)
	}
	w.checkRetires(t, inside)
	w.checkAudit(t, r)
	return r
}

// narrowTunnel returns the name at Cloudflare of a Gateway's tunnel, in the second
// release.
func narrowTunnel(g *gatewayv1.Gateway) string {
	return tunnel.RemoteName("narrow", client.ObjectKeyFromObject(g))
}

// checkRetires waits until the Tunnel of a Gateway of the second release is gone,
// and checks that the tunnel is gone too.
func (w *world) checkRetires(t *testing.T, g *gatewayv1.Gateway) {
	t.Helper()
	eventually(t, fmt.Sprintf("the Tunnel of Gateway %s to retire", client.ObjectKeyFromObject(g)), func() error {
		return w.isGone(t, tunnelObject("narrow", g))
	})
	if _, there := w.edge.TunnelID(narrowTunnel(g)); there {
		t.Errorf("the tunnel of the deleted Gateway %s still exists", client.ObjectKeyFromObject(g))
	}
}

// narrowValues are the values of the second release.
func (w *world) narrowValues() string {
	return w.values() + ",controller.namespaces={narrow-a,narrow-b},certificates.namespaces={narrow-a},controller.clusterID=narrow" +
		",controller.name=tunnelgateway.dev/narrow,gatewayClass.name=narrow,crds.install=false,fullnameOverride=narrow"
}

func webService(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// losesNamespace deletes one of the namespaces, with a Gateway in it, while no
// controller runs.
func (w *world) losesNamespace(t *testing.T, r *running) *running {
	lost := narrowGateway("narrow-b")
	w.create(t, lost)
	eventually(t, "the Gateway in the namespace", w.programmed(t, lost))
	r.stop()
	w.deleteNamespace(t, "narrow-b")

	r = w.run(t, w.pod(t, "narrow", "narrow"), "narrow")
	w.checkRetires(t, lost)
	others := narrowGateway("narrow-a")
	w.create(t, others)
	eventually(t, "a Gateway in the other namespace", w.programmed(t, others))
	r.checkSaid(t, "ignoring a namespace of the list", "the namespace does not exist", `"namespace":"narrow-b"`, "helm upgrade")
	return r
}

// deleteNamespace deletes a namespace and waits until it is gone: no finalizer of
// the controller delays that.
func (w *world) deleteNamespace(t *testing.T, name string) {
	t.Helper()
	if err := w.kube.Delete(t.Context(), namespaceCalled(name)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "namespace "+name+" to be gone", func() error { return w.isGone(t, namespaceCalled(name)) })
}

// losesNamespaceWhileRunning deletes one of the namespaces while the controller
// runs. The Role may be deleted before the namespace, so that nothing is known of
// the Gateway for a while.
func (w *world) losesNamespaceWhileRunning(t *testing.T, r *running) {
	w.deleteNamespace(t, "narrow-b")
	r.ends(t)
	r.checkSaid(t, "exiting for a restart", "narrow-b can no longer be served: the namespace does not exist")
	w.run(t, w.pod(t, "narrow", "narrow"), "narrow")
	w.checkRetires(t, narrowGateway("narrow-b"))
}

func (r *running) checkSaid(t *testing.T, wanted ...string) {
	t.Helper()
	text := r.said(t)
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not contain %q:\n%s", want, tail(text, 20))
		}
	}
}

// getsNamespaceBack creates the namespace again, and its Role later: in between,
// the other namespaces are served. At the end, the controller's connection to the
// API server leads through a proxy, which checks the answers about Secrets.
func (w *world) getsNamespaceBack(t *testing.T, r *running) *running {
	w.create(t, namespaceCalled("narrow-b"))
	r.stop()
	r = w.run(t, w.pod(t, "narrow", "narrow"), "narrow")
	others := narrowGateway("narrow-a")
	change(t, w, others, func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = ptr.To[gatewayv1.Hostname]("*.example.com") })
	eventually(t, "the Gateway in the other namespace", w.programmed(t, others))
	r.checkSaid(t, "ignoring a namespace of the list", "the controller has no permission to list gateways.gateway.networking.k8s.io, watch gateways")

	w.helm(t, "upgrade", "narrow", chartDir, "--namespace", "narrow", "--force-conflicts", "--set", w.narrowValues()+","+withSettings)
	r.ends(t)
	r.checkSaid(t, "exiting for a restart", "narrow-b can now be served")

	proxy := newProxy(t, w)
	r = w.runAt(t, w.pod(t, "narrow", "narrow"), "narrow", proxy.config())
	again := narrowGateway("narrow-b")
	w.create(t, again)
	eventually(t, "the Gateway in the namespace that exists again", w.programmed(t, again))
	proxy.checkSecrets(t, apiToken, connectorsOf("narrow", again).Name)
	return r
}

// usesWhatIsGrantedInNamespaces does for the second release what
// usesWhatIsGranted does for the first. A permission counts as used when it is
// used in one of the namespaces: their Roles are the same.
func (w *world) usesWhatIsGrantedInNamespaces(t *testing.T, r *running) {
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "narrow-b", Name: "late"}, Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Name: "narrow", Namespace: ptr.To[gatewayv1.Namespace]("narrow-a")},
		Listeners: []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
	}}
	// One write of the route's status is then two changes of the same kind. The
	// event about the second one continues the event about the first.
	parent := narrowGateway("narrow-a")
	change(t, w, parent, func(g *gatewayv1.Gateway) {
		more := *g.Spec.Listeners[0].DeepCopy()
		more.Name, more.Port = "more", 8080
		g.Spec.Listeners = append(g.Spec.Listeners, more)
	})
	route := narrowRoute("narrow-b", "web.example.com", "narrow-b")
	more := *route.Spec.ParentRefs[0].DeepCopy()
	route.Spec.ParentRefs[0].SectionName, more.SectionName = ptr.To[gatewayv1.SectionName]("web"), ptr.To[gatewayv1.SectionName]("more")
	route.Spec.ParentRefs = append(route.Spec.ParentRefs, more)
	w.create(t, set, webService("narrow-b"), route)
	w.usesAll(t, r, inOneOf(w.permissions(t, "narrow"), "narrow", "narrow-a", "narrow-b"), disturbed{
		controllerNamespace: "narrow", gateway: narrowGateway("narrow-a"), class: "narrow", set: client.ObjectKeyFromObject(set),
		route: client.ObjectKeyFromObject(route), service: "web",
	})
	checkSecrets(t, w.requests(t, r.user), "narrow/cloudflare", "narrow-a/certificate", secretOf("narrow", narrowGateway("narrow-a")),
		secretOf("narrow", narrowGateway("narrow-b")), secretOf("narrow", goneGateway("narrow-a", "narrow")))
}

func narrowGateway(namespace string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "narrow"}, Spec: gatewayv1.GatewaySpec{
		GatewayClassName: "narrow",
		Listeners: []gatewayv1.Listener{{
			Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType,
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}},
		}},
	}}
}

// narrowRoute refers to the Service web of a namespace.
func narrowRoute(namespace string, host gatewayv1.Hostname, backend gatewayv1.Namespace) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "narrow", Namespace: ptr.To[gatewayv1.Namespace]("narrow-a")}}},
		Hostnames:       []gatewayv1.Hostname{host},
		Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Namespace: &backend, Port: ptr.To[int32](80)},
		}}}}},
	}}
}
