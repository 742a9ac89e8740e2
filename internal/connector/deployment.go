package connector

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// TokenVersionAnnotation is the annotation of a pod that holds the version of
// the token that the pod started with.
const TokenVersionAnnotation = "tunnelgateway.dev/token-version"

// deployment is the Deployment of cloudflared. Its pod template contains only
// values whose change has to replace the pods.
func deployment(in Input) (*appsv1ac.DeploymentApplyConfiguration, error) {
	pod, err := podSpec(in)
	if err != nil {
		return nil, err
	}
	spec := appsv1ac.DeploymentSpec().
		WithSelector(selector(in.Tunnel)).
		WithRevisionHistoryLimit(2).
		WithStrategy(appsv1ac.DeploymentStrategy().
			WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(rollingUpdate())).
		WithTemplate(corev1ac.PodTemplateSpec().
			WithLabels(podLabels(in)).
			WithAnnotations(podAnnotations(in)).
			WithSpec(pod))
	if in.Settings.Autoscaling == nil {
		spec.WithReplicas(desiredReplicas(in.Settings))
	}
	return owned(in, appsv1ac.Deployment(name(in.Tunnel), in.Tunnel.Namespace)).WithSpec(spec), nil
}

// rollingUpdate replaces connectors one at a time and starts the new one first,
// because clients have long-lived connections through the old one. A tunnel
// accepts at most v1alpha1.MaxReplicas connectors. A Deployment of that many has
// to stop an old one first: 4%, rounded down, is 1 of them, and 0 of fewer.
func rollingUpdate() *appsv1ac.RollingUpdateDeploymentApplyConfiguration {
	return appsv1ac.RollingUpdateDeployment().
		WithMaxSurge(intstr.FromInt32(1)).
		WithMaxUnavailable(intstr.FromString("4%"))
}

// podLabels are the labels of the pods. The labels of all objects replace those
// of the settings.
func podLabels(in Input) map[string]string {
	all := map[string]string{}
	for key, value := range in.Settings.PodLabels {
		all[key] = string(value)
	}
	maps.Copy(all, labels(in))
	return all
}

// podAnnotations are the annotations of the pods. The annotations of all objects
// replace those of the settings.
func podAnnotations(in Input) map[string]string {
	all := map[string]string{}
	for key, value := range in.Settings.PodAnnotations {
		all[key] = string(value)
	}
	maps.Copy(all, in.Annotations)
	all[TokenVersionAnnotation] = in.TokenVersion
	return all
}

// desiredReplicas is the number of connectors that the settings ask for. With
// autoscaling it is the lowest number.
func desiredReplicas(settings v1alpha1.Connector) int32 {
	if settings.Autoscaling != nil {
		least, _ := bounds(*settings.Autoscaling)
		return least
	}
	return ptr.Deref(settings.Replicas, defaultReplicas)
}
