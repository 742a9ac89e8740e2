package connector

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// defaultMemory is the memory that a container requests by default, for the scheduler.
// cloudflared needs it with a few dozen rules, and Envoy with 1,000 hostnames.
const defaultMemory = "128Mi"

// setResources sets the container's resources. path is the path to the setting.
func setResources(c *corev1ac.ContainerApplyConfiguration, path string, settings *corev1.ResourceRequirements) error {
	resources, err := applied[corev1ac.ResourceRequirementsApplyConfiguration](withDefaultMemory(settings))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	c.WithResources(resources)
	return nil
}

// withDefaultMemory adds the default memory request to the settings. A limit without a
// request is also the request, and may be lower than the default.
func withDefaultMemory(settings *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if settings == nil {
		settings = &corev1.ResourceRequirements{}
	}
	for _, list := range []corev1.ResourceList{settings.Requests, settings.Limits} {
		if _, ok := list[corev1.ResourceMemory]; ok {
			return settings
		}
	}
	settings = settings.DeepCopy()
	if settings.Requests == nil {
		settings.Requests = corev1.ResourceList{}
	}
	settings.Requests[corev1.ResourceMemory] = resource.MustParse(defaultMemory)
	return settings
}
