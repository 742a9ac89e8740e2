package connector

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
)

// TokenVersionAnnotation is set on the pods: when the token's version changes,
// the Deployment replaces them, once.
const TokenVersionAnnotation = "tunnelgateway.dev/token-version"

// deployment is the Deployment of cloudflared. Its pods are a function of the
// settings, spec.infrastructure, the token's version and the protocol, so that
// nothing else replaces them.
func deployment(in Input) (*appsv1ac.DeploymentApplyConfiguration, error) {
	pod, err := podSpec(in)
	if err != nil {
		return nil, err
	}
	template := corev1ac.PodTemplateSpec().
		WithLabels(podLabels(in)).
		WithAnnotations(podAnnotations(in)).
		WithSpec(pod)
	spec := appsv1ac.DeploymentSpec().
		WithSelector(selector(in.Gateway)).
		WithRevisionHistoryLimit(2).
		WithStrategy(appsv1ac.DeploymentStrategy().
			WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(rollingUpdate())).
		WithTemplate(template)
	if in.Settings.Autoscaling == nil {
		spec.WithReplicas(ptr.Deref(in.Settings.Replicas, defaultReplicas))
	}
	return appsv1ac.Deployment(Name(in.Gateway), in.Gateway.Namespace).
		WithLabels(Labels(in.Gateway)).
		WithAnnotations(annotations(in.Gateway)).
		WithOwnerReferences(owner(in.Gateway)).
		WithSpec(spec), nil
}

// rollingUpdate replaces connectors one by one, the new one first: each holds
// long-lived connections of clients. A tunnel takes v1alpha1.MaxReplicas
// connectors, so a new one beside as many waits until an old one is gone: 4 %,
// rounded down, lets one go then, and none of fewer.
func rollingUpdate() *appsv1ac.RollingUpdateDeploymentApplyConfiguration {
	return appsv1ac.RollingUpdateDeployment().
		WithMaxSurge(intstr.FromInt32(1)).
		WithMaxUnavailable(intstr.FromString("4%"))
}

// podLabels are the labels of the pods: those that are asked for, those that
// everything made for the Gateway has, and our own, later ones first.
func podLabels(in Input) map[string]string {
	labels := map[string]string{}
	for name, value := range in.Settings.PodLabels {
		labels[name] = string(value)
	}
	maps.Copy(labels, Labels(in.Gateway))
	return labels
}

// podAnnotations are the annotations of the pods, as podLabels are their labels.
func podAnnotations(in Input) map[string]string {
	all := map[string]string{}
	for name, value := range in.Settings.PodAnnotations {
		all[name] = string(value)
	}
	maps.Copy(all, annotations(in.Gateway))
	all[TokenVersionAnnotation] = in.TokenVersion
	return all
}
