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

// servesListedNamespacesOnly installs a second release, "narrow", which watches
// two namespaces in addition to its own.
func (e *environment) servesListedNamespacesOnly(t *testing.T) *runningController {
	for _, name := range []string{"narrow", "narrow-a", "narrow-b", "outside"} {
		e.create(t, newNamespace(name))
	}
	e.create(t, tokenSecret("narrow"))
	e.helm(t, "install", "narrow", chartDir, "--namespace", "narrow", "--set", e.scopedValues())
	r := e.startController(t, e.deploymentPod(t, "narrow", "narrow"), "narrow")
	inside, outside := scopedGateway("narrow-a"), scopedGateway("outside")
	e.create(t, outside, inside, webService("narrow-b"), webService("outside"),
		scopedRoute("narrow-b", "web.example.com", "narrow-b"), scopedRoute("outside", "ignored.example.com", "outside"),
		scopedRoute("narrow-a", "broken.example.com", "outside"))
	eventually(t, "the Gateway in a listed namespace to be programmed", e.checkProgrammed(t, inside))
	for host, want := range map[string]string{
		"web.example.com": "web.narrow-b",
		// The controller sees neither the Service nor the route in the namespace that is not listed.
		"broken.example.com": "500", "ignored.example.com": "404",
	} {
		eventually(t, "the answer for "+host, func() error {
			if got := e.answer(scopedTunnel(inside), host); got != want {
				return fmt.Errorf("got %s, want %s", got, want)
			}
			return nil
		})
	}
	if conditions := get(t, e, outside).Status.Conditions; len(conditions) == 0 || conditions[0].Status != metav1.ConditionUnknown {
		t.Errorf("the Gateway in a namespace that is not listed has a status: %v", conditions)
	}
	for _, request := range e.requests(t, r.user) {
		if request.Namespace == "outside" {
			t.Errorf("the controller sends a request for a namespace that is not listed: %s", request)
		}
	}
	if err := e.kube.Delete(t.Context(), inside); err != nil {
		t.Fatal(err)
	}
	e.checkTunnelRetires(t, inside)
	e.checkAudit(t, r)
	return r
}

// scopedTunnel returns the name that a Gateway's tunnel has at Cloudflare, for the second
// release.
func scopedTunnel(g *gatewayv1.Gateway) string {
	return tunnel.RemoteName("narrow", client.ObjectKeyFromObject(g))
}

// checkTunnelRetires waits until the second release has deleted a Gateway's Tunnel, and
// checks that it has deleted the tunnel too.
func (e *environment) checkTunnelRetires(t *testing.T, g *gatewayv1.Gateway) {
	t.Helper()
	eventually(t, fmt.Sprintf("the Tunnel of Gateway %s to retire", client.ObjectKeyFromObject(g)), func() error {
		return e.checkDeleted(t, tunnelObject("narrow", g))
	})
	if _, exists := e.edge.TunnelID(scopedTunnel(g)); exists {
		t.Errorf("the tunnel of the deleted Gateway %s still exists", client.ObjectKeyFromObject(g))
	}
}

// scopedValues returns the second release's values.
func (e *environment) scopedValues() string {
	return e.values() + ",controller.namespaces={narrow-a,narrow-b},certificates.namespaces={narrow-a},controller.clusterID=narrow" +
		",controller.name=tunnelgateway.dev/narrow,gatewayClass.name=narrow,crds.install=false,fullnameOverride=narrow"
}

func webService(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// survivesNamespaceDeletion deletes a listed namespace that contains a Gateway
// while the controller is stopped.
func (e *environment) survivesNamespaceDeletion(t *testing.T, r *runningController) *runningController {
	deleted := scopedGateway("narrow-b")
	e.create(t, deleted)
	eventually(t, "the Gateway in the listed namespace to be programmed", e.checkProgrammed(t, deleted))
	r.stop()
	e.deleteNamespace(t, "narrow-b")

	r = e.startController(t, e.deploymentPod(t, "narrow", "narrow"), "narrow")
	e.checkTunnelRetires(t, deleted)
	remaining := scopedGateway("narrow-a")
	e.create(t, remaining)
	eventually(t, "a Gateway in the remaining namespace to be programmed", e.checkProgrammed(t, remaining))
	r.checkLog(t, "ignoring namespace", "the namespace does not exist", `"namespace":"narrow-b"`, "helm upgrade")
	return r
}

// deleteNamespace deletes a namespace and waits until it does not exist. The
// controller adds no finalizer that could delay the deletion.
func (e *environment) deleteNamespace(t *testing.T, name string) {
	t.Helper()
	if err := e.kube.Delete(t.Context(), newNamespace(name)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion of namespace "+name, func() error { return e.checkDeleted(t, newNamespace(name)) })
}

// restartsWhenNamespaceIsDeleted deletes a listed namespace while the controller
// runs. The Role may be deleted before the namespace. The controller then cannot
// read the Gateway for a moment.
func (e *environment) restartsWhenNamespaceIsDeleted(t *testing.T, r *runningController) {
	e.deleteNamespace(t, "narrow-b")
	r.waitForExit(t)
	r.checkLog(t, "exiting for a restart", "narrow-b can no longer be served: the namespace does not exist")
	e.startController(t, e.deploymentPod(t, "narrow", "narrow"), "narrow")
	e.checkTunnelRetires(t, scopedGateway("narrow-b"))
}

// checkLog checks that the controller has logged the texts.
func (r *runningController) checkLog(t *testing.T, substrings ...string) {
	t.Helper()
	text := r.readLog(t)
	for _, want := range substrings {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not contain %q:\n%s", want, tail(text, 20))
		}
	}
}

// servesRecreatedNamespace recreates the namespace, and later its Role. In the
// meantime, the controller serves the other namespace. At the end, the controller
// connects to the API server through a proxy, which records the responses that
// contain Secrets.
func (e *environment) servesRecreatedNamespace(t *testing.T, r *runningController) *runningController {
	e.create(t, newNamespace("narrow-b"))
	r.stop()
	r = e.startController(t, e.deploymentPod(t, "narrow", "narrow"), "narrow")
	remaining := scopedGateway("narrow-a")
	change(t, e, remaining, func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = ptr.To[gatewayv1.Hostname]("*.example.com") })
	eventually(t, "the Gateway in the remaining namespace to be programmed", e.checkProgrammed(t, remaining))
	r.checkLog(t, "ignoring namespace", "the controller has no permission to list gateways.gateway.networking.k8s.io, watch gateways")

	e.helm(t, "upgrade", "narrow", chartDir, "--namespace", "narrow", "--force-conflicts", "--set", e.scopedValues()+","+settingsValues)
	r.waitForExit(t)
	r.checkLog(t, "exiting for a restart", "narrow-b can now be served")

	proxy := newRecordingProxy(t, e)
	r = e.startControllerAt(t, e.deploymentPod(t, "narrow", "narrow"), "narrow", proxy.config())
	recreated := scopedGateway("narrow-b")
	e.create(t, recreated)
	eventually(t, "the Gateway in the recreated namespace to be programmed", e.checkProgrammed(t, recreated))
	proxy.checkSecrets(t, apiToken, connectorMeta("narrow", recreated).Name)
	return r
}

// usesEveryPermissionInNamespaces makes the second release use each permission that the
// chart grants. The Roles in the namespaces are identical, so it is enough that the
// controller uses a permission in one of the namespaces.
func (e *environment) usesEveryPermissionInNamespaces(t *testing.T, r *runningController) {
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "narrow-b", Name: "late"}, Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Name: "narrow", Namespace: ptr.To[gatewayv1.Namespace]("narrow-a")},
		Listeners: []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
	}}
	// With two listeners as parents, one update to the route's status contains the same
	// change twice. The second event then continues the first event's series.
	parent := scopedGateway("narrow-a")
	change(t, e, parent, func(g *gatewayv1.Gateway) {
		second := *g.Spec.Listeners[0].DeepCopy()
		second.Name, second.Port = "second", 8080
		g.Spec.Listeners = append(g.Spec.Listeners, second)
	})
	route := scopedRoute("narrow-b", "web.example.com", "narrow-b")
	second := *route.Spec.ParentRefs[0].DeepCopy()
	route.Spec.ParentRefs[0].SectionName, second.SectionName = ptr.To[gatewayv1.SectionName]("web"), ptr.To[gatewayv1.SectionName]("second")
	route.Spec.ParentRefs = append(route.Spec.ParentRefs, second)
	e.create(t, set, webService("narrow-b"), route)
	e.exerciseController(t, r, mergeNamespaces(e.permissions(t, "narrow"), "narrow", "narrow-a", "narrow-b"), exercisedObjects{
		controllerNamespace: "narrow", gateway: scopedGateway("narrow-a"), class: "narrow", set: client.ObjectKeyFromObject(set),
		route: client.ObjectKeyFromObject(route), service: "web",
	})
	checkSecrets(t, e.requests(t, r.user), "narrow/cloudflare", "narrow-a/certificate", tunnelSecretName("narrow", scopedGateway("narrow-a")),
		tunnelSecretName("narrow", scopedGateway("narrow-b")), tunnelSecretName("narrow", retiringGateway("narrow-a", "narrow")))
}

func scopedGateway(namespace string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "narrow"}, Spec: gatewayv1.GatewaySpec{
		GatewayClassName: "narrow",
		Listeners: []gatewayv1.Listener{{
			Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType,
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}},
		}},
	}}
}

// scopedRoute returns a route to the Service web in the namespace backend.
func scopedRoute(namespace string, host gatewayv1.Hostname, backend gatewayv1.Namespace) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "narrow", Namespace: ptr.To[gatewayv1.Namespace]("narrow-a")}}},
		Hostnames:       []gatewayv1.Hostname{host},
		Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Namespace: &backend, Port: ptr.To[int32](80)},
		}}}}},
	}}
}
