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
)

// TestInstall installs, upgrades and uninstalls the chart. The steps build on
// each other, in one cluster.
func TestInstall(t *testing.T) {
	w := newWorld(t)
	w.create(t, namespaceCalled(namespace), tokenSecret(namespace))
	var controller, narrow *running
	for _, step := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"settings need the CRD first", func(t *testing.T) { w.refusesSettingsBeforeTheCRD(t) }},
		{"the samples are served", func(t *testing.T) {
			w.helm(t, "install", release, chartDir, "--namespace", namespace, "--set", w.values())
			controller = w.run(t, w.pod(t, release, namespace), namespace)
			w.servesSamples(t)
		}},
		{"an upgrade upgrades the CRD and brings settings", func(t *testing.T) { w.upgrades(t) }},
		{"exactly what is granted is used", func(t *testing.T) { w.usesWhatIsGranted(t, controller) }},
		{"a list of namespaces narrows everything", func(t *testing.T) { narrow = w.keepsToNamespaces(t) }},
		{"a namespace of the list can be deleted", func(t *testing.T) { narrow = w.losesNamespace(t, narrow) }},
		{"a namespace can be added again", func(t *testing.T) { narrow = w.getsNamespaceBack(t, narrow) }},
		{"exactly what is granted in namespaces is used", func(t *testing.T) { w.usesWhatIsGrantedInNamespaces(t, narrow) }},
		{"uninstalling too early loses nothing", func(t *testing.T) { w.survivesUninstalling(t, controller) }},
	} {
		if !t.Run(step.name, step.do) {
			break // the others build on it
		}
	}
}

// values are those of every release here. What is off by default is on, so that
// the controller has to take its flags; there is no collector, which stops
// nothing.
func (w *world) values() string {
	return "cloudflare.accountID=" + account + ",cloudflare.existingSecret=cloudflare,cloudflare.baseURL=" + w.api +
		",metrics.pprof=true,tracing.endpoint=http://127.0.0.1:9"
}

// withSettings adds what the README says cannot be had in the first install.
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

// tunnelOf is the name of the Gateway's tunnel, in a cluster that was given no
// ID.
func (w *world) tunnelOf(t *testing.T, g *gatewayv1.Gateway) string {
	t.Helper()
	system := get(t, w, namespaceCalled("kube-system"))
	return fmt.Sprintf("%s-%s-%s", system.UID, g.Namespace, g.Name)
}

// upgrades from a release whose CRD lacks what the chart's has.
func (w *world) upgrades(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "tunnelconfigurations.tunnelgateway.dev"}}
	change(t, w, crd, func(c *apiextensionsv1.CustomResourceDefinition) {
		delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "mergingMode")
	})
	w.helm(t, "upgrade", release, chartDir, "--namespace", namespace, "--force-conflicts", "--set", w.values()+","+withSettings)
	properties := get(t, w, crd).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	if _, ok := properties["mergingMode"]; !ok {
		t.Error("the CRD is as it was before the upgrade")
	}
	settings := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudflare-tunnel"}}
	eventually(t, "the settings to be kept for their Gateways", func() error {
		if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(settings), settings); err != nil {
			return err
		}
		if len(settings.Finalizers) == 0 {
			return fmt.Errorf("they have no finalizer; their account is %v", settings.Spec.Account)
		}
		return nil
	})
	eventually(t, "the Gateway after the upgrade", w.programmed(t, shared.DeepCopy()))
}

// usesWhatIsGranted has the controller do all that it can do.
func (w *world) usesWhatIsGranted(t *testing.T, r *running) {
	granted := w.permissions(t, release)
	w.usesAll(t, r, granted, disturbed{
		namespace: "platform", gateway: "shared", class: "cloudflare-tunnel",
		set:   types.NamespacedName{Namespace: "team-b", Name: "team-b-late"},
		route: types.NamespacedName{Namespace: "platform", Name: "home"}, service: "home",
	})
	checkSecrets(t, w.requests(t, r.user), namespace+"/cloudflare", "platform/certificate", "platform/shared-tunnel-token", "platform/gone-tunnel-token")
}

// disturbed is what is changed again and again, until the controller has done
// all that it can do.
type disturbed struct {
	namespace, gateway, class string
	set, route                types.NamespacedName
	service                   string // that the route refers to
}

func (w *world) usesAll(t *testing.T, r *running, granted []permission, d disturbed) {
	t.Helper()
	unrelated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "unrelated"}}
	certificate := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "certificate"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte("none"), corev1.TLSPrivateKeyKey: []byte("none")},
	}
	w.create(t, unrelated, certificate, d.grpcRoute())
	// It gets its token back, which is an update.
	change(t, w, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: d.gateway + "-tunnel-token"}}, func(s *corev1.Secret) {
		s.Data = map[string][]byte{"token": []byte("broken")}
	})
	// One more Gateway goes, with all that runs its connectors.
	gone := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "gone"}, Spec: gatewayv1.GatewaySpec{
		GatewayClassName: gatewayv1.ObjectName(d.class),
		Listeners: []gatewayv1.Listener{{
			Name: "web", Hostname: ptr.To[gatewayv1.Hostname]("gone.example.com"), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		}, {
			Name: "tls", Hostname: ptr.To[gatewayv1.Hostname]("tls.example.com"), Port: 443, Protocol: gatewayv1.HTTPSProtocolType,
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "certificate"}}},
		}},
	}}
	w.create(t, gone)
	eventually(t, "the other Gateway", w.programmed(t, gone))
	eventually(t, "its connectors", func() error {
		return w.kube.Get(t.Context(), types.NamespacedName{Namespace: d.namespace, Name: "gone-" + d.class}, &appsv1.Deployment{})
	})
	if err := w.kube.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other Gateway to go", func() error { return w.isGone(t, gone) })
	w.disturbUntil(t, d, func() error { return unused(granted, w.requests(t, r.user)) })
	checkNoneRefused(t, w.requests(t, r.user))
}

func (d disturbed) grpcRoute() *gatewayv1.GRPCRoute {
	return &gatewayv1.GRPCRoute{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "calls"}, Spec: gatewayv1.GRPCRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(d.gateway)}}},
	}}
}

// disturbUntil changes objects faster than their statuses can be written, so
// that the controller has to read them anew, and breaks and mends a route, which
// is told by the same event again and again.
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

// survivesUninstalling uninstalls while there are Gateways, looks what is left,
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
	// What it was refused until it had ended: its roles went before its pod.
	before := len(w.requests(t, r.user))
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "cloudflare-tunnel"}}
	settings := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudflare-tunnel"}}
	connectors := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared-cloudflare-tunnel"}}
	for _, left := range []client.Object{class, settings, connectors, shared.DeepCopy(), tokenSecret(namespace)} {
		if got := get(t, w, left); got.GetDeletionTimestamp() != nil {
			t.Errorf("%T %s is being deleted", left, left.GetName())
		}
	}
	if got := w.ask(w.tunnelOf(t, shared), "team-a.example.com"); got != "web.team-a" {
		t.Errorf("the tunnel answers %s", got)
	}

	w.helm(t, "install", release, chartDir, "--namespace", namespace, "--set", w.values()+","+withSettings)
	again := w.run(t, w.pod(t, release, namespace), namespace)
	tunnel := w.tunnelOf(t, shared)
	if err := w.kube.Delete(t.Context(), shared.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Gateway to go", func() error { return w.isGone(t, shared.DeepCopy()) })
	if _, there := w.edge.TunnelID(tunnel); there {
		t.Error("the tunnel of the deleted Gateway is there")
	}
	eventually(t, "everything to be let go", func() error {
		for _, kept := range []client.Object{get(t, w, class), get(t, w, settings), get(t, w, tokenSecret(namespace))} {
			if len(kept.GetFinalizers()) > 0 {
				return fmt.Errorf("%T %s has finalizers %q", kept, kept.GetName(), kept.GetFinalizers())
			}
		}
		return nil
	})
	checkNoneRefused(t, w.requests(t, again.user)[before:])
}
