package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// sharedConnectors is the key that Gateway infra/shared's connector objects have.
var sharedConnectors = types.NamespacedName{Namespace: controllerNamespace, Name: tunnel.ConnectorName(types.NamespacedName{Namespace: "infra", Name: "shared"})}

// newConnectorHarness returns a harness whose GatewayClass runs connectors.
func newConnectorHarness(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	h := newHarness(t, objects...)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.Connector.Enabled = ptr.To(true) })
	return h
}

// deployment returns the connectors' Deployment, or nil if it does not exist.
func (h *harness) deployment() *appsv1.Deployment {
	h.t.Helper()
	d := &appsv1.Deployment{}
	err := h.kube.Get(h.t.Context(), sharedConnectors, d)
	if client.IgnoreNotFound(err) != nil {
		h.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return d
}

// rollOut simulates a completed rollout: every pod has the Deployment's current template
// and is connected to the tunnel.
func (h *harness) rollOut() {
	h.t.Helper()
	d := h.deployment()
	h.stopPods()
	n := ptr.Deref(d.Spec.Replicas, 1)
	for range n {
		h.startPod(d)
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if err := h.kube.Status().Update(h.t.Context(), d); err != nil {
		h.t.Fatal(err)
	}
}

// startPod starts one of the Deployment's pods. The pod connects with the token in the
// Secret.
func (h *harness) startPod(d *appsv1.Deployment) {
	h.t.Helper()
	id, err := h.cloud.StartConnector(h.token())
	if err != nil {
		h.t.Fatal(err)
	}
	h.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: d.Namespace, Name: string(id), Labels: d.Spec.Template.Labels, Annotations: d.Spec.Template.Annotations,
	}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: d.Spec.Template.Spec.TerminationGracePeriodSeconds, InitContainers: d.Spec.Template.Spec.InitContainers,
	}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
}

func (h *harness) pods() []corev1.Pod {
	h.t.Helper()
	var pods corev1.PodList
	if err := h.kube.List(h.t.Context(), &pods); err != nil {
		h.t.Fatal(err)
	}
	return pods.Items
}

// stopPods deletes all pods and disconnects their connectors gracefully.
func (h *harness) stopPods() {
	h.t.Helper()
	for _, pod := range h.pods() {
		h.cloud.StopConnector(h.tunnelID(), provider.ConnectorID(pod.Name))
		h.delete(&pod)
	}
}

// token returns the token in the token Secret.
func (h *harness) token() provider.Token {
	h.t.Helper()
	secret := &corev1.Secret{}
	if err := h.kube.Get(h.t.Context(), sharedConnectors, secret); err != nil {
		h.t.Fatal(err)
	}
	return provider.Token(secret.Data[connector.TokenKey])
}

// objectKinds returns the kinds of the existing connector objects.
func (h *harness) objectKinds() []string {
	h.t.Helper()
	var kinds []string
	for _, object := range h.connectorObjects() {
		if client.ObjectKeyFromObject(object) == sharedConnectors {
			kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

func (h *harness) wantKinds(want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.objectKinds()); diff != "" {
		h.t.Errorf("the connector objects differ (-want +got):\n%s", diff)
	}
}

// connectorWrites returns the connector object writes since the previous check.
func (h *harness) connectorWrites() []string {
	var found []string
	for _, w := range h.drainWrites() {
		if w.name == sharedConnectors.Name {
			found = append(found, w.verb+" "+w.kind)
		}
	}
	return found
}

func (h *harness) wantConnectorWrites(want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.connectorWrites()); diff != "" {
		h.t.Errorf("writes of connector objects differ (-want +got):\n%s", diff)
	}
}

func TestConnectorsAreAppliedOnce(t *testing.T) {
	h := newConnectorHarness(t)
	h.reconcileOnce()
	h.wantConnectorWrites("apply Secret", "apply ServiceAccount", "apply NetworkPolicy", "apply Deployment", "apply PodDisruptionBudget")

	for _, object := range h.connectorObjects() {
		owner := metav1.GetControllerOf(object)
		if owner == nil || owner.UID != h.tunnelObject().UID || ptr.Deref(owner.BlockOwnerDeletion, true) || object.GetNamespace() != controllerNamespace {
			t.Errorf("%s %s/%s has owner %+v, want the Tunnel", object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName(), owner)
		}
	}
	h.rollOut()
	h.reconcileFor(time.Second)
	h.wantConnectorWrites()
	h.drainWrites()
	h.reconcileFor(time.Second)
	h.wantWrites()
	if got := h.tunnelObject().Status.Connectors.Summary; got != "2/2" {
		t.Errorf("the Tunnel reports %s connectors, want 2/2", got)
	}
	if d := h.deployment(); d.Generation != 1 {
		t.Errorf("the Deployment has generation %d, want 1", d.Generation)
	}

	h.restart()
	h.reconcileOnce()
	h.wantConnectorWrites("apply ServiceAccount", "apply NetworkPolicy", "apply Deployment", "apply PodDisruptionBudget")
	if d := h.deployment(); d.Generation != 1 {
		t.Errorf("the Deployment has generation %d after a restart, want 1", d.Generation)
	}
}

func TestExternalChangesOfConnectorsAreReverted(t *testing.T) {
	// The controller reverts external changes to connector objects and recreates
	// deleted objects.
	h := newConnectorHarness(t)
	h.reconcileOnce()
	h.rollOut()
	h.reconcileFor(time.Second)
	h.drainWrites()
	d := &appsv1.Deployment{}
	h.change(sharedConnectors.Namespace, sharedConnectors.Name, d, func() {
		d.Spec.Template.Spec.Containers[0].Image = "example.com/other"
		d.Generation++
	})
	h.reconcileFor(time.Second)
	if got := h.connectorWrites(); !slices.Contains(got, "apply Deployment") {
		t.Errorf("the writes are %q, want an apply of the Deployment", got)
	}
	if got := h.deployment().Spec.Template.Spec.Containers[0].Image; got == "example.com/other" {
		t.Error("the external change of the image was not reverted")
	}
	h.delete(h.deployment())
	h.reconcileFor(time.Second)
	if h.deployment() == nil {
		t.Error("the deleted Deployment was not recreated")
	}
}

func TestDisabledConnectorsAreDeleted(t *testing.T) {
	h := newConnectorHarness(t)
	h.reconcileOnce()
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.Connector.Enabled = ptr.To(false) })
	h.drainWrites()
	h.reconcileFor(time.Second)
	h.wantKinds("Secret") // users run their connectors with the token
	h.wantConnectorWrites("delete ServiceAccount", "delete NetworkPolicy", "delete Deployment", "delete PodDisruptionBudget")
	h.reconcileFor(time.Second)
	h.wantConnectorWrites()
}

func TestObjectsOfAnotherOwnerAreNotChanged(t *testing.T) {
	// The controller does not change another owner's object. The conditions name the
	// object.
	conflicting := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: sharedConnectors.Namespace, Name: sharedConnectors.Name}}
	h := newConnectorHarness(t, conflicting)
	h.reconcileOnce()
	h.wantConnectorWrites("apply Secret")
	h.wantEvent("ObjectTaken")
	object := h.tunnelObject()
	ready := condition(object, conditions.TypeTunnelConnectorsReady)
	if ready.Status != metav1.ConditionFalse || ready.Reason != conditions.ReasonObjectTaken.String() || !strings.Contains(ready.Message, sharedConnectors.Name) {
		t.Errorf("ConnectorsReady is %+v, want reason ObjectTaken and the object's name", ready)
	}
	h.delete(conflicting)
	h.reconcileFor(time.Minute)
	if h.deployment() == nil {
		t.Error("the connectors do not run after the conflicting object was deleted")
	}
}

func TestAutoscalerOwnsTheReplicaCount(t *testing.T) {
	// If there is an autoscaler, it owns the replica count. Transferring the ownership
	// is tested with a real API server, because the fake client cannot apply a part of
	// a Deployment.
	h := newConnectorHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Connector.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](2), MaxReplicas: ptr.To[int32](4)}
	})
	h.reconcileFor(time.Second)
	h.wantKinds("Deployment", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "Secret", "ServiceAccount")
	h.drainWrites()
	d := &appsv1.Deployment{}
	h.change(sharedConnectors.Namespace, sharedConnectors.Name, d, func() { d.Spec.Replicas, d.Generation = ptr.To[int32](4), d.Generation+1 })
	h.reconcileFor(time.Second)
	if got := h.deployment().Spec.Replicas; ptr.Deref(got, 0) != 4 {
		t.Errorf("the controller changed the number of replicas to %v, want 4", got)
	}
	h.wantConnectorWrites("apply ServiceAccount", "apply NetworkPolicy", "apply Deployment", "apply PodDisruptionBudget", "apply HorizontalPodAutoscaler")
	h.reconcileFor(time.Second)
	h.wantConnectorWrites()
}

func TestConnectorsStopWhenTheTunnelRetires(t *testing.T) {
	// The objects that confine the pods remain until the Tunnel object is deleted.
	h := newConnectorHarness(t)
	h.reconcileOnce()
	h.rollOut()
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(29 * time.Second)
	if h.deployment() == nil {
		t.Fatal("the connectors were stopped before the end of the retirement delay")
	}
	h.reconcileFor(2 * time.Second)
	h.wantKinds("NetworkPolicy", "Secret", "ServiceAccount")
	h.wantReady(v1alpha1.TunnelRetiring, conditions.ReasonConnectorsStopping)
	if len(h.cloud.LiveTunnels()) != 1 {
		t.Fatal("the tunnel was deleted while its connectors were running")
	}
	h.stopPods()
	h.reconcileFor(5 * time.Second)
	if len(h.cloud.LiveTunnels()) != 0 || h.tunnelObject() != nil {
		t.Errorf("the tunnels %+v and the Tunnel %+v were not deleted", h.cloud.LiveTunnels(), h.tunnelObject())
	}
	h.collectGarbage()
	h.wantKinds()
}

func TestRetirementDoesNotWaitForStuckPods(t *testing.T) {
	// One minute after the grace period, the controller no longer waits for pods. It still
	// waits for the connectors that Cloudflare reports as connected.
	h := newConnectorHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.Connector.GracePeriod = ptr.To(v1alpha1.Duration("2m")) })
	h.reconcileOnce()
	h.rollOut()
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(30*time.Second + 3*time.Minute)
	h.wantCalls(fakeprovider.OpFindTunnel, fakeprovider.OpCreateTunnel, fakeprovider.OpConfigure, fakeprovider.OpToken)
	h.reconcileFor(time.Minute)
	if ready := condition(h.tunnelObject(), conditions.TypeTunnelReady); !strings.Contains(ready.Message, "pods left: 2, connected connectors: 2") {
		t.Errorf("the message of Ready is %q, want the numbers of pods and connectors", ready.Message)
	}
	if len(h.cloud.Calls(fakeprovider.OpDisconnect)) > 0 || len(h.cloud.LiveTunnels()) != 1 {
		t.Error("the controller disconnected running connectors")
	}
	h.cloud.Crash(h.tunnelID()) // the pods' node fails
	h.reconcileFor(time.Minute)
	if len(h.cloud.LiveTunnels()) != 0 || h.tunnelObject() != nil {
		t.Errorf("the tunnels %+v and the Tunnel %+v were not deleted", h.cloud.LiveTunnels(), h.tunnelObject())
	}
	if got := len(h.cloud.Calls(fakeprovider.OpDisconnect)); got != 2 {
		t.Errorf("%d connectors were disconnected, want 2", got)
	}
}

func TestRecreatedGatewayGetsItsConnectorsBack(t *testing.T) {
	// A Gateway that is recreated while its connectors stop gets them back.
	h := newConnectorHarness(t)
	h.reconcileOnce()
	h.rollOut()
	id := h.tunnelID()
	h.delete(h.gateway())
	h.reconcileFor(31 * time.Second)
	if h.deployment() != nil {
		t.Fatal("the connectors were not stopped")
	}
	recreated := newGateway("shared", "a.example.com")
	recreated.UID = "shared-2"
	h.create(recreated)
	h.reconcileFor(time.Second)
	if h.deployment() == nil || h.tunnelID() != id {
		t.Errorf("the Deployment is %v and the tunnel is %s, want a Deployment and tunnel %s", h.deployment(), h.tunnelID(), id)
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

func condition(object *v1alpha1.Tunnel, t conditions.Type) metav1.Condition {
	for _, c := range object.Status.Conditions {
		if c.Type == t.String() {
			return c
		}
	}
	return metav1.Condition{}
}
