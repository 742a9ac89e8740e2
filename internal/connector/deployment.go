package connector

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// TokenVersionAnnotation names the token version that a pod uses.
const TokenVersionAnnotation = "tunnelgateway.dev/token-version"

// deployment returns the Deployment that runs cloudflared. Its pod template contains
// only values that must replace the pods when they change. It keeps no earlier
// revisions: a rollback to pods without Envoy would interrupt the traffic until the
// controller reverts it.
func deployment(in Input) (*appsv1ac.DeploymentApplyConfiguration, error) {
	pod, err := podSpec(in)
	if err != nil {
		return nil, err
	}
	spec := appsv1ac.DeploymentSpec().
		WithSelector(selector(in.Tunnel)).
		WithRevisionHistoryLimit(0).
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

// rollingUpdate replaces connectors one at a time and starts the new connector first,
// because clients have long-lived connections through the old connector. A tunnel
// accepts at most v1alpha1.MaxReplicas connectors, so a Deployment with that number
// must stop an old connector first: 4%, rounded down, is 1 for that number and 0 for a
// lower number.
func rollingUpdate() *appsv1ac.RollingUpdateDeploymentApplyConfiguration {
	return appsv1ac.RollingUpdateDeployment().
		WithMaxSurge(intstr.FromInt32(1)).
		WithMaxUnavailable(intstr.FromString("4%"))
}

// podLabels returns the pod labels. Labels that all objects have replace labels from
// the settings with the same keys.
func podLabels(in Input) map[string]string {
	all := map[string]string{}
	for key, value := range in.Settings.PodLabels {
		all[key] = string(value)
	}
	maps.Copy(all, labels(in))
	return all
}

// podAnnotations returns the pod annotations. Annotations that all objects have replace
// annotations from the settings with the same keys.
func podAnnotations(in Input) map[string]string {
	all := map[string]string{}
	for key, value := range in.Settings.PodAnnotations {
		all[key] = string(value)
	}
	maps.Copy(all, in.Annotations)
	all[TokenVersionAnnotation] = in.TokenVersion
	return all
}

// desiredReplicas returns how many connectors the settings ask for. With autoscaling,
// it returns the minimum.
func desiredReplicas(settings v1alpha1.Connector) int32 {
	minReplicas, _ := Replicas(settings)
	return minReplicas
}
