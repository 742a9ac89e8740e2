package connector_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

func tunnelOf(namespace, name string) *v1alpha1.Tunnel {
	return &v1alpha1.Tunnel{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tunnel-gateway", UID: "1",
			Name: tunnel.ObjectName(types.NamespacedName{Namespace: namespace, Name: name}),
		},
		Spec: v1alpha1.TunnelSpec{Gateway: v1alpha1.GatewayReference{Namespace: namespace, Name: name}},
	}
}

// inputOf returns the Input for a Gateway in the namespace infra, without settings.
func inputOf(name string) connector.Input {
	return connector.Input{Tunnel: tunnelOf("infra", name), TokenVersion: "1"}
}

// metadata returns the kind and metadata of every object for the input, including the
// token Secret, as the API server receives them.
func metadata(t *testing.T, in connector.Input) []metav1.PartialObjectMetadata {
	t.Helper()
	objects := build(t, in)
	all := []runtime.ApplyConfiguration{connector.TokenSecret(in.Tunnel, "token")}
	for _, kind := range connector.Kinds() {
		if object := kind.Select(objects); object != nil {
			all = append(all, object)
		}
	}
	var result []metav1.PartialObjectMetadata
	for _, object := range all {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var got metav1.PartialObjectMetadata
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		result = append(result, got)
	}
	return result
}

func TestEveryObjectBelongsToTheTunnel(t *testing.T) {
	in := read(t, "testdata/everything.in.yaml")
	all := metadata(t, in)
	if want := len(connector.Kinds()) + 1; len(all) != want {
		t.Fatalf("%d objects, want %d", len(all), want)
	}
	yes, no := true, false
	for _, got := range all {
		if want := tunnel.ConnectorName(types.NamespacedName{Namespace: "infra", Name: "web"}); got.Namespace != "tunnel-gateway" || got.Name != want {
			t.Errorf("%s has the name %s/%s, want tunnel-gateway/%s", got.Kind, got.Namespace, got.Name, want)
		}
		owners := []metav1.OwnerReference{{
			APIVersion: "tunnelgateway.dev/v1alpha1", Kind: "Tunnel", Name: "infra.web", UID: in.Tunnel.UID,
			Controller: &yes, BlockOwnerDeletion: &no,
		}}
		if diff := cmp.Diff(owners, got.OwnerReferences); diff != "" {
			t.Errorf("%s: owners (-want +got):\n%s", got.Kind, diff)
		}
		labels := map[string]string{
			"app.kubernetes.io/name":                 "cloudflared",
			"app.kubernetes.io/managed-by":           "tunnel-gateway",
			"tunnelgateway.dev/tunnel":               "infra.web",
			"tunnelgateway.dev/gateway-namespace":    "infra",
			"gateway.networking.k8s.io/gateway-name": "web",
		}
		annotations := map[string]string(nil)
		if got.Kind != "Secret" {
			labels["example.com/team"], labels["example.com/tier"] = "web", "front"
			annotations = in.Annotations
		}
		if diff := cmp.Diff(labels, got.Labels); diff != "" {
			t.Errorf("%s: labels (-want +got):\n%s", got.Kind, diff)
		}
		if diff := cmp.Diff(annotations, got.Annotations); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", got.Kind, diff)
		}
	}
}

// TestManagedMetadataCannotBeOverridden sets another value for each label that a Tunnel
// without settings has.
func TestManagedMetadataCannotBeOverridden(t *testing.T) {
	managed := build(t, inputOf("web")).Deployment
	in := inputOf("web")
	in.Labels, in.Annotations = map[string]string{}, map[string]string{connector.TokenVersionAnnotation: "forged"}
	in.Settings.PodLabels = map[string]v1alpha1.LabelValue{}
	in.Settings.PodAnnotations = map[string]v1alpha1.AnnotationValue{connector.TokenVersionAnnotation: "forged"}
	for key := range managed.Labels {
		in.Labels[key], in.Settings.PodLabels[key] = "forged", "forged"
	}
	for _, got := range metadata(t, in) {
		if diff := cmp.Diff(managed.Labels, got.Labels); diff != "" {
			t.Errorf("labels of the %s (-managed +got):\n%s", got.Kind, diff)
		}
	}
	template := build(t, in).Deployment.Spec.Template
	if diff := cmp.Diff(managed.Labels, template.Labels); diff != "" {
		t.Errorf("labels of the pods (-managed +got):\n%s", diff)
	}
	if diff := cmp.Diff(managed.Spec.Template.Annotations, template.Annotations); diff != "" {
		t.Errorf("annotations of the pods (-managed +got):\n%s", diff)
	}
}

// TestTunnelsShareNoObjects compares Gateways with similar names.
func TestTunnelsShareNoObjects(t *testing.T) {
	long := strings.Repeat("a", 252)
	tunnels := []*v1alpha1.Tunnel{
		tunnelOf("infra", "web"), tunnelOf("shop", "web"), tunnelOf("infra", "web.a"), tunnelOf("infra", "web-a"),
		tunnelOf("infra-web", "a"), tunnelOf("infra", long+"x"), tunnelOf("infra", long+"y"), tunnelOf("shop", long+"x"),
	}
	for _, a := range tunnels {
		selected := klabels.SelectorFromSet(connector.Selector(a))
		for _, b := range tunnels {
			deployment := build(t, connector.Input{Tunnel: b}).Deployment
			if got := selected.Matches(klabels.Set(deployment.Spec.Template.Labels)); got != (a == b) {
				t.Errorf("Tunnel %s selects the pods of %s: %t, want %t", a.Name, b.Name, got, a == b)
			}
			if got := *build(t, connector.Input{Tunnel: a}).Deployment.Name; got == *deployment.Name && a != b {
				t.Errorf("Tunnels %s and %s both have a Deployment %s", a.Name, b.Name, got)
			}
		}
	}
}

func TestAllObjectsHaveTheSamePodSelector(t *testing.T) {
	in := read(t, "testdata/everything.in.yaml")
	objects, want := build(t, in), connector.Selector(in.Tunnel)
	for name, got := range map[string]map[string]string{
		"Deployment":             objects.Deployment.Spec.Selector.MatchLabels,
		"NetworkPolicy":          objects.NetworkPolicy.Spec.PodSelector.MatchLabels,
		"PodDisruptionBudget":    objects.PodDisruptionBudget.Spec.Selector.MatchLabels,
		"constraint of settings": objects.Deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
		"constraint by default":  build(t, inputOf("web")).Deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestMetadataIsValidAtEveryLength tests names with a character that cannot be the last
// one at every position where a name can be cut.
func TestMetadataIsValidAtEveryLength(t *testing.T) {
	for _, unit := range []string{"a", "a.b", "ab--c", "0"} {
		for length := 1; length <= 253; length++ {
			in := inputOf(strings.Trim(strings.Repeat(unit, 253)[:length], "-."))
			for _, got := range metadata(t, in) {
				problems := validation.IsDNS1123Label(got.Name)
				for key, value := range got.Labels {
					problems = slices.Concat(problems, validation.IsQualifiedName(key), validation.IsValidLabelValue(value))
				}
				if len(problems) > 0 {
					t.Errorf("Gateway %s: %s %s: %v", in.Tunnel.Spec.Gateway.Name, got.Kind, got.Name, problems)
				}
			}
		}
	}
}
