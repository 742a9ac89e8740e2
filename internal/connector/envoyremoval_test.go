package connector

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEnvoyIsRemovedIfAnotherClientOwnsIt(t *testing.T) {
	const (
		ofEnvoy = `{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"envoy\"}":{"f:env":{}}}}}}}`
		ofOther = `{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"init\"}":{".":{}}}}}}}`
		patch   = `[{"op":"test","path":"/spec/template/spec/initContainers/1/name","value":"envoy"},{"op":"remove","path":"/spec/template/spec/initContainers/1"}]`
	)
	for _, r := range []struct {
		name, manager, fields string
		envoy                 *Envoy
		want                  string
	}{
		{"an Envoy that another client has changed", "kubectl", ofEnvoy, nil, patch},
		{"an Envoy that only the controller owns", "controller", ofEnvoy, nil, ""},
		{"a container of another client", "kubectl", ofOther, nil, ""},
		{"connectors with Envoy", "kubectl", ofEnvoy, &Envoy{}, ""},
	} {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "envoy"}}
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: r.manager, FieldsV1: metav1.NewFieldsV1(r.fields)}, {Manager: "scale"}}
		if got := string(EnvoyRemoval(Input{Envoy: r.envoy}, d, "controller")); got != r.want {
			t.Errorf("%s: the patch is %q, want %q", r.name, got, r.want)
		}
		d.Spec.Template.Spec.InitContainers = nil
		if got := EnvoyRemoval(Input{Envoy: r.envoy}, d, "controller"); got != nil {
			t.Errorf("%s, removed: the patch is %q", r.name, got)
		}
	}
}
