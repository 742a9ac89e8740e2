package chart

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// TestInstall installs, upgrades and uninstalls the chart. Each step builds on
// the ones before, in one cluster.
func TestInstall(t *testing.T) {
	w := newWorld(t)
	w.create(t, namespaceCalled(namespace), tokenSecret(namespace))
	var controller, narrow *running
	for _, step := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"settings need the CRDs first", func(t *testing.T) { w.refusesSettingsBeforeTheCRD(t) }},
		{"the samples are served", func(t *testing.T) {
			w.helm(t, "install", release, chartDir, "--namespace", namespace, "--set", w.values())
			controller = w.run(t, w.pod(t, release, namespace), namespace)
			w.servesSamples(t)
		}},
		{"an upgrade upgrades the CRD and brings settings", func(t *testing.T) { w.upgrades(t) }},
		{"the controller uses every permission", func(t *testing.T) { w.usesWhatIsGranted(t, controller) }},
		{"a list of namespaces limits everything", func(t *testing.T) { narrow = w.keepsToNamespaces(t) }},
		{"a listed namespace can be deleted while no controller runs", func(t *testing.T) { narrow = w.losesNamespace(t, narrow) }},
		{"a listed namespace can be created again", func(t *testing.T) { narrow = w.getsNamespaceBack(t, narrow) }},
		{"the controller uses every permission in namespaces", func(t *testing.T) { w.usesWhatIsGrantedInNamespaces(t, narrow) }},
		{"a listed namespace can be deleted while a controller runs", func(t *testing.T) { w.losesNamespaceWhileRunning(t, narrow) }},
		{"uninstalling too early loses nothing", func(t *testing.T) { w.survivesUninstalling(t, controller) }},
	} {
		if !t.Run(step.name, step.do) {
			break // the others build on it
		}
	}
}

// values are those of every release in this test. They switch on what is off by
// default, so that the controller receives every flag. The trace collector does
// not exist, which is no obstacle.
func (w *world) values() string {
	return "cloudflare.accountID=" + account + ",cloudflare.existingSecret=cloudflare,cloudflare.baseURL=" + w.api +
		",controller.retirementDelay=1s,metrics.pprof=true,tracing.endpoint=http://127.0.0.1:9"
}

// withSettings are values that the first install cannot have, as the README says.
const withSettings = `tunnelConfiguration.create=true,tunnelConfiguration.spec.account.accountID=` + account +
	`,tunnelConfiguration.spec.account.apiTokenSecretRef.name=cloudflare` +
	`,tunnelConfiguration.spec.connector.podDisruptionBudget.maxUnavailable=1` +
	`,tunnelConfiguration.spec.connector.autoscaling.minReplicas=2,tunnelConfiguration.spec.connector.autoscaling.maxReplicas=3`

// refusesSettingsBeforeTheCRD holds what the README says of the first install.
func (w *world) refusesSettingsBeforeTheCRD(t *testing.T) {
	out, err := helm(t, "install", "early", chartDir, "--namespace", namespace, "--kubeconfig", w.kubeconfig, "--set", w.values()+","+withSettings)
	if err == nil || !strings.Contains(out, `no matches for kind "TunnelConfiguration"`) {
		t.Errorf("got %v, want no matches for the kind:\n%s", err, out)
	}
}

// pod is that of the controller's Deployment.
func (w *world) pod(t *testing.T, name, namespace string) corev1.PodSpec {
	t.Helper()
	return get(t, w, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}).Spec.Template.Spec
}

var shared = &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared"}}

func (w *world) programmed(t *testing.T, g *gatewayv1.Gateway) func() error {
	return func() error {
		if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		c := meta.FindStatusCondition(g.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != g.Generation {
			return fmt.Errorf("Programmed is %v", c)
		}
		return nil
	}
}

// servesSamples is the demo.
func (w *world) servesSamples(t *testing.T) {
	w.apply(t, root+"/config/samples")
	eventually(t, "the Gateway of the samples", w.programmed(t, shared.DeepCopy()))
	for host, want := range map[string]string{
		"shared.example.com": "home.platform", "team-a.example.com": "web.team-a",
		"shop.team-b.example.com": "shop.team-b", "nobody.example.com": "404",
	} {
		eventually(t, "the answer of "+host, func() error {
			if got := w.ask(w.tunnelOf(t, shared), host); got != want {
				return fmt.Errorf("%s answers, and not %s", got, want)
			}
			return nil
		})
	}
}

// clusterID returns the ID of an installation that was given none.
func (w *world) clusterID(t *testing.T) string {
	t.Helper()
	return tunnel.DefaultClusterID(string(get(t, w, namespaceCalled("kube-system")).UID), "tunnelgateway.dev/controller")
}

// tunnelOf returns the name at Cloudflare of a Gateway's tunnel, in the
// installation without a cluster ID.
func (w *world) tunnelOf(t *testing.T, g *gatewayv1.Gateway) string {
	t.Helper()
	return tunnel.RemoteName(w.clusterID(t), client.ObjectKeyFromObject(g))
}

// tunnelObject returns the Tunnel of a Gateway.
func tunnelObject(controllerNamespace string, g *gatewayv1.Gateway) *v1alpha1.Tunnel {
	return &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: tunnel.ObjectName(client.ObjectKeyFromObject(g))}}
}

// connectorsOf returns the metadata of the objects that run a Gateway's connectors.
func connectorsOf(controllerNamespace string, g *gatewayv1.Gateway) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: controllerNamespace, Name: tunnel.ConnectorName(client.ObjectKeyFromObject(g))}
}

// upgrades from a release whose CRD has fewer fields than the chart's.
func (w *world) upgrades(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "tunnelconfigurations.tunnelgateway.dev"}}
	change(t, w, crd, func(c *apiextensionsv1.CustomResourceDefinition) {
		delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "mergingMode")
	})
	w.helm(t, "upgrade", release, chartDir, "--namespace", namespace, "--force-conflicts", "--set", w.values()+","+withSettings)
	properties := get(t, w, crd).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	if _, ok := properties["mergingMode"]; !ok {
		t.Error("the upgrade did not upgrade the CRD")
	}
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: connectorsOf(namespace, shared)}
	eventually(t, "the autoscaler that the settings ask for", func() error {
		return w.kube.Get(t.Context(), client.ObjectKeyFromObject(scaler), scaler)
	})
	eventually(t, "the Gateway after the upgrade", w.programmed(t, shared.DeepCopy()))
}

// usesWhatIsGranted makes the controller use every permission.
func (w *world) usesWhatIsGranted(t *testing.T, r *running) {
	granted := w.permissions(t, release)
	w.usesAll(t, r, granted, disturbed{
		controllerNamespace: namespace, gateway: shared, class: "cloudflare-tunnel",
		set:   types.NamespacedName{Namespace: "team-b", Name: "team-b-late"},
		route: types.NamespacedName{Namespace: "platform", Name: "home"}, service: "home",
	})
	checkSecrets(t, w.requests(t, r.user), namespace+"/cloudflare", "platform/certificate",
		secretOf(namespace, shared), secretOf(namespace, goneGateway("platform", "cloudflare-tunnel")))
}

// secretOf returns the name of the Secret with the token of a Gateway's tunnel.
func secretOf(controllerNamespace string, g *gatewayv1.Gateway) string {
	return controllerNamespace + "/" + connectorsOf(controllerNamespace, g).Name
}

// disturbed are the objects that a test changes again and again, until the
// controller has used every permission.
type disturbed struct {
	controllerNamespace string
	gateway             *gatewayv1.Gateway
	class               string // and the name of its settings
	set, route          types.NamespacedName
	service             string // the backend of the route
}

func (w *world) usesAll(t *testing.T, r *running, granted []permission, d disturbed) {
	t.Helper()
	unrelated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.gateway.Namespace, Name: "unrelated"}}
	certificate := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.gateway.Namespace, Name: "certificate"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte("none"), corev1.TLSPrivateKeyKey: []byte("none")},
	}
	w.create(t, unrelated, certificate, d.grpcRoute())
	w.repairsToken(t, d)
	w.pauses(t, d)
	w.stopsConnectors(t, d)
	w.retires(t, d)
	w.disturbUntil(t, d, func() error { return unused(granted, w.requests(t, r.user)) })
	w.checkAudit(t, r)
}

// repairsToken breaks the Secret with the tunnel's token: the controller writes it
// again.
func (w *world) repairsToken(t *testing.T, d disturbed) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: connectorsOf(d.controllerNamespace, d.gateway)}
	change(t, w, secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("broken")} })
	eventually(t, "the token to be written again", func() error {
		if string(get(t, w, secret).Data["token"]) == "broken" {
			return errors.New("it is broken")
		}
		return nil
	})
}

// pauses pauses the Gateway for a while, which the controller records in the spec
// of the Tunnel.
func (w *world) pauses(t *testing.T, d disturbed) {
	t.Helper()
	for _, paused := range []bool{true, false} {
		change(t, w, d.gateway.DeepCopy(), func(g *gatewayv1.Gateway) {
			if g.Annotations = map[string]string{}; paused {
				g.Annotations[v1alpha1.PausedAnnotation] = "true"
			}
		})
		eventually(t, fmt.Sprintf("the Tunnel to record paused=%v", paused), func() error {
			if got := get(t, w, tunnelObject(d.controllerNamespace, d.gateway)).Spec.Paused; got != paused {
				return fmt.Errorf("it is %v", got)
			}
			return nil
		})
	}
}

// stopsConnectors switches the connectors of the class off and on again.
func (w *world) stopsConnectors(t *testing.T, d disturbed) {
	t.Helper()
	settings := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: d.controllerNamespace, Name: d.class}}
	account := &corev1.ServiceAccount{ObjectMeta: connectorsOf(d.controllerNamespace, d.gateway)}
	change(t, w, settings, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Connector.Enabled = ptr.To(false) })
	eventually(t, "the connectors to be removed", func() error { return w.isGone(t, account) })
	change(t, w, settings, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Connector.Enabled = nil })
	eventually(t, "the connectors to be created again", func() error {
		return w.kube.Get(t.Context(), client.ObjectKeyFromObject(account), account)
	})
}

// retires moves a Gateway to the class of another controller, so that its Tunnel
// retires.
func (w *world) retires(t *testing.T, d disturbed) {
	t.Helper()
	gone := goneGateway(d.gateway.Namespace, d.class)
	foreign := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/foreign"}}
	w.create(t, foreign, gone)
	eventually(t, "the other Gateway", w.programmed(t, gone))
	eventually(t, "its connectors", func() error {
		deployment := &appsv1.Deployment{ObjectMeta: connectorsOf(d.controllerNamespace, gone)}
		return w.kube.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)
	})
	change(t, w, gone, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = "foreign" })
	eventually(t, "the Tunnel of the other Gateway to retire", func() error { return w.isGone(t, tunnelObject(d.controllerNamespace, gone)) })
}

// goneGateway is the Gateway whose Tunnel retires.
func goneGateway(namespace, class string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gone"}, Spec: gatewayv1.GatewaySpec{
		GatewayClassName: gatewayv1.ObjectName(class),
		Listeners: []gatewayv1.Listener{{
			Name: "web", Hostname: ptr.To[gatewayv1.Hostname]("gone.example.com"), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		}, {
			Name: "tls", Hostname: ptr.To[gatewayv1.Hostname]("tls.example.com"), Port: 443, Protocol: gatewayv1.HTTPSProtocolType,
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "certificate"}}},
		}},
	}}
}

func (d disturbed) grpcRoute() *gatewayv1.GRPCRoute {
	return &gatewayv1.GRPCRoute{ObjectMeta: metav1.ObjectMeta{Namespace: d.gateway.Namespace, Name: "calls"}, Spec: gatewayv1.GRPCRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(d.gateway.Name)}}},
	}}
}

// disturbUntil changes objects faster than the controller can write their
// statuses, so that it has to read them again, and breaks and repairs a route, so
// that it repeats an event.
func (w *world) disturbUntil(t *testing.T, d disturbed, done func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		if last = done(); last == nil {
			return true, nil
		}
		for round := range 2 {
			host := gatewayv1.Hostname(fmt.Sprintf("x%d.example.com", round))
			service := gatewayv1.ObjectName([]string{"missing", d.service}[round])
			change(t, w, &gatewayv1.HTTPRoute{ObjectMeta: named(d.route)}, func(r *gatewayv1.HTTPRoute) {
				r.Spec.Rules[0].BackendRefs[0].Name = service
			})
			change(t, w, &gatewayv1.GRPCRoute{ObjectMeta: d.grpcRoute().ObjectMeta}, func(r *gatewayv1.GRPCRoute) { r.Spec.Hostnames = []gatewayv1.Hostname{host} })
			change(t, w, &gatewayv1.ListenerSet{ObjectMeta: named(d.set)}, func(s *gatewayv1.ListenerSet) {
				s.Spec.Listeners[0].Hostname = &host
			})
			w.annotateManyTimes(t, d)
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(errors.Join(last, err))
	}
}

func named(name types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}
}

func (w *world) annotateManyTimes(t *testing.T, d disturbed) {
	for n := range 100 {
		for _, object := range []client.Object{
			&gatewayv1.HTTPRoute{ObjectMeta: named(d.route)}, &gatewayv1.GRPCRoute{ObjectMeta: d.grpcRoute().ObjectMeta},
			&gatewayv1.ListenerSet{ObjectMeta: named(d.set)},
		} {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/n":%q}}}`, strconv.Itoa(n))
			if err := w.kube.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// survivesUninstalling uninstalls while there are Gateways, checks what is left,
// and installs again.
func (w *world) survivesUninstalling(t *testing.T, r *running) {
	w.helm(t, "uninstall", release, "--namespace", namespace)
	r.stop()
	eventually(t, "the controller to be uninstalled", func() error {
		return errors.Join(
			w.isGone(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}),
			w.isGone(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}),
		)
	})
	connectors := &appsv1.Deployment{ObjectMeta: connectorsOf(namespace, shared)}
	for _, left := range []client.Object{
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "cloudflare-tunnel"}},
		&v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudflare-tunnel"}},
		tunnelObject(namespace, shared), connectors, shared.DeepCopy(), tokenSecret(namespace),
	} {
		if got := get(t, w, left); got.GetDeletionTimestamp() != nil || len(got.GetFinalizers()) > 0 {
			t.Errorf("%T %s: deletion timestamp %v, finalizers %q", left, left.GetName(), got.GetDeletionTimestamp(), got.GetFinalizers())
		}
	}
	if got := w.ask(w.tunnelOf(t, shared), "team-a.example.com"); got != "web.team-a" {
		t.Errorf("the tunnel answers %s", got)
	}

	w.helm(t, "install", release, chartDir, "--namespace", namespace, "--set", w.values()+","+withSettings+",certificates.validate=false")
	again := w.run(t, w.pod(t, release, namespace), namespace)
	w.checksNoCertificates(t, again)
	if err := w.kube.Delete(t.Context(), shared.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Tunnel to retire", func() error { return w.isGone(t, tunnelObject(namespace, shared)) })
	if _, there := w.edge.TunnelID(w.tunnelOf(t, shared)); there {
		t.Error("the tunnel of the deleted Gateway still exists")
	}
	eventually(t, "the connectors to be removed", func() error { return w.isGone(t, connectors) })
	w.checkAudit(t, again)
}

// checksNoCertificates: with certificates.validate=false, the controller reads
// Secrets in its own namespace only, and the listeners say so.
func (w *world) checksNoCertificates(t *testing.T, r *running) {
	t.Helper()
	g := goneGateway("platform", "cloudflare-tunnel")
	change(t, w, g.DeepCopy(), func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = "cloudflare-tunnel" })
	eventually(t, "the listener to say that its certificate was not checked", func() error {
		for _, listener := range get(t, w, g).Status.Listeners {
			c := meta.FindStatusCondition(listener.Conditions, string(gatewayv1.ListenerConditionResolvedRefs))
			if listener.Name == "tls" && c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "platform/certificate was not checked") {
				return nil
			}
		}
		return fmt.Errorf("its listeners are %v", g.Status.Listeners)
	})
	for _, request := range w.requests(t, r.user)[r.earlier:] {
		if request.Resource == "secrets" && request.Namespace != namespace {
			t.Errorf("a request for Secrets outside the controller's namespace: %s", request)
		}
	}
}
