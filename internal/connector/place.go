package connector

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// place says which nodes the pod may run on, beyond their labels.
func place(pod *corev1ac.PodSpecApplyConfiguration, in Input) error {
	for _, set := range in.Settings.Tolerations {
		toleration, err := applied[corev1ac.TolerationApplyConfiguration](set)
		if err != nil {
			return fmt.Errorf("tolerations: %w", err)
		}
		pod.WithTolerations(toleration)
	}
	if in.Settings.Affinity != nil {
		affinity, err := applied[corev1ac.AffinityApplyConfiguration](in.Settings.Affinity)
		if err != nil {
			return fmt.Errorf("affinity: %w", err)
		}
		pod.WithAffinity(affinity)
	}
	return spread(pod, in)
}

// spread keeps connectors apart: as the settings say, or else on different nodes
// as far as there are any.
func spread(pod *corev1ac.PodSpecApplyConfiguration, in Input) error {
	for _, set := range in.Settings.TopologySpreadConstraints {
		constraint, err := applied[corev1ac.TopologySpreadConstraintApplyConfiguration](set)
		if err != nil {
			return fmt.Errorf("topologySpreadConstraints: %w", err)
		}
		if set.LabelSelector == nil {
			// Without a selector a constraint counts no pods at all. Those that it is
			// for can only be the connectors, whose labels are ours to know.
			constraint.WithLabelSelector(selector(in.Gateway))
		}
		pod.WithTopologySpreadConstraints(constraint)
	}
	if len(in.Settings.TopologySpreadConstraints) > 0 {
		return nil
	}
	pod.WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().
		WithMaxSkew(1).
		WithTopologyKey(corev1.LabelHostname).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(selector(in.Gateway)).
		// The pods of one revision are spread: those that they replace do not count.
		WithMatchLabelKeys(appsv1.DefaultDeploymentUniqueLabelKey))
	return nil
}
