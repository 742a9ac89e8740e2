package connector

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The reasons of the condition ConnectorsReady.
const (
	// reasonReady means that at least one connector is connected to the edge, and
	// that all connectors have the current settings.
	reasonReady = "Ready"
	// reasonPending means that the Deployment does not exist, or that its
	// controller has not processed the last change.
	reasonPending = "Pending"
	// reasonNoReplicas means that the Deployment is scaled to zero.
	reasonNoReplicas = "NoReplicas"
	// reasonUnavailable means that no connector is connected to the edge.
	reasonUnavailable = "Unavailable"
	// reasonRollingOut means that connectors serve while they are being replaced.
	reasonRollingOut = "RollingOut"
	// reasonStalled means that connectors are being replaced, without progress for
	// longer than the Deployment's progressDeadlineSeconds.
	reasonStalled = "Stalled"
)

// Readiness describes how ready the connectors of a Tunnel are.
type Readiness struct {
	// Status, Reason and Message are those of the condition ConnectorsReady.
	Status          metav1.ConditionStatus
	Reason, Message string
	// Desired is the number of connectors that should run, and Available is the
	// number of connectors that are connected to the edge.
	Desired, Available int32
	// RolledOut reports whether the desired number of pods has the current
	// template and no older pod is left. An older pod that is terminating counts
	// only if the API server reports status.terminatingReplicas, which is beta:
	// a caller that must not interrupt its requests checks the pods too.
	RolledOut bool
}

// NewReadiness returns the readiness of the connectors. The Deployment is nil if it does
// not exist; the settings then give the desired number. Unless connectors are
// being replaced, a single available connector is enough: a Gateway stays ready
// while a node is drained or an autoscaler adds connectors.
func NewReadiness(d *appsv1.Deployment, settings v1alpha1.Connector) Readiness {
	if d == nil {
		return Readiness{
			Status: metav1.ConditionFalse, Reason: reasonPending,
			Message: "The Deployment of the connectors does not exist yet.",
			Desired: desiredReplicas(settings),
		}
	}
	r := Readiness{
		Status:    metav1.ConditionFalse,
		Desired:   ptr.Deref(d.Spec.Replicas, 1),
		Available: d.Status.AvailableReplicas,
	}
	processed := d.Status.ObservedGeneration >= d.Generation
	rolling := !updated(d, r)
	r.RolledOut = processed && !rolling && ptr.Deref(d.Status.TerminatingReplicas, 0) == 0
	switch {
	case !processed:
		r.Reason, r.Message = reasonPending, fmt.Sprintf("The last change of Deployment %s has not been processed yet.", d.Name)
	case r.Desired == 0:
		r.Reason, r.Message = reasonNoReplicas, fmt.Sprintf("Deployment %s is scaled to 0, so no requests are served.", d.Name)
	case rolling && stalled(d):
		r.Reason, r.Message = reasonStalled, describe(d, r, fmt.Sprintf(" The rollout makes no progress; check the pods of Deployment %s.", d.Name))
	case r.Available == 0:
		r.Reason, r.Message = reasonUnavailable, describe(d, r, "")
	case rolling:
		r.Reason, r.Message = reasonRollingOut, describe(d, r, "")
	default:
		r.Status, r.Reason, r.Message = metav1.ConditionTrue, reasonReady, describe(d, r, "")
	}
	return r
}

// describe returns the counts of connectors, followed by the hint. If pods cannot
// be created, it refers to the Deployment instead. It does not repeat the error
// of the API server, which can name another pod every time, so that the status
// would never settle.
func describe(d *appsv1.Deployment, r Readiness, hint string) string {
	text := fmt.Sprintf("%d of %d connectors are available", r.Available, r.Desired)
	if !updated(d, r) {
		text += fmt.Sprintf(", %d of %d are up to date", d.Status.UpdatedReplicas, r.Desired)
	}
	failure := condition(d, appsv1.DeploymentReplicaFailure)
	if failure != nil && failure.Status == corev1.ConditionTrue {
		hint = fmt.Sprintf(" Pods cannot be created; see the conditions of Deployment %s.", d.Name)
	}
	return text + "." + hint
}

// updated reports whether the desired number of pods has the current template and
// no older pod runs.
func updated(d *appsv1.Deployment, r Readiness) bool {
	return d.Status.UpdatedReplicas >= r.Desired && d.Status.Replicas <= d.Status.UpdatedReplicas
}

// stalled reports whether the Deployment's progress deadline has passed. The
// reason is set by the Deployment controller of Kubernetes.
func stalled(d *appsv1.Deployment) bool {
	progressing := condition(d, appsv1.DeploymentProgressing)
	return progressing != nil && progressing.Status == corev1.ConditionFalse && progressing.Reason == "ProgressDeadlineExceeded"
}

func condition(d *appsv1.Deployment, of appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == of {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}
