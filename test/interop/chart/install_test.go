package chart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// TestChartInstallsUpgradesAndUninstalls runs its steps in one cluster. Each step
// depends on the previous ones.
func TestChartInstallsUpgradesAndUninstalls(t *testing.T) {
	e := newEnvironment(t)
	e.create(t, newNamespace(namespace), tokenSecret(namespace))
	var controller, narrow *runningController // narrow watches some namespaces only
	for _, step := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"a TunnelConfiguration cannot be installed before its CRD", func(t *testing.T) { e.failsWithSettingsBeforeCRDs(t) }},
		{"the controller serves the samples", func(t *testing.T) {
			e.helm(t, "install", release, chartDir, "--namespace", namespace, "--set", e.values())
			controller = e.startController(t, e.deploymentPod(t, release, namespace), namespace)
			e.servesSamples(t)
		}},
		{"an upgrade updates the CRD and adds a TunnelConfiguration", func(t *testing.T) { e.upgradesCRD(t) }},
		{"the controller uses every permission", func(t *testing.T) { e.usesEveryPermission(t, controller) }},
		{"the controller serves listed namespaces only", func(t *testing.T) { narrow = e.servesListedNamespacesOnly(t) }},
		{"a listed namespace can be deleted while the controller is stopped", func(t *testing.T) { narrow = e.survivesNamespaceDeletion(t, narrow) }},
		{"a listed namespace can be created again", func(t *testing.T) { narrow = e.servesRecreatedNamespace(t, narrow) }},
		{"the controller uses every permission in listed namespaces", func(t *testing.T) { e.usesEveryPermissionInNamespaces(t, narrow) }},
		{"a listed namespace can be deleted while the controller runs", func(t *testing.T) { e.restartsWhenNamespaceIsDeleted(t, narrow) }},
		{"uninstalling before the Gateways are deleted interrupts no tunnel", func(t *testing.T) { e.keepsServingAfterUninstall(t, controller) }},
	} {
		if !t.Run(step.name, step.do) {
			break // the later steps depend on it
		}
	}
}

// values returns the values for every release in this test. They enable optional
// features, so that the controller receives every flag. The controller also runs without
// the trace collector, which does not exist.
func (e *environment) values() string {
	return "cloudflare.accountID=" + account + ",cloudflare.existingSecret=cloudflare,cloudflare.baseURL=" + e.apiURL +
		",controller.retirementDelay=1s,metrics.pprof=true,tracing.endpoint=http://127.0.0.1:9"
}

// settingsValues create a TunnelConfiguration. The README explains why the first
// install cannot contain them.
const settingsValues = `tunnelConfiguration.create=true,tunnelConfiguration.spec.account.accountID=` + account +
	`,tunnelConfiguration.spec.account.apiTokenSecretRef.name=cloudflare` +
	`,tunnelConfiguration.spec.connector.podDisruptionBudget.maxUnavailable=1` +
	`,tunnelConfiguration.spec.connector.autoscaling.minReplicas=2,tunnelConfiguration.spec.connector.autoscaling.maxReplicas=3`

// failsWithSettingsBeforeCRDs checks the README's statement about the first install.
func (e *environment) failsWithSettingsBeforeCRDs(t *testing.T) {
	out, err := helm(t, "install", "early", chartDir, "--namespace", namespace, "--kubeconfig", e.kubeconfig, "--set", e.values()+","+settingsValues)
	if err == nil || !strings.Contains(out, `no matches for kind "TunnelConfiguration"`) {
		t.Errorf("got error %v, want no matches for the kind:\n%s", err, out)
	}
}

// deploymentPod returns the pod spec in the controller's Deployment.
func (e *environment) deploymentPod(t *testing.T, name, namespace string) corev1.PodSpec {
	t.Helper()
	return get(t, e, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}).Spec.Template.Spec
}

var sharedGateway = &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared"}}

// checkProgrammed returns a function that returns an error until the Gateway is
// programmed in its current generation.
func (e *environment) checkProgrammed(t *testing.T, g *gatewayv1.Gateway) func() error {
	return func() error {
		if err := e.kube.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		c := meta.FindStatusCondition(g.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != g.Generation {
			return fmt.Errorf("Programmed is %v", c)
		}
		return nil
	}
}

// servesSamples applies the samples and sends a request to each hostname in them.
func (e *environment) servesSamples(t *testing.T) {
	e.apply(t, root+"/config/samples")
	eventually(t, "the Gateway of the samples to be programmed", e.checkProgrammed(t, sharedGateway.DeepCopy()))
	for host, want := range map[string]string{
		"shared.example.com": "home.platform", "team-a.example.com": "web.team-a",
		"shop.team-b.example.com": "shop.team-b", "unknown.example.com": "404",
	} {
		eventually(t, "the answer for "+host, func() error {
			if got := e.answer(e.tunnelName(t, sharedGateway), host); got != want {
				return fmt.Errorf("got %s, want %s", got, want)
			}
			return nil
		})
	}
}

// clusterID returns an installation's default cluster ID.
func (e *environment) clusterID(t *testing.T) string {
	t.Helper()
	return tunnel.DefaultClusterID(string(get(t, e, newNamespace("kube-system")).UID), "tunnelgateway.dev/controller")
}

// tunnelName returns the name that a Gateway's tunnel has at Cloudflare, for the
// installation with the default cluster ID.
func (e *environment) tunnelName(t *testing.T, g *gatewayv1.Gateway) string {
	t.Helper()
	return tunnel.RemoteName(e.clusterID(t), client.ObjectKeyFromObject(g))
}

// tunnelObject returns the Gateway's Tunnel with only its namespace and name.
func tunnelObject(controllerNamespace string, g *gatewayv1.Gateway) *v1alpha1.Tunnel {
	return &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: tunnel.ObjectName(client.ObjectKeyFromObject(g))}}
}

// connectorMeta returns the namespace and name that the objects for a Gateway's
// connectors have.
func connectorMeta(controllerNamespace string, g *gatewayv1.Gateway) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: controllerNamespace, Name: tunnel.ConnectorName(client.ObjectKeyFromObject(g))}
}

// upgradesCRD upgrades a release whose CRD lacks a field in the chart's CRD.
func (e *environment) upgradesCRD(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "tunnelconfigurations.tunnelgateway.dev"}}
	change(t, e, crd, func(c *apiextensionsv1.CustomResourceDefinition) {
		delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "mergingMode")
	})
	e.helm(t, "upgrade", release, chartDir, "--namespace", namespace, "--force-conflicts", "--set", e.values()+","+settingsValues)
	properties := get(t, e, crd).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	if _, ok := properties["mergingMode"]; !ok {
		t.Error("the upgrade did not upgrade the CRD")
	}
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: connectorMeta(namespace, sharedGateway)}
	eventually(t, "the autoscaler of the TunnelConfiguration", func() error {
		return e.kube.Get(t.Context(), client.ObjectKeyFromObject(scaler), scaler)
	})
	eventually(t, "the Gateway to be programmed after the upgrade", e.checkProgrammed(t, sharedGateway.DeepCopy()))
}

// usesEveryPermission makes the controller use each permission that the chart grants.
func (e *environment) usesEveryPermission(t *testing.T, r *runningController) {
	granted := e.permissions(t, release)
	e.exerciseController(t, r, granted, exercisedObjects{
		controllerNamespace: namespace, gateway: sharedGateway, class: "cloudflare-tunnel",
		set:   types.NamespacedName{Namespace: "team-b", Name: "team-b-late"},
		route: types.NamespacedName{Namespace: "platform", Name: "home"}, service: "home",
	})
	checkSecrets(t, e.requests(t, r.user), namespace+"/cloudflare", "platform/certificate",
		tunnelSecretName(namespace, sharedGateway), tunnelSecretName(namespace, retiringGateway("platform", "cloudflare-tunnel")))
}

// tunnelSecretName returns the key of the Secret with the token for a Gateway's tunnel.
func tunnelSecretName(controllerNamespace string, g *gatewayv1.Gateway) string {
	return controllerNamespace + "/" + connectorMeta(controllerNamespace, g).Name
}

// exercisedObjects are the objects that a test keeps changing until the
// controller has used every permission.
type exercisedObjects struct {
	controllerNamespace string
	gateway             *gatewayv1.Gateway
	class               string // also names its TunnelConfiguration
	set, route          types.NamespacedName
	service             string // the route's backend
}

// exerciseController makes the controller perform all its operations, until it has used
// every granted permission, and then checks its requests.
func (e *environment) exerciseController(t *testing.T, r *runningController, granted []permission, o exercisedObjects) {
	t.Helper()
	unrelated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.gateway.Namespace, Name: "unrelated"}}
	certificate := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.gateway.Namespace, Name: "certificate"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte("none"), corev1.TLSPrivateKeyKey: []byte("none")},
	}
	e.create(t, unrelated, certificate, o.grpcRoute())
	e.rejectsGatewayClass(t, o)
	e.repairsTunnelToken(t, o)
	e.pausesGateway(t, o)
	e.leavesNewerTunnel(t, o)
	e.stopsConnectors(t, o)
	e.retiresTunnel(t, o)
	policy, authority := o.backendPolicy()
	access := o.accessPolicy()
	e.create(t, policy, authority, access)
	e.changeObjectsUntil(t, o, func() error { return checkAllUsed(granted, e.requests(t, r.user)) })
	for _, object := range []client.Object{policy, authority, access} {
		if err := e.kube.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	e.checkAudit(t, r)
}

// backendPolicy returns a policy for the route's backend, and its ConfigMap.
func (o exercisedObjects) backendPolicy() (*gatewayv1.BackendTLSPolicy, *corev1.ConfigMap) {
	meta := metav1.ObjectMeta{Namespace: o.route.Namespace, Name: "authority"}
	return &gatewayv1.BackendTLSPolicy{ObjectMeta: meta, Spec: gatewayv1.BackendTLSPolicySpec{
		TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
			Kind: "Service", Name: gatewayv1.ObjectName(o.service),
		}}},
		Validation: gatewayv1.BackendTLSPolicyValidation{
			Hostname: "backend.example.com", CACertificateRefs: []gatewayv1.LocalObjectReference{{Kind: "ConfigMap", Name: "authority"}},
		},
	}}, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"ca.crt": "none"}}
}

// accessPolicy returns a policy for a ListenerSet that does not exist. It affects no
// hostname, and its status reports the missing target.
func (o exercisedObjects) accessPolicy() *v1alpha1.AccessPolicy {
	return &v1alpha1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: o.set.Namespace, Name: "access"}, Spec: v1alpha1.AccessPolicySpec{
		TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
			Group: gatewayv1.GroupName, Kind: "ListenerSet", Name: "missing",
		}}},
		Policies: []v1alpha1.PolicyName{"employees"},
	}}
}

// rejectsGatewayClass creates a GatewayClass whose settings do not exist, and waits until the
// controller reports that. The controller then also sends an event. It sends another one when a
// release is installed, but loses that one if it stops too early.
func (e *environment) rejectsGatewayClass(t *testing.T, o exercisedObjects) {
	t.Helper()
	class := get(t, e, &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: o.class}})
	rejected := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: o.class + "-rejected"}, Spec: *class.Spec.DeepCopy()}
	rejected.Spec.ParametersRef.Name = "missing"
	e.create(t, rejected)
	eventually(t, "the controller to reject a GatewayClass", func() error {
		if c := meta.FindStatusCondition(get(t, e, rejected).Status.Conditions, "Accepted"); c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Errorf("the condition Accepted is %+v", c)
		}
		return nil
	})
}

// repairsTunnelToken corrupts the Secret with the tunnel's token and waits until
// the controller repairs it.
func (e *environment) repairsTunnelToken(t *testing.T, o exercisedObjects) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: connectorMeta(o.controllerNamespace, o.gateway)}
	change(t, e, secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("broken")} })
	eventually(t, "the controller to repair the token", func() error {
		if string(get(t, e, secret).Data["token"]) == "broken" {
			return errors.New("the token is broken")
		}
		return nil
	})
}

// leavesNewerTunnel records a newer version in the Tunnel until the controller reports it, and
// then sets the version back.
func (e *environment) leavesNewerTunnel(t *testing.T, o exercisedObjects) {
	t.Helper()
	object := tunnelObject(o.controllerNamespace, o.gateway)
	record := func(version int64) {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"schemaVersion":%d}}`, version))
		if err := e.kube.Status().Patch(t.Context(), object, patch); err != nil {
			t.Fatal(err)
		}
	}
	record(1000)
	eventually(t, "the controller to report the newer version", func() error {
		for _, c := range get(t, e, object).Status.Conditions {
			if c.Reason == "NewerVersion" {
				return nil
			}
		}
		return errors.New("no condition has the reason NewerVersion")
	})
	record(1)
}

// pausesGateway pauses the Gateway and resumes it. The controller records both in the
// Tunnel's spec.
func (e *environment) pausesGateway(t *testing.T, o exercisedObjects) {
	t.Helper()
	for _, paused := range []bool{true, false} {
		change(t, e, o.gateway.DeepCopy(), func(g *gatewayv1.Gateway) {
			if g.Annotations = map[string]string{}; paused {
				g.Annotations[v1alpha1.PausedAnnotation] = "true"
			}
		})
		eventually(t, fmt.Sprintf("the Tunnel to record paused=%v", paused), func() error {
			if got := get(t, e, tunnelObject(o.controllerNamespace, o.gateway)).Spec.Paused; got != paused {
				return fmt.Errorf("spec.paused is %v", got)
			}
			return nil
		})
	}
}

// stopsConnectors disables the connectors in the GatewayClass settings and enables them
// again.
func (e *environment) stopsConnectors(t *testing.T, o exercisedObjects) {
	t.Helper()
	settings := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: o.controllerNamespace, Name: o.class}}
	account := &corev1.ServiceAccount{ObjectMeta: connectorMeta(o.controllerNamespace, o.gateway)}
	change(t, e, settings, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Connector.Enabled = ptr.To(false) })
	eventually(t, "the controller to delete the connectors", func() error { return e.checkDeleted(t, account) })
	change(t, e, settings, func(c *v1alpha1.TunnelConfiguration) { c.Spec.Connector.Enabled = nil })
	eventually(t, "the controller to recreate the connectors", func() error {
		return e.kube.Get(t.Context(), client.ObjectKeyFromObject(account), account)
	})
}

// retiresTunnel moves a Gateway to another controller's GatewayClass and waits until its
// Tunnel has retired.
func (e *environment) retiresTunnel(t *testing.T, o exercisedObjects) {
	t.Helper()
	retiring := retiringGateway(o.gateway.Namespace, o.class)
	other := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/other"}}
	e.create(t, other, retiring)
	eventually(t, "Gateway retiring to be programmed", e.checkProgrammed(t, retiring))
	eventually(t, "the connectors of Gateway retiring", func() error {
		deployment := &appsv1.Deployment{ObjectMeta: connectorMeta(o.controllerNamespace, retiring)}
		return e.kube.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)
	})
	change(t, e, retiring, func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = "other" })
	eventually(t, "the Tunnel of Gateway retiring to retire", func() error { return e.checkDeleted(t, tunnelObject(o.controllerNamespace, retiring)) })
}

// retiringGateway returns the Gateway whose Tunnel retires.
func retiringGateway(namespace, class string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "retiring"}, Spec: gatewayv1.GatewaySpec{
		GatewayClassName: gatewayv1.ObjectName(class),
		Listeners: []gatewayv1.Listener{{
			Name: "web", Hostname: ptr.To[gatewayv1.Hostname]("retiring.example.com"), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		}, {
			Name: "tls", Hostname: ptr.To[gatewayv1.Hostname]("tls.example.com"), Port: 443, Protocol: gatewayv1.HTTPSProtocolType,
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "certificate"}}},
		}},
	}}
}

func (o exercisedObjects) grpcRoute() *gatewayv1.GRPCRoute {
	return &gatewayv1.GRPCRoute{ObjectMeta: metav1.ObjectMeta{Namespace: o.gateway.Namespace, Name: "calls"}, Spec: gatewayv1.GRPCRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(o.gateway.Name)}}},
	}}
}

// changeObjectsUntil changes objects faster than the controller can write their
// statuses, so that the controller must get them again. It also breaks and fixes a
// route, so that the controller repeats an event.
func (e *environment) changeObjectsUntil(t *testing.T, o exercisedObjects, done func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		if last = done(); last == nil {
			return true, nil
		}
		for round := range 2 {
			host := gatewayv1.Hostname(fmt.Sprintf("x%d.example.com", round))
			service := gatewayv1.ObjectName([]string{"missing", o.service}[round])
			change(t, e, &gatewayv1.HTTPRoute{ObjectMeta: objectMeta(o.route)}, func(r *gatewayv1.HTTPRoute) {
				r.Spec.Rules[0].BackendRefs[0].Name = service
			})
			change(t, e, &gatewayv1.GRPCRoute{ObjectMeta: o.grpcRoute().ObjectMeta}, func(r *gatewayv1.GRPCRoute) { r.Spec.Hostnames = []gatewayv1.Hostname{host} })
			change(t, e, &gatewayv1.ListenerSet{ObjectMeta: objectMeta(o.set)}, func(s *gatewayv1.ListenerSet) {
				s.Spec.Listeners[0].Hostname = &host
			})
			e.changeRepeatedly(t, o)
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(errors.Join(last, err))
	}
}

func objectMeta(name types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}
}

// changeRepeatedly changes an annotation on each object 100 times, and the specs of the
// policies, whose statuses seldom change otherwise. The objects change concurrently, so
// that the controller writes their statuses meanwhile.
func (e *environment) changeRepeatedly(t *testing.T, o exercisedObjects) {
	t.Helper()
	policy, _ := o.backendPolicy()
	const annotation = `{"metadata":{"annotations":{"example.com/n":"%d"}}}`
	const hostname, policies = `{"spec":{"validation":{"hostname":"backend-%d.example.com"}}}`, `{"spec":{"policies":["employees-%d"]}}`
	patches := map[client.Object]string{
		&gatewayv1.HTTPRoute{ObjectMeta: objectMeta(o.route)}: annotation, &gatewayv1.GRPCRoute{ObjectMeta: o.grpcRoute().ObjectMeta}: annotation,
		&gatewayv1.ListenerSet{ObjectMeta: objectMeta(o.set)}: annotation, policy: hostname, o.accessPolicy(): policies,
	}
	var running sync.WaitGroup
	for object, patch := range patches {
		running.Go(func() {
			for n := range 100 {
				if err := e.kube.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, n))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

// keepsServingAfterUninstall uninstalls the release while Gateways exist, checks
// the remaining objects, and installs the release again.
func (e *environment) keepsServingAfterUninstall(t *testing.T, r *runningController) {
	e.helm(t, "uninstall", release, "--namespace", namespace)
	r.stop()
	eventually(t, "the controller to be uninstalled", func() error {
		return errors.Join(
			e.checkDeleted(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}),
			e.checkDeleted(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}),
		)
	})
	connectors := &appsv1.Deployment{ObjectMeta: connectorMeta(namespace, sharedGateway)}
	for _, object := range []client.Object{
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "cloudflare-tunnel"}},
		&v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloudflare-tunnel"}},
		tunnelObject(namespace, sharedGateway), connectors, sharedGateway.DeepCopy(), tokenSecret(namespace),
	} {
		if got := get(t, e, object); got.GetDeletionTimestamp() != nil || len(got.GetFinalizers()) > 0 {
			t.Errorf("%T %s: deletion timestamp %v, finalizers %q", object, object.GetName(), got.GetDeletionTimestamp(), got.GetFinalizers())
		}
	}
	if got := e.answer(e.tunnelName(t, sharedGateway), "team-a.example.com"); got != "web.team-a" {
		t.Errorf("the tunnel returns %s after the uninstall, want web.team-a", got)
	}

	e.helm(t, "install", release, chartDir, "--namespace", namespace, "--set", e.values()+","+settingsValues+",certificates.validate=false")
	reinstalled := e.startController(t, e.deploymentPod(t, release, namespace), namespace)
	e.skipsCertificateChecks(t, reinstalled)
	if err := e.kube.Delete(t.Context(), sharedGateway.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Tunnel to retire", func() error { return e.checkDeleted(t, tunnelObject(namespace, sharedGateway)) })
	if _, exists := e.edge.TunnelID(e.tunnelName(t, sharedGateway)); exists {
		t.Error("the tunnel of the deleted Gateway still exists")
	}
	eventually(t, "the controller to delete the connectors", func() error { return e.checkDeleted(t, connectors) })
	e.checkAudit(t, reinstalled)
}

// skipsCertificateChecks checks that, with certificates.validate=false, the
// controller reads Secrets in its own namespace only, and that the listeners
// report it.
func (e *environment) skipsCertificateChecks(t *testing.T, r *runningController) {
	t.Helper()
	g := retiringGateway("platform", "cloudflare-tunnel")
	change(t, e, g.DeepCopy(), func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = "cloudflare-tunnel" })
	eventually(t, "the listener to report that the controller did not validate its certificate", func() error {
		for _, listener := range get(t, e, g).Status.Listeners {
			c := meta.FindStatusCondition(listener.Conditions, string(gatewayv1.ListenerConditionResolvedRefs))
			if listener.Name == "tls" && c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "did not validate the certificate in Secret platform/certificate") {
				return nil
			}
		}
		return fmt.Errorf("the statuses of the listeners are %v", g.Status.Listeners)
	})
	for _, request := range e.requests(t, r.user)[r.earlierRequests:] {
		if request.Resource == "secrets" && request.Namespace != namespace {
			t.Errorf("the controller requests Secrets outside its namespace: %s", request)
		}
	}
}
