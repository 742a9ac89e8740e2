package chart

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// keepsToNamespaces installs a second release, for two namespaces, whose token is in
// a third.
func (w *world) keepsToNamespaces(t *testing.T) *running {
	for _, name := range []string{"narrow", "narrow-a", "narrow-b", "vault", "outside"} {
		w.create(t, namespaceCalled(name))
	}
	w.create(t, tokenSecret("vault"))
	w.helm(t, "install", "narrow", chartDir, "--namespace", "narrow", "--set", w.narrowValues("narrow-a,narrow-b"))
	r := w.run(t, w.pod(t, "narrow", "narrow"), "narrow")
	inside, outside := narrowGateway("narrow-a"), narrowGateway("outside")
	w.create(t, outside, inside, webService("narrow-b"), webService("outside"),
		narrowRoute("narrow-b", "web.example.com", "narrow-b"), narrowRoute("outside", "unseen.example.com", "outside"),
		narrowRoute("narrow-a", "broken.example.com", "outside"))
	eventually(t, "the Gateway of one of the namespaces", w.programmed(t, inside))
	for host, want := range map[string]string{
		"web.example.com": "web.narrow-b",
		// What is elsewhere does not exist: the Service, and the route.
		"broken.example.com": "500", "unseen.example.com": "404",
	} {
		eventually(t, "the answer of "+host, func() error {
			if got := w.ask("narrow-narrow-a-narrow", host); got != want {
				return fmt.Errorf("%s answers, and not %s", got, want)
			}
			return nil
		})
	}
	eventually(t, "the credentials to be kept", func() error {
		if len(get(t, w, tokenSecret("vault")).Finalizers) == 0 {
			return errors.New("the Secret has no finalizer")
		}
		return nil
	})
	if conditions := get(t, w, outside).Status.Conditions; len(conditions) == 0 || conditions[0].Status != metav1.ConditionUnknown {
		t.Errorf("the Gateway elsewhere has a status: %v", conditions)
	}
	requests := w.requests(t, r.user)
	checkNoneRefused(t, requests)
	for _, request := range requests {
		if request.Namespace == "outside" {
			t.Errorf("asked for elsewhere: %s", request)
		}
	}
	if err := w.kube.Delete(t.Context(), inside); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Gateway to go", func() error { return w.isGone(t, inside) })
	// Nothing keeps the Roles any more: a release can be uninstalled.
	eventually(t, "the Role to be let go", func() error { return w.keptRole(t, "narrow-a", false) })
	checkNoneRefused(t, w.requests(t, r.user))
	return r
}

// narrowValues are those of the second release.
func (w *world) narrowValues(namespaces string) string {
	return w.values() + ",cloudflare.existingSecret=vault/cloudflare,controller.namespaces={" + namespaces + "},controller.clusterID=narrow" +
		",controller.name=tunnelgateway.dev/narrow,gatewayClass.name=narrow,crds.install=false,fullnameOverride=narrow"
}

func webService(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// narrowRole is the name of the second release's Roles outside its namespace.
const narrowRole = "narrow.narrow"

// keptRole returns an error unless Role and RoleBinding of the second release
// are there, and kept or not, as wanted.
func (w *world) keptRole(t *testing.T, namespace string, wanted bool) error {
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: narrowRole}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: narrowRole}},
	} {
		if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if kept := len(object.GetFinalizers()) > 0; kept != wanted {
			return fmt.Errorf("%T has the finalizers %q", object, object.GetFinalizers())
		}
	}
	return nil
}

// losesNamespace deletes one of the namespaces, with a Gateway in it and while no
// controller runs, which finds everything being deleted.
func (w *world) losesNamespace(t *testing.T, r *running) *running {
	lost := narrowGateway("narrow-b")
	w.create(t, lost)
	eventually(t, "the Gateway in the namespace", w.programmed(t, lost))
	eventually(t, "the Role to be kept", func() error { return w.keptRole(t, "narrow-b", true) })
	r.stop()
	if err := w.kube.Delete(t.Context(), namespaceCalled("narrow-b")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace to wait for the Gateway only", func() error {
		if get(t, w, lost).DeletionTimestamp == nil || get(t, w, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "narrow-b", Name: narrowRole}}).DeletionTimestamp == nil {
			return errors.New("it is not being deleted")
		}
		return w.isGone(t, webService("narrow-b"))
	})
	r = w.run(t, w.pod(t, "narrow", "narrow"), "narrow")
	eventually(t, "the namespace to go", func() error { return w.isGone(t, namespaceCalled("narrow-b")) })
	if _, there := w.edge.TunnelID("narrow-narrow-b-narrow"); there {
		t.Error("the tunnel of the Gateway that went with its namespace is there")
	}
	r.ends(t)
	r.checkSaid(t, "ending, to be started again", "narrow-b has to be left out: the namespace does not exist")

	r = w.run(t, w.pod(t, "narrow", "narrow"), "narrow")
	others := narrowGateway("narrow-a")
	w.create(t, others)
	eventually(t, "a Gateway in the other namespace", w.programmed(t, others))
	r.checkSaid(t, "is left out", "the namespace does not exist", `"namespace":"narrow-b"`, "helm upgrade")
	return r
}

func (r *running) checkSaid(t *testing.T, wanted ...string) {
	t.Helper()
	text := r.said(t)
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, tail(text, 20))
		}
	}
}

// getsNamespaceBack makes the namespace again, and its Role later: between the two
// the others are served. What the controller is answered then, without a flag for
// tests, is looked at on its way.
func (w *world) getsNamespaceBack(t *testing.T, r *running) *running {
	w.create(t, namespaceCalled("narrow-b"), tokenSecret("narrow"))
	r.stop()
	r = w.run(t, w.pod(t, "narrow", "narrow"), "narrow")
	others := narrowGateway("narrow-a")
	change(t, w, others, func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = ptr.To[gatewayv1.Hostname]("*.example.com") })
	eventually(t, "the Gateway in the other namespace", w.programmed(t, others))
	r.checkSaid(t, "is left out", "the controller has no right to list gateways.gateway.networking.k8s.io, watch gateways")

	w.helm(t, "upgrade", "narrow", chartDir, "--namespace", "narrow", "--force-conflicts", "--set", w.narrowValues("narrow,narrow-a,narrow-b")+","+withSettings)
	r.ends(t)
	r.checkSaid(t, "ending, to be started again", "narrow-b can be worked in")

	proxy := newProxy(t, w)
	r = w.runAt(t, w.pod(t, "narrow", "narrow"), "narrow", proxy.config())
	again := narrowGateway("narrow-b")
	w.create(t, again)
	eventually(t, "the Gateway in the namespace that is there again", w.programmed(t, again))
	proxy.checkSecrets(t, apiToken, "narrow-tunnel-token")
	return r
}

// usesWhatIsGrantedInNamespaces does for the second release what
// usesWhatIsGranted does for the first. A permission counts as used when it is in
// one of the namespaces of the list: their Roles are the same.
func (w *world) usesWhatIsGrantedInNamespaces(t *testing.T, r *running) {
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "narrow-b", Name: "late"}, Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Name: "narrow", Namespace: ptr.To[gatewayv1.Namespace]("narrow-a")},
		Listeners: []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
	}}
	// One write of its status is two steps of the same kind, the second of which
	// counts on in the event of the first.
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
		namespace: "narrow-a", gateway: "narrow", class: "narrow", set: client.ObjectKeyFromObject(set),
		route: client.ObjectKeyFromObject(route), service: "web",
	})
	checkSecrets(t, w.requests(t, r.user), "vault/cloudflare", "narrow/cloudflare", "narrow-a/certificate",
		"narrow-a/narrow-tunnel-token", "narrow-a/gone-tunnel-token", "narrow-b/narrow-tunnel-token")
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
