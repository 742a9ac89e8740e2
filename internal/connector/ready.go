package connector

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// Readiness describes whether a Tunnel's connectors are ready.
type Readiness struct {
	// Status, Reason and Message are for the ConnectorsReady condition.
	Status  metav1.ConditionStatus
	Reason  conditions.Reason
	Message string
	// Desired counts the desired connectors, and Available the connectors that are
	// connected to Cloudflare's edge.
	Desired, Available int32
	// RolledOut reports whether the desired number of pods has the current template and
	// no older pod exists. Terminating pods are only included if the API server reports
	// status.terminatingReplicas, which is beta. A caller that must not interrupt their
	// requests must also check the pods.
	RolledOut bool
}

// NewReadiness returns whether the connectors are ready. The Deployment is nil if it
// does not exist; the desired number then comes from the settings. Except during a
// rollout, one available connector is sufficient: a Gateway stays ready while a node is
// drained or an autoscaler adds connectors.
func NewReadiness(d *appsv1.Deployment, settings v1alpha1.Connector) Readiness {
	if d == nil {
		return Readiness{
			Status: metav1.ConditionFalse, Reason: conditions.ReasonPending,
			Message: "The connector Deployment does not exist yet.",
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
		r.Reason, r.Message = conditions.ReasonPending, fmt.Sprintf("Kubernetes has not processed the last change of Deployment %s yet.", d.Name)
	case r.Desired == 0:
		r.Reason, r.Message = conditions.ReasonNoReplicas, fmt.Sprintf("Deployment %s is scaled to 0, so the Gateway serves no requests. Increase spec.connector.replicas.", d.Name)
	case rolling && stalled(d):
		r.Reason, r.Message = conditions.ReasonStalled, describe(d, r, fmt.Sprintf(" The rollout makes no progress; check the pods of Deployment %s.", d.Name))
	case r.Available == 0:
		r.Reason, r.Message = conditions.ReasonUnavailable, describe(d, r, "")
	case rolling:
		r.Reason, r.Message = conditions.ReasonRollingOut, describe(d, r, "")
	default:
		r.Status, r.Reason, r.Message = metav1.ConditionTrue, conditions.ReasonReady, describe(d, r, "")
	}
	return r
}

// describe returns a message with the connector counts, followed by the hint. If pods
// cannot be created, the message refers to the Deployment instead of the hint. It does
// not include the API server's error, which can contain a different pod name every
// time: the status would then change continuously.
func describe(d *appsv1.Deployment, r Readiness, hint string) string {
	text := fmt.Sprintf("%d of %d connectors are available", r.Available, r.Desired)
	if !updated(d, r) {
		text += fmt.Sprintf(", %d of %d are up to date", d.Status.UpdatedReplicas, r.Desired)
	}
	failure := condition(d, appsv1.DeploymentReplicaFailure)
	if failure != nil && failure.Status == corev1.ConditionTrue {
		hint = fmt.Sprintf(" Kubernetes cannot create pods; see the conditions of Deployment %s.", d.Name)
	}
	return text + "." + hint
}

// updated reports whether the desired number of pods has the current template and no
// older pod runs.
func updated(d *appsv1.Deployment, r Readiness) bool {
	return d.Status.UpdatedReplicas >= r.Desired && d.Status.Replicas <= d.Status.UpdatedReplicas
}

// stalled reports whether the Deployment's progress deadline has passed. The Kubernetes
// Deployment controller sets the reason.
func stalled(d *appsv1.Deployment) bool {
	progressing := condition(d, appsv1.DeploymentProgressing)
	return progressing != nil && progressing.Status == corev1.ConditionFalse && progressing.Reason == "ProgressDeadlineExceeded"
}

func condition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == kind {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}
