package connector_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

// deploymentOf returns a Deployment with three desired connectors and these numbers in its
// status.
func deploymentOf(replicas, updated, available int32, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available, Conditions: conditions,
		},
	}
}

func TestReadinessFollowsTheDeploymentStatus(t *testing.T) {
	unprocessed, scaledToZero, drained := deploymentOf(3, 3, 3), deploymentOf(0, 0, 0), deploymentOf(1, 1, 1)
	unprocessed.Generation = 3
	scaledToZero.Spec.Replicas = ptr.To[int32](0)
	drained.Spec.Replicas = nil
	terminating := deploymentOf(3, 3, 3)
	terminating.Status.TerminatingReplicas = ptr.To[int32](1)
	scaledDown := deploymentOf(5, 5, 5)
	stalled := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}
	refused := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "web-x7k2p" is forbidden`}
	const (
		refusedHint = " Kubernetes cannot create pods; see the conditions of Deployment web."
		stalledHint = " The rollout makes no progress; check the pods of Deployment web."
	)

	for _, c := range []struct {
		name               string
		d                  *appsv1.Deployment
		status             string
		reason             conditions.Reason
		message            string
		desired, available int32
		rolledOut          bool
	}{
		{"missing", nil, "False", conditions.ReasonPending, "The connector Deployment does not exist yet.", 2, 0, false},
		{"last change not processed", unprocessed, "False", conditions.ReasonPending, "Kubernetes has not processed the last change of Deployment web yet.", 3, 3, false},
		{"scaled to zero", scaledToZero, "False", conditions.ReasonNoReplicas, "Deployment web is scaled to 0, so the Gateway serves no requests. Increase spec.connector.replicas.", 0, 0, true},
		{"all available", deploymentOf(3, 3, 3), "True", conditions.ReasonReady, "3 of 3 connectors are available.", 3, 3, true},
		{"one available", deploymentOf(3, 3, 1), "True", conditions.ReasonReady, "1 of 3 connectors are available.", 3, 1, true},
		{"one available after the deadline", deploymentOf(3, 3, 1, stalled), "True", conditions.ReasonReady, "1 of 3 connectors are available.", 3, 1, true},
		{"replicas by default", drained, "True", conditions.ReasonReady, "1 of 1 connectors are available.", 1, 1, true},
		{"old pod terminating", terminating, "True", conditions.ReasonReady, "3 of 3 connectors are available.", 3, 3, false},
		{"scaling down", scaledDown, "True", conditions.ReasonReady, "5 of 3 connectors are available.", 3, 5, true},
		{"starting", deploymentOf(3, 3, 0), "False", conditions.ReasonUnavailable, "0 of 3 connectors are available.", 3, 0, true},
		{"just created", deploymentOf(0, 0, 0), "False", conditions.ReasonUnavailable, "0 of 3 connectors are available, 0 of 3 are up to date.", 3, 0, false},
		{"first pods refused", deploymentOf(0, 0, 0, refused), "False", conditions.ReasonUnavailable, "0 of 3 connectors are available, 0 of 3 are up to date." + refusedHint, 3, 0, false},
		{"rolling out", deploymentOf(4, 1, 3), "False", conditions.ReasonRollingOut, "3 of 3 connectors are available, 1 of 3 are up to date.", 3, 3, false},
		{"one old pod left", deploymentOf(4, 3, 3), "False", conditions.ReasonRollingOut, "3 of 3 connectors are available, 3 of 3 are up to date.", 3, 3, false},
		{"new pods do not start", deploymentOf(4, 1, 3, stalled), "False", conditions.ReasonStalled, "3 of 3 connectors are available, 1 of 3 are up to date." + stalledHint, 3, 3, false},
		{"new pods refused", deploymentOf(3, 0, 3, refused), "False", conditions.ReasonRollingOut, "3 of 3 connectors are available, 0 of 3 are up to date." + refusedHint, 3, 3, false},
		{"new pods refused after the deadline", deploymentOf(3, 0, 3, refused, stalled), "False", conditions.ReasonStalled, "3 of 3 connectors are available, 0 of 3 are up to date." + refusedHint, 3, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := connector.Readiness{
				Status: metav1.ConditionStatus(c.status), Reason: c.reason, Message: c.message,
				Desired: c.desired, Available: c.available, RolledOut: c.rolledOut,
			}
			if diff := cmp.Diff(want, connector.NewReadiness(c.d, v1alpha1.Connector{}), cmpopts.EquateComparable(conditions.Reason{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredReplicasDefaultToTheSettings(t *testing.T) {
	for _, c := range []struct {
		name string
		set  v1alpha1.Connector
		want int32
	}{
		{"default", v1alpha1.Connector{}, 2},
		{"replicas", v1alpha1.Connector{Replicas: ptr.To[int32](0)}, 0},
		{"autoscaling", v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](3)}}, 3},
		{"autoscaling below the default", v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: ptr.To[int32](1)}}, 1},
	} {
		if got := connector.NewReadiness(nil, c.set).Desired; got != c.want {
			t.Errorf("%s: %d connectors desired, want %d", c.name, got, c.want)
		}
	}
}
