package connector_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

// Containers request memory, unless the settings say how much memory they have.
func TestContainersRequestMemory(t *testing.T) {
	list := func(name corev1.ResourceName, quantity string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(quantity)}
	}
	for name, test := range map[string]struct {
		settings         *corev1.ResourceRequirements
		requests, limits map[string]string
	}{
		"no settings":      {nil, map[string]string{"memory": "128Mi"}, nil},
		"another resource": {&corev1.ResourceRequirements{Requests: list("cpu", "50m"), Limits: list("cpu", "1")}, map[string]string{"cpu": "50m", "memory": "128Mi"}, map[string]string{"cpu": "1"}},
		"a request":        {&corev1.ResourceRequirements{Requests: list("memory", "1Gi")}, map[string]string{"memory": "1Gi"}, nil},
		"a request of 0":   {&corev1.ResourceRequirements{Requests: list("memory", "0")}, map[string]string{"memory": "0"}, nil},
		"a low limit":      {&corev1.ResourceRequirements{Limits: list("memory", "100Mi")}, nil, map[string]string{"memory": "100Mi"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf("web")
			in.Envoy = &connector.Envoy{}
			in.Settings.Resources, in.Settings.Envoy = test.settings, &v1alpha1.EnvoyProxy{Resources: test.settings}
			before := test.settings.DeepCopy()
			pod := build(t, in).Deployment.Spec.Template.Spec
			for container, got := range map[string]*corev1ac.ResourceRequirementsApplyConfiguration{"cloudflared": pod.Containers[0].Resources, "envoy": pod.InitContainers[0].Resources} {
				if diff := cmp.Diff([]map[string]string{test.requests, test.limits}, []map[string]string{quantities(got.Requests), quantities(got.Limits)}); diff != "" {
					t.Errorf("%s has other resources (-want +got):\n%s", container, diff)
				}
			}
			if diff := cmp.Diff(before, test.settings); diff != "" {
				t.Errorf("the settings changed (-before +after):\n%s", diff)
			}
		})
	}
}

func quantities(list *corev1.ResourceList) map[string]string {
	if list == nil {
		return nil
	}
	texts := map[string]string{}
	for name, quantity := range *list {
		texts[string(name)] = quantity.String()
	}
	return texts
}
