package connector_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/storage/names"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

func gatewayOf(name, class string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name, UID: "1"},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: gatewayv1.ObjectName(class)},
	}
}

func inputOf(g *gatewayv1.Gateway) connector.Input {
	return connector.Input{Gateway: g, TokenSecret: "secret", TokenKey: "token", TokenVersion: "1"}
}

func TestName(t *testing.T) {
	long := strings.Repeat("a", 253)
	for _, c := range []struct{ what, gateway, class, want string }{
		{"short", "web", "cloudflare-tunnel", "web-cloudflare-tunnel"},
		{"just fits", strings.Repeat("g", 28), "cloudflare-tunnel", strings.Repeat("g", 28) + "-cloudflare-tunnel"},
		{"one too long", strings.Repeat("g", 29), "cloudflare-tunnel", strings.Repeat("g", 29) + "-cloud-417d7493da"},
		{"longest Gateway", long, "c", strings.Repeat("a", 35) + "-5c1e6f9494"},
		{"longest class", "web", long, "web-" + strings.Repeat("a", 31) + "-1ed4db21e7"},
		{"a dot at the cut", strings.Repeat("a", 34) + "." + strings.Repeat("b", 30), "c", strings.Repeat("a", 34) + "-910c0f7e60"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := connector.Name(gatewayOf(c.gateway, c.class)); got != c.want {
				t.Errorf("Name = %q, want %q", got, c.want)
			}
		})
	}
}

func TestLongNamesThatDifferAtTheEndAreTold(t *testing.T) {
	long := strings.Repeat("a", 252)
	seen := map[string]bool{}
	for _, g := range []*gatewayv1.Gateway{
		gatewayOf(long, "c"), gatewayOf(long+"x", "c"), gatewayOf(long+"y", "c"), gatewayOf(long, "d"),
		gatewayOf("a", long+"x"), gatewayOf("a", long+"y"),
		gatewayOf(strings.Repeat("a", 60)+"-b", "c"), gatewayOf(strings.Repeat("a", 60), "b-c"),
	} {
		name := connector.Name(g)
		if seen[name] {
			t.Errorf("two Gateways have the name %s", name)
		}
		seen[name] = true
	}
}

// TestNamesAndLabelsAreValid takes every length of name that is cut somewhere
// else, with every character that a cut may not leave at the end.
func TestNamesAndLabelsAreValid(t *testing.T) {
	for _, unit := range []string{"a", "a.b", "ab--c", "a.b-c", "0"} {
		for length := 1; length <= 253; length++ {
			name := strings.Trim(strings.Repeat(unit, 253)[:length], "-.")
			for _, class := range []string{"c", name} {
				checkValid(t, gatewayOf(name, class))
			}
		}
	}
}

func checkValid(t *testing.T, g *gatewayv1.Gateway) {
	t.Helper()
	name := connector.Name(g)
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		t.Errorf("Gateway %s: name %s: %v", g.Name, name, faults)
	}
	prefix := name + "-0123456789-"
	if pod := names.SimpleNameGenerator.GenerateName(prefix); !strings.HasPrefix(pod, prefix) {
		t.Errorf("Gateway %s: a pod of Deployment %s is called %s, without all of the revision's hash", g.Name, name, pod)
	}
	labels := connector.Labels(g)
	for key, value := range labels {
		if faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(faults) > 0 {
			t.Errorf("Gateway %s: label %s=%s: %v", g.Name, key, value, faults)
		}
	}
	for key, value := range connector.Selector(g) {
		if labels[key] != value {
			t.Errorf("Gateway %s: the selector has %s=%s, and the labels do not", g.Name, key, value)
		}
	}
}

// TestEveryObjectIsTheGateways looks at the objects as the API server gets them.
func TestEveryObjectIsTheGateways(t *testing.T) {
	in := read(t, "testdata/everything.in.yaml")
	var kinds []string
	for _, object := range build(t, in).ByKind() {
		if object == nil {
			continue
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var got metav1.PartialObjectMetadata
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, got.Kind)
		if got.Namespace != "infra" || got.Name != "web-cloudflare-tunnel" {
			t.Errorf("%s is called %s/%s", got.Kind, got.Namespace, got.Name)
		}
		if !metav1.IsControlledBy(&got, in.Gateway) {
			t.Errorf("%s does not belong to the Gateway: %v", got.Kind, got.OwnerReferences)
		}
		want := map[string]string{
			"example.com/team":                       "web",
			"example.com/tier":                       "front",
			"app.kubernetes.io/name":                 "cloudflared",
			"app.kubernetes.io/managed-by":           "tunnel-gateway",
			"gateway.networking.k8s.io/gateway-name": "web",
			gatewayv1.GatewayClassNameLabelKey:       "cloudflare-tunnel",
		}
		for key, value := range want {
			if got.Labels[key] != value {
				t.Errorf("%s has label %s=%q, want %q", got.Kind, key, got.Labels[key], value)
			}
		}
		if got.Annotations["example.com/contact"] != "web@example.com" {
			t.Errorf("%s lacks the annotation of spec.infrastructure: %v", got.Kind, got.Annotations)
		}
	}
	if got, want := strings.Join(kinds, " "), "ServiceAccount NetworkPolicy Deployment PodDisruptionBudget HorizontalPodAutoscaler"; got != want {
		t.Errorf("the kinds are %s, want %s", got, want)
	}
}
