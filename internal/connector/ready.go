package connector

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The reasons of the condition tunnelgateway.dev/ConnectorsReady on a Gateway,
// which says whether connectors serve it.
const (
	// ReasonReady means that at least one connector is connected to the edge, and
	// that all of them have the settings that are wanted.
	ReasonReady = "Ready"
	// ReasonPending means that the Deployment is not there, or was not acted on
	// since it was changed.
	ReasonPending = "Pending"
	// ReasonNoReplicas means that the settings ask for no connectors.
	ReasonNoReplicas = "NoReplicas"
	// ReasonUnavailable means that no connector is connected to the edge.
	ReasonUnavailable = "Unavailable"
	// ReasonRollingOut means that connectors serve, and are being replaced.
	ReasonRollingOut = "RollingOut"
	// ReasonStalled means that connectors are being replaced, and that nothing has
	// moved for longer than the Deployment's progressDeadlineSeconds.
	ReasonStalled = "Stalled"
)

// Ready says from the Deployment of a Gateway, as it was read, how ready the
// connectors are; nil means that there is none. One connector that serves is
// enough when no change is under way: a node that is drained, or an autoscaler
// that adds connectors, is no fault of the Gateway. The message has the counts.
func Ready(d *appsv1.Deployment) (status metav1.ConditionStatus, reason, message string) {
	switch {
	case d == nil:
		return metav1.ConditionFalse, ReasonPending, "The connectors have not been created yet."
	case d.Status.ObservedGeneration < d.Generation:
		return metav1.ConditionFalse, ReasonPending, fmt.Sprintf("Deployment %s has not been acted on since it was changed.", d.Name)
	}
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	if wanted == 0 {
		return metav1.ConditionFalse, ReasonNoReplicas, "No connectors are wanted: the settings have replicas 0. Nothing is served."
	}
	available, updated := d.Status.AvailableReplicas, d.Status.UpdatedReplicas
	counts := fmt.Sprintf("%d of %d connectors are available", available, wanted)
	rolling := updated < wanted || d.Status.Replicas > updated
	if rolling {
		counts += fmt.Sprintf(", %d have the current settings", updated)
	}
	switch {
	case rolling && stalled(d):
		return metav1.ConditionFalse, ReasonStalled, counts + why(d) + "."
	case available == 0:
		return metav1.ConditionFalse, ReasonUnavailable, counts + why(d) + "."
	case rolling:
		return metav1.ConditionFalse, ReasonRollingOut, counts + why(d) + "."
	}
	return metav1.ConditionTrue, ReasonReady, counts + "."
}

// stalled reports whether the Deployment's progress deadline has passed. The
// reason is one of the Deployment controller's own words.
func stalled(d *appsv1.Deployment) bool {
	progressing := condition(d, appsv1.DeploymentProgressing)
	return progressing != nil && progressing.Status == corev1.ConditionFalse && progressing.Reason == "ProgressDeadlineExceeded"
}

// why says where to look when pods are refused. What the API answered is not
// repeated: it can name a new pod every time, and the status would never rest.
func why(d *appsv1.Deployment) string {
	failure := condition(d, appsv1.DeploymentReplicaFailure)
	if failure == nil || failure.Status != corev1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("; pods cannot be created, and the conditions of Deployment %s say why", d.Name)
}

func condition(d *appsv1.Deployment, of appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == of {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}
