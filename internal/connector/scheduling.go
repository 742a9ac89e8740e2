package connector

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// setScheduling sets the pod's tolerations, affinity and topology spread constraints.
func setScheduling(pod *corev1ac.PodSpecApplyConfiguration, in Input) error {
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
	return setSpread(pod, in)
}

// setSpread sets the topology spread constraints from the settings. The default
// constraint prefers to run connectors on different nodes.
func setSpread(pod *corev1ac.PodSpecApplyConfiguration, in Input) error {
	for _, set := range in.Settings.TopologySpreadConstraints {
		constraint, err := applied[corev1ac.TopologySpreadConstraintApplyConfiguration](set)
		if err != nil {
			return fmt.Errorf("topologySpreadConstraints: %w", err)
		}
		if set.LabelSelector == nil {
			// A constraint without a selector counts no pods. The settings cannot
			// select this Tunnel's pods, because they apply to several Tunnels.
			constraint.WithLabelSelector(selector(in.Tunnel))
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
		WithLabelSelector(selector(in.Tunnel)).
		// Count only the pods in one revision, so that old pods do not affect where new
		// pods are scheduled.
		WithMatchLabelKeys(appsv1.DefaultDeploymentUniqueLabelKey))
	return nil
}
