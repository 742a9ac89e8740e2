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
	// defaultReplicas lets one connector serve while the other is replaced.
	defaultReplicas    int32 = 2
	defaultUtilization int32 = 80
)

// horizontalPodAutoscaler returns the autoscaler of the Deployment, or nil
// without autoscaling.
func horizontalPodAutoscaler(in Input) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	scaling := in.Settings.Autoscaling
	if scaling == nil {
		return nil
	}
	least, most := bounds(*scaling)
	return owned(in, autoscalingv2ac.HorizontalPodAutoscaler(name(in.Tunnel), in.Tunnel.Namespace)).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
				WithAPIVersion(appsv1.SchemeGroupVersion.String()).WithKind("Deployment").WithName(name(in.Tunnel))).
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

// bounds returns the lowest and the highest number of connectors. The two can
// come from two TunnelConfigurations, which are validated separately.
func bounds(scaling v1alpha1.Autoscaling) (least, most int32) {
	most = ptr.Deref(scaling.MaxReplicas, v1alpha1.MaxReplicas)
	return min(ptr.Deref(scaling.MinReplicas, defaultReplicas), most), most
}

// podDisruptionBudget returns the budget for the eviction of connectors, or nil
// without one.
func podDisruptionBudget(in Input) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	budget := in.Settings.PodDisruptionBudget
	if budget == nil {
		return nil
	}
	// No connector is ready while Cloudflare is down. Connectors that serve no
	// request must not stop a node from being drained.
	spec := policyv1ac.PodDisruptionBudgetSpec().
		WithSelector(selector(in.Tunnel)).
		WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow)
	if budget.MinAvailable != nil {
		spec.WithMinAvailable(*budget.MinAvailable)
	}
	if budget.MaxUnavailable != nil {
		spec.WithMaxUnavailable(*budget.MaxUnavailable)
	}
	return owned(in, policyv1ac.PodDisruptionBudget(name(in.Tunnel), in.Tunnel.Namespace)).WithSpec(spec)
}

// Handover returns a Deployment that keeps the current number of connectors while
// an autoscaler takes over, or nil if there is nothing to keep. A second field
// manager has to apply it before the Deployment of Build is applied. Otherwise
// server-side apply removes the replicas, of which fieldManager was the only
// owner, and the connectors fall to one until the autoscaler acts. The Deployment
// is as read, with its managedFields. A number of zero is not kept, because an
// autoscaler does not scale up from zero.
func Handover(in Input, d *appsv1.Deployment, fieldManager string) *appsv1ac.DeploymentApplyConfiguration {
	if in.Settings.Autoscaling == nil || d == nil || ptr.Deref(d.Spec.Replicas, 0) == 0 || !ownsReplicas(d, fieldManager) {
		return nil
	}
	return appsv1ac.Deployment(d.Name, d.Namespace).
		WithUID(d.UID).
		WithSpec(appsv1ac.DeploymentSpec().WithReplicas(*d.Spec.Replicas))
}

// ownsReplicas reports whether the field manager applied the number of replicas.
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
