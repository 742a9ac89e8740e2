package gateway_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The condition messages from the version before the reason EnvoyRejected.
const (
	oldNotAccepted = "The Gateway is not accepted, so the controller does not change the tunnel."
	oldRejected    = "Envoy rejected the first configuration for this Gateway generation. See the Gateway's tunnelgateway.dev/DataPlaneReady condition."
)

// After an upgrade, the controller first reports statuses while it knows neither the tunnel nor
// the Envoys. It keeps what the version before has written, unless the reasons have changed:
// then one write replaces the reason, but not the status.
func TestThePreviousVersionsConditionsAreKeptOrReplaced(t *testing.T) {
	outstanding := gateway.Outcome{Push: gateway.Push{State: gateway.PushOutstanding}}
	unpublished := gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}, Envoys: readyEnvoys(unpublished)}
	stillRejected := gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}, Envoys: readyEnvoys(unacknowledged, rejected)}
	for name, test := range map[string]struct {
		// written are the status, the reason and the message in the Programmed condition
		// of the Gateway, listener in its listener's, and ready in DataPlaneReady.
		written, listener, ready [3]string
		// invalid means that the Gateway is not accepted.
		invalid bool
		outcome gateway.Outcome
		// want are the results for the Gateway and the listener, and wantReady for DataPlaneReady.
		want, wantListener, wantReady string
	}{
		"programmed, before the first step": {
			written: [3]string{"True", "Programmed", "x"}, listener: [3]string{"True", "Programmed", "x"}, outcome: outstanding,
			want: "True Programmed", wantListener: "True Programmed",
		},
		"pending, before the first step": {
			written: [3]string{"False", "Pending", "x"}, listener: [3]string{"False", "Pending", "x"}, outcome: outstanding,
			want: "False Pending", wantListener: "False Pending",
		},
		"settings that were not applied, before the first step": {
			written: [3]string{"False", "SettingsNotApplied", "x"}, listener: [3]string{"False", "Pending", "x"}, outcome: outstanding,
			want: "False Pending", wantListener: "False Pending",
		},
		"not accepted before, and accepted now": {
			written: [3]string{"False", "Invalid", oldNotAccepted}, listener: [3]string{"False", "Pending", oldNotAccepted}, outcome: outstanding,
			want: "False Pending", wantListener: "False Pending",
		},
		"not accepted before and now": {
			written: [3]string{"False", "Invalid", oldNotAccepted}, listener: [3]string{"False", "Pending", oldNotAccepted}, invalid: true, outcome: outstanding,
			want: "False Invalid", wantListener: "False Invalid",
		},
		"programmed with Envoy, before the first publication": {
			written: [3]string{"True", "Programmed", "x"}, listener: [3]string{"True", "Programmed", "x"}, ready: [3]string{"True", "Ready", "x"}, outcome: unpublished,
			want: "True Programmed", wantListener: "True Programmed", wantReady: "True Ready",
		},
		"rejected by Envoy, before the first publication": {
			written: [3]string{"False", "Invalid", oldRejected}, listener: [3]string{"False", "Pending", oldRejected}, ready: [3]string{"False", "Rejected", "x"}, outcome: unpublished,
			want: "False Pending", wantListener: "False Pending", wantReady: "False Rejected",
		},
		"rejected by Envoy, and still rejected": {
			written: [3]string{"False", "Invalid", oldRejected}, listener: [3]string{"False", "Pending", oldRejected}, ready: [3]string{"False", "Rejected", "x"}, outcome: stillRejected,
			want: "False EnvoyRejected", wantListener: "False Pending", wantReady: "False EnvoyRejected",
		},
		"programmed, and a later configuration rejected": {
			written: [3]string{"True", "Programmed", "x"}, listener: [3]string{"True", "Programmed", "x"}, ready: [3]string{"False", "Rejected", "x"}, outcome: stillRejected,
			want: "True Programmed", wantListener: "True Programmed", wantReady: "False EnvoyRejected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := reportSnapshot()
			s.Gateway.Status.Conditions = previous("Programmed", test.written)
			if test.ready[0] != "" {
				s.Gateway.Status.Conditions = append(s.Gateway.Status.Conditions, previous("tunnelgateway.dev/DataPlaneReady", test.ready)...)
			}
			s.Gateway.Status.Listeners = []gatewayv1.ListenerStatus{{Name: "own", Conditions: previous("Programmed", test.listener)}}
			if test.invalid {
				rejectGateway(s)
			}
			r := gateway.Build(s, options).Report(test.outcome)
			onGateway := statusAndReason(r.Gateway.Conditions)
			if got := onGateway["Programmed"]; got != test.want {
				t.Errorf("Programmed of the Gateway is %q, want %q", got, test.want)
			}
			if got := statusAndReason(r.Gateway.Listeners[0].Conditions)["Programmed"]; got != test.wantListener {
				t.Errorf("Programmed of the listener is %q, want %q", got, test.wantListener)
			}
			if got := onGateway["tunnelgateway.dev/DataPlaneReady"]; got != test.wantReady {
				t.Errorf("DataPlaneReady is %q, want %q", got, test.wantReady)
			}
		})
	}
}

// previous returns a condition from the previous version: its status, its reason and its
// message.
func previous(kind string, written [3]string) []metav1.Condition {
	return []metav1.Condition{{
		Type: kind, Status: metav1.ConditionStatus(written[0]), Reason: written[1], Message: written[2], ObservedGeneration: gatewayGeneration,
	}}
}
