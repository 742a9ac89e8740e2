package connector

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

const (
	// defaultReplicas is 2, so that one connector serves while the other is replaced.
	defaultReplicas    int32 = 2
	defaultUtilization int32 = 80
)

// horizontalPodAutoscaler returns the Deployment's autoscaler, or nil if autoscaling is
// not enabled or another autoscaler scales the Deployment.
func horizontalPodAutoscaler(in Input) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	scaling := in.Settings.Autoscaling
	if scaling == nil || scaling.IsExternal() {
		return nil
	}
	minReplicas, maxReplicas := bounds(*scaling)
	return owned(in, autoscalingv2ac.HorizontalPodAutoscaler(name(in.Tunnel), in.Tunnel.Namespace)).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
				WithAPIVersion(appsv1.SchemeGroupVersion.String()).WithKind("Deployment").WithName(name(in.Tunnel))).
			WithMinReplicas(minReplicas).
			WithMaxReplicas(maxReplicas).
			WithMetrics(autoscalingv2ac.MetricSpec().
				WithType(autoscalingv2.ResourceMetricSourceType).
				WithResource(autoscalingv2ac.ResourceMetricSource().
					WithName(corev1.ResourceCPU).
					WithTarget(autoscalingv2ac.MetricTarget().
						WithType(autoscalingv2.UtilizationMetricType).
						WithAverageUtilization(ptr.Deref(scaling.TargetCPUUtilizationPercentage, defaultUtilization))))))
}

// bounds returns how many connectors there may be. The two settings can come from two
// TunnelConfigurations, which are validated separately.
func bounds(scaling v1alpha1.Autoscaling) (minReplicas, maxReplicas int32) {
	maxReplicas = ptr.Deref(scaling.MaxReplicas, v1alpha1.MaxReplicas)
	return min(ptr.Deref(scaling.MinReplicas, defaultReplicas), maxReplicas), maxReplicas
}

// Replicas returns how many connectors the settings allow. The minimum and maximum
// differ only with autoscaling.
func Replicas(settings v1alpha1.Connector) (minReplicas, maxReplicas int32) {
	if settings.Autoscaling != nil {
		return bounds(*settings.Autoscaling)
	}
	replicas := ptr.Deref(settings.Replicas, defaultReplicas)
	return replicas, replicas
}

// podDisruptionBudget returns the connectors' PodDisruptionBudget. By default, one
// connector can be evicted at a time, and a single connector has none.
func podDisruptionBudget(in Input) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	budget := in.Settings.PodDisruptionBudget
	if budget == nil {
		if _, maxReplicas := Replicas(in.Settings); maxReplicas < 2 {
			return nil
		}
		budget = &v1alpha1.PodDisruptionBudget{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	}
	// During a Cloudflare outage no connector is ready. Connectors that serve no
	// requests must not keep a node from being drained.
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

// Handover returns a Deployment that keeps the current replica count when autoscaling
// is enabled, or nil if this is not required. A second field manager must apply it
// before the Deployment from Build is applied. Otherwise server-side apply removes
// spec.replicas, whose only owner is fieldManager, and the Deployment is scaled to 1
// until the autoscaler acts. d must be the Deployment as read, including its
// managedFields. Zero replicas are not kept, because an autoscaler does not scale up
// from zero.
func Handover(in Input, d *appsv1.Deployment, fieldManager string) *appsv1ac.DeploymentApplyConfiguration {
	if in.Settings.Autoscaling == nil || d == nil || ptr.Deref(d.Spec.Replicas, 0) == 0 || !ownsReplicas(d, fieldManager) {
		return nil
	}
	return appsv1ac.Deployment(d.Name, d.Namespace).
		WithUID(d.UID).
		WithSpec(appsv1ac.DeploymentSpec().WithReplicas(*d.Spec.Replicas))
}

// ownsReplicas reports whether the field manager has applied spec.replicas.
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
