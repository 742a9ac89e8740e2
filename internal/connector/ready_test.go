package connector_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

func TestReady(t *testing.T) {
	// A Deployment of three connectors, by the counts of its status.
	d := func(replicas, updated, available int32, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
		wanted := int32(3)
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web-tunnel", Generation: 2},
			Spec:       appsv1.DeploymentSpec{Replicas: &wanted},
			Status: appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available, Conditions: conditions,
			},
		}
	}
	stale := d(3, 3, 3)
	stale.Generation = 3
	none := d(0, 0, 0)
	*none.Spec.Replicas = 0
	stalled := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}
	refused := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "web-tunnel-x7k2p" is forbidden`}
	const see = "; pods cannot be created, and the conditions of Deployment web-tunnel say why."

	for _, c := range []struct {
		what string
		d    *appsv1.Deployment
		want [3]string
	}{
		{"not there", nil, [3]string{"False", "Pending", "The connectors have not been created yet."}},
		{"changed since", stale, [3]string{"False", "Pending", "Deployment web-tunnel has not been acted on since it was changed."}},
		{"none wanted", none, [3]string{"False", "NoReplicas", "No connectors are wanted: the settings have replicas 0. Nothing is served."}},
		{"all", d(3, 3, 3), [3]string{"True", "Ready", "3 of 3 connectors are available."}},
		{"one", d(3, 3, 1), [3]string{"True", "Ready", "1 of 3 connectors are available."}},
		{"one, late", d(3, 3, 1, stalled), [3]string{"True", "Ready", "1 of 3 connectors are available."}},
		{"starting", d(3, 3, 0), [3]string{"False", "Unavailable", "0 of 3 connectors are available."}},
		{"never started", d(3, 3, 0, stalled), [3]string{"False", "Unavailable", "0 of 3 connectors are available."}},
		{"just created", d(0, 0, 0), [3]string{"False", "Unavailable", "0 of 3 connectors are available, 0 have the current settings."}},
		{"pods refused", d(0, 0, 0, refused), [3]string{"False", "Unavailable", "0 of 3 connectors are available, 0 have the current settings" + see}},
		{"being replaced", d(4, 1, 3), [3]string{"False", "RollingOut", "3 of 3 connectors are available, 1 have the current settings."}},
		{"an old one left", d(4, 3, 3), [3]string{"False", "RollingOut", "3 of 3 connectors are available, 3 have the current settings."}},
		{"the new ones do not start", d(4, 1, 3, stalled), [3]string{"False", "Stalled", "3 of 3 connectors are available, 1 have the current settings."}},
		{"the new ones are refused", d(3, 0, 3, refused), [3]string{"False", "RollingOut", "3 of 3 connectors are available, 0 have the current settings" + see}},
	} {
		t.Run(c.what, func(t *testing.T) {
			status, reason, message := connector.Ready(c.d)
			if diff := cmp.Diff(c.want, [3]string{string(status), reason, message}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
