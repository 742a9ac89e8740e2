package connector

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

const (
	// defaultReplicas are two, so that one can go while the other serves.
	defaultReplicas      int32 = 2
	defaultUtilization   int32 = 80
	deploymentAPIVersion       = "apps/v1"
	deploymentKind             = "Deployment"
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
				WithAPIVersion(deploymentAPIVersion).WithKind(deploymentKind).WithName(Name(in.Gateway))).
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
