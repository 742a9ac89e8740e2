package operation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// serving returns a Gateway whose Tunnel serves it and has handled the requests "1".
func serving(changes ...func(*objects)) objects {
	g := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared", Generation: 2}}
	g.Spec.GatewayClassName = "tunnel"
	t := &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: "tunnel-gateway", Name: "infra.shared", Generation: 3}}
	t.Spec.ControllerName, t.Spec.Gateway = controllerName, v1alpha1.GatewayReference{Namespace: "infra", Name: "shared"}
	t.Annotations = map[string]string{v1alpha1.ReconcileAnnotation: "1", v1alpha1.RotateTokenAnnotation: "1"}
	t.Status.Reconciled, t.Status.Token.Requested, t.Status.Phase = "1", "1", v1alpha1.TunnelServing
	t.Status.Connectors = v1alpha1.ConnectorsStatus{Desired: 2, Ready: 2, Summary: "2/2"}
	f := objects{gateway: g, tunnel: t, class: classSettings{dataPlane: v1alpha1.DataPlaneIngressRules}}
	for _, kind := range []string{"Accepted", "Programmed"} {
		gatewayIs(kind, "True", "")(&f)
	}
	t.Status.DataPlane = v1alpha1.DataPlaneIngressRules
	for _, kind := range []string{"Ready", "ConfigurationApplied", "ConnectorsReady", "DataPlaneApplied"} {
		tunnelIs(kind, "True", "Serving", "")(&f)
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

const controllerName = "tunnelgateway.dev/controller"

// setCondition replaces a condition.
func setCondition(list *[]metav1.Condition, c metav1.Condition) {
	for i := range *list {
		if (*list)[i].Type == c.Type {
			(*list)[i] = c
			return
		}
	}
	*list = append(*list, c)
}

func gatewayIs(kind string, status metav1.ConditionStatus, message string) func(*objects) {
	return func(f *objects) {
		setCondition(&f.gateway.Status.Conditions, metav1.Condition{Type: kind, Status: status, Message: message, ObservedGeneration: f.gateway.Generation})
	}
}

func tunnelIs(kind string, status metav1.ConditionStatus, reason, message string) func(*objects) {
	return func(f *objects) {
		setCondition(&f.tunnel.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: f.tunnel.Generation})
	}
}

func notReady(reason, message string) func(*objects) {
	return tunnelIs("Ready", "False", reason, message)
}

func notApplied(f *objects) { tunnelIs("ConfigurationApplied", "False", "Pending", "")(f) }
func paused(f *objects)     { f.tunnel.Spec.Paused = true }
func pauseRequested(f *objects) {
	f.gateway.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
}
func gatewayGone(f *objects)  { f.gateway = nil }
func tunnelGone(f *objects)   { f.tunnel = nil }
func newReconcile(f *objects) { f.tunnel.Annotations[v1alpha1.ReconcileAnnotation] = "2" }
func newRotation(f *objects)  { f.tunnel.Annotations[v1alpha1.RotateTokenAnnotation] = "2" }
func specChanged(f *objects)  { f.tunnel.Generation++ }

func gatewayChanged(f *objects) { f.gateway.Generation++ }

// recreated has the effect of a Tunnel that was deleted and created again: it has neither
// the annotations nor the record.
func recreated(f *objects) {
	f.tunnel.Annotations, f.tunnel.Status.Reconciled, f.tunnel.Status.Token.Requested = nil, "", ""
}

func phase(p v1alpha1.TunnelPhase) func(*objects) {
	return func(f *objects) { f.tunnel.Status.Phase = p }
}

func tokenPhase(p v1alpha1.TokenPhase) func(*objects) {
	return func(f *objects) { f.tunnel.Status.Token.Phase = p }
}

func all(changes ...func(*objects)) []func(*objects) { return changes }

// effectRow is one row in a golden table: it maps objects to an operation's effect.
type effectRow struct {
	name      string
	operation Operation
	changes   []func(*objects)
	want      effect
}

func effectRows() []effectRow {
	const (
		annotationChanged = "another client changed the annotation tunnelgateway.dev/paused of the Gateway"
		annotationGone    = "the Tunnel was created again, or another client removed its annotation "
		notObserved       = "the controller has not processed the last change to the Gateway yet"
	)
	const inEffect, applied = ": the configuration is in effect, connectors ready: 2/2", "the configuration is in effect"
	return []effectRow{
		{"a reconcile that was not handled", Reconcile, all(newReconcile), effect{outstanding: notProcessed}},
		{"a reconcile of an older controller", Reconcile, all(newReconcile, notReady("NewerVersion", "It is newer.")), effect{refused: "It is newer"}},
		{"a rotation of an older controller", RotateToken, all(notReady("NewerVersion", "It is newer."), func(f *objects) { f.tunnel.Status.Token.Phase = v1alpha1.TokenRolling }), effect{refused: "It is newer"}},
		{"a pause with an older controller", Pause, all(pauseRequested, notReady("NewerVersion", "It is newer.")), effect{refused: "It is newer"}},
		{"a reconcile that was handled", Reconcile, nil, effect{done: "reconciled" + inEffect}},
		{
			"a reconcile without connectors", Reconcile, all(func(f *objects) {
				f.tunnel.Status.Connectors, f.tunnel.Status.Conditions = v1alpha1.ConnectorsStatus{Summary: "0/0"}, f.tunnel.Status.Conditions[:2]
			}), effect{done: "reconciled: " + applied},
		},
		{"a problem from before the reconcile", Reconcile, all(newReconcile, notReady("Contested", "It is contested.")), effect{outstanding: notProcessed}},
		{"a reconcile after which a user must act", Reconcile, all(notApplied, notReady("Contested", "It is contested.")), effect{refused: "It is contested"}},
		{
			"connectors from before the last change", Reconcile, all(specChanged, tunnelIs("Ready", "True", "Serving", ""), tunnelIs("ConfigurationApplied", "True", "Serving", "")),
			effect{outstanding: "the configuration is not in effect yet"},
		},
		{"a reconcile during an outage", Reconcile, all(notApplied, notReady("CloudflareUnavailable", "It is down.")), effect{outstanding: "It is down"}},
		{"a blocked rotation does not concern a reconcile", Reconcile, all(notReady("RotationBlocked", "It is blocked.")), effect{done: "reconciled" + inEffect}},
		{
			"connectors that roll out", Reconcile, all(tunnelIs("ConnectorsReady", "False", "RollingOut", "1 of 2."), notReady("RollingOut", "1 of 2.")),
			effect{outstanding: "1 of 2"},
		},
		{"a Gateway that is not accepted", Reconcile, all(gatewayIs("Accepted", "False", "The settings are not valid.")), effect{refused: "the Gateway is not Accepted: The settings are not valid"}},
		{"a Gateway that is not Programmed", Reconcile, all(gatewayIs("Programmed", "False", "It is not.")), effect{outstanding: "the Gateway is not Programmed: It is not"}},
		{
			"a Gateway whose Envoy does not have the configuration", Reconcile, all(gatewayIs("tunnelgateway.dev/DataPlaneReady", "False", "It waits.")),
			effect{outstanding: "the data plane is not ready: It waits"},
		},
		{"a Gateway whose Envoy has the configuration", Reconcile, all(gatewayIs("tunnelgateway.dev/DataPlaneReady", "True", "It has.")), effect{done: "reconciled" + inEffect}},
		{"a reconcile of a paused Gateway", Reconcile, all(paused, notReady("Paused", "It is paused.")), effect{done: "reconciled: the configuration is in effect, and the Gateway is paused"}},
		{"a reconcile of a paused Gateway with changes", Reconcile, all(paused, notApplied, notReady("Paused", "It is paused.")), effect{refused: "the configuration is not in effect: " + pausedHint}},
		{"a Tunnel that was deleted", Reconcile, all(tunnelGone), effect{outstanding: "the controller has not created the Tunnel yet"}},
		{"a retained Tunnel", Reconcile, all(gatewayGone, phase(v1alpha1.TunnelRetained)), effect{done: "reconciled: the Gateway is gone, and its tunnel is retained"}},
		{"a tunnel that cannot be deleted", Reconcile, all(gatewayGone, phase(v1alpha1.TunnelBlocked), notReady("PrivateRoutes", "Routes exist.")), effect{refused: "Routes exist"}},
		{"a tunnel that is being deleted", Reconcile, all(gatewayGone, phase(v1alpha1.TunnelDeleting), notReady("Pending", "Wait.")), effect{outstanding: "the Gateway was deleted; the controller is deleting its tunnel"}},
		{"a tunnel that was deleted", Reconcile, all(gatewayGone, tunnelGone), effect{done: "reconciled: the Gateway is gone, and its Tunnel was deleted"}},

		{"a pause that the Tunnel does not record", Pause, all(pauseRequested), effect{outstanding: notProcessed}},
		{"a pause that the Tunnel records", Pause, all(pauseRequested, paused), effect{done: "paused"}},
		{"a Gateway that was deleted", Pause, all(gatewayGone), effect{lost: "the Gateway was deleted"}},
		{"a pause that another client ended", Pause, all(paused), effect{lost: annotationChanged}},
		{"a resume that another client reverted", Resume, all(pauseRequested), effect{lost: annotationChanged}},
		{"a reconcile of a Tunnel that was created again", Reconcile, all(recreated), effect{lost: annotationGone + v1alpha1.ReconcileAnnotation}},
		{"a rotation of a Tunnel that was created again", RotateToken, all(recreated), effect{lost: annotationGone + v1alpha1.RotateTokenAnnotation}},
		{"a Gateway with a new generation", Reconcile, all(gatewayChanged), effect{outstanding: notObserved}},
		{"a Gateway with a new generation that was resumed", Resume, all(gatewayChanged), effect{outstanding: notObserved}},
		{"a Gateway with a new generation after a rotation", RotateToken, all(gatewayChanged), effect{outstanding: notObserved}},

		{"a Gateway whose Tunnel is still paused", Resume, all(paused), effect{outstanding: notProcessed}},
		{"conditions from before the resume", Resume, all(notReady("Paused", "It is paused."), specChanged), effect{outstanding: "the configuration is not in effect yet"}},
		{"a Gateway that was resumed", Resume, nil, effect{done: "resumed" + inEffect}},
		{"a resume without a Tunnel", Resume, all(tunnelGone), effect{outstanding: noTunnelText}},
		{"a Gateway that was resumed and is not accepted", Resume, all(tunnelGone, gatewayIs("Accepted", "False", "No.")), effect{refused: "the Gateway is not Accepted: No"}},

		{"a rotation that was not handled", RotateToken, all(newRotation, newReconcile), effect{outstanding: notProcessed}},
		{"a rotation that the settings forbid", RotateToken, all(newRotation, notReady("RotationBlocked", "connector.enabled is false.")), effect{refused: "connector.enabled is false"}},
		{"a reason from before the rotation was requested", RotateToken, all(newRotation, newReconcile, notReady("RotationBlocked", "connector.enabled is false.")), effect{outstanding: notProcessed}},
		{"a rotation during an outage", RotateToken, all(newRotation, notReady("CloudflareUnavailable", "It is down.")), effect{outstanding: "It is down"}},
		{"a rotation that waits for old connectors", RotateToken, all(newRotation), effect{outstanding: "the controller has not begun to rotate the token yet"}},
		{"a rotation of a Gateway that was paused meanwhile", RotateToken, all(newRotation, paused), effect{refused: pausedHint}},
		{"the first phase of a rotation", RotateToken, all(tokenPhase(v1alpha1.TokenRotating)), effect{outstanding: "requesting a new token from Cloudflare"}},
		{"the second phase of a rotation", RotateToken, all(tokenPhase(v1alpha1.TokenRolling)), effect{outstanding: "rolling out the new token, connectors ready: 2/2"}},
		{"the third phase of a rotation", RotateToken, all(tokenPhase(v1alpha1.TokenDisconnecting)), effect{outstanding: "disconnecting the connectors with the old token"}},
		{"a rotation that has ended", RotateToken, nil, effect{done: "token rotated" + inEffect}},
	}
}

func TestEffectOfOperations(t *testing.T) {
	for _, test := range append(effectRows(), waitRows()...) {
		t.Run(test.name, func(t *testing.T) {
			if got := test.operation.effect(serving(test.changes...)); got != test.want {
				t.Errorf("effect = %+v, want %+v", got, test.want)
			}
		})
	}
}
