package connector

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

const (
	// defaultReplicas are two, so that one can go while the other serves.
	defaultReplicas    int32 = 2
	defaultUtilization int32 = 80
)

// horizontalPodAutoscaler chooses the number of connectors, if that is wanted.
func horizontalPodAutoscaler(in Input) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	scaling := in.Settings.Autoscaling
	if scaling == nil {
		return nil
	}
	most := ptr.Deref(scaling.MaxReplicas, v1alpha1.MaxReplicas)
	// The two bounds may come from two levels, which are validated one by one.
	least := min(ptr.Deref(scaling.MinReplicas, defaultReplicas), most)
	return autoscalingv2ac.HorizontalPodAutoscaler(Name(in.Gateway), in.Gateway.Namespace).
		WithLabels(Labels(in.Gateway)).
		WithAnnotations(annotations(in.Gateway)).
		WithOwnerReferences(owner(in.Gateway)).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
				WithAPIVersion(appsv1.SchemeGroupVersion.String()).WithKind("Deployment").WithName(Name(in.Gateway))).
			WithMinReplicas(least).
			WithMaxReplicas(most).
			WithMetrics(autoscalingv2ac.MetricSpec().
				WithType(autoscalingv2.ResourceMetricSourceType).
				WithResource(autoscalingv2ac.ResourceMetricSource().
					WithName(corev1.ResourceCPU).
					WithTarget(autoscalingv2ac.MetricTarget().
						WithType(autoscalingv2.UtilizationMetricType).
						WithAverageUtilization(ptr.Deref(scaling.TargetCPUUtilizationPercentage, defaultUtilization))))))
}

// podDisruptionBudget keeps connectors while nodes are drained, if that is
// wanted.
func podDisruptionBudget(in Input) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	budget := in.Settings.PodDisruptionBudget
	if budget == nil {
		return nil
	}
	// No connector is ready while Cloudflare is down. They serve nobody then, and
	// must not keep nodes from being drained.
	spec := policyv1ac.PodDisruptionBudgetSpec().
		WithSelector(selector(in.Gateway)).
		WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow)
	if budget.MinAvailable != nil {
		spec.WithMinAvailable(*budget.MinAvailable)
	}
	if budget.MaxUnavailable != nil {
		spec.WithMaxUnavailable(*budget.MaxUnavailable)
	}
	return policyv1ac.PodDisruptionBudget(Name(in.Gateway), in.Gateway.Namespace).
		WithLabels(Labels(in.Gateway)).
		WithAnnotations(annotations(in.Gateway)).
		WithOwnerReferences(owner(in.Gateway)).
		WithSpec(spec)
}

// Handover returns what another field manager has to apply before Build's
// Deployment is, or nil when nothing has to be. It is for a Deployment, as read
// with its managedFields, whose replicas are owned by the field manager of the
// controller and now become an autoscaler's: server-side apply removes a field
// that its only owner no longer wants, so that the connectors would fall to the
// default of one before the autoscaler looks. The other manager holds the number
// until then. Not a number of zero: an autoscaler leaves that as it is.
func Handover(in Input, d *appsv1.Deployment, fieldManager string) *appsv1ac.DeploymentApplyConfiguration {
	if in.Settings.Autoscaling == nil || d == nil || ptr.Deref(d.Spec.Replicas, 0) == 0 || !ownsReplicas(d, fieldManager) {
		return nil
	}
	return appsv1ac.Deployment(d.Name, d.Namespace).
		WithUID(d.UID).
		WithSpec(appsv1ac.DeploymentSpec().WithReplicas(*d.Spec.Replicas))
}

// ownsReplicas reports whether the field manager has applied the number of
// replicas.
func ownsReplicas(d *appsv1.Deployment, fieldManager string) bool {
	for _, entry := range d.ManagedFields {
		if entry.Manager != fieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Spec struct {
				Replicas *struct{} `json:"f:replicas"`
			} `json:"f:spec"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err == nil && owned.Spec.Replicas != nil {
			return true
		}
	}
	return false
}
