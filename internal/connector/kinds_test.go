package connector_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

// TestKindsCoverAllObjects checks that New and Select in each Kind return the same
// kind, and that every field in Objects has a Kind.
func TestKindsCoverAllObjects(t *testing.T) {
	var order, outlivePods []string
	objects := build(t, read(t, "testdata/everything.in.yaml"))
	for _, kind := range connector.Kinds() {
		known, _, err := scheme.Scheme.ObjectKinds(kind.New())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(kind.Select(objects))
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ APIVersion, Kind string }
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got := schema.FromAPIVersionAndKind(got.APIVersion, got.Kind); got != known[0] {
			t.Errorf("Select returns a %s, but New returns a %s", got, known[0])
		}
		order = append(order, got.Kind)
		if kind.OutlivesPods {
			outlivePods = append(outlivePods, got.Kind)
		}
		if none := kind.Select(connector.Objects{}); none != nil {
			t.Errorf("Select returns %#v, want nil without a %s", none, got.Kind)
		}
	}
	if diff := cmp.Diff("ServiceAccount NetworkPolicy Deployment PodDisruptionBudget HorizontalPodAutoscaler", strings.Join(order, " ")); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ServiceAccount", "NetworkPolicy"}, outlivePods); diff != "" {
		t.Errorf("kinds that outlive the pods (-want +got):\n%s", diff)
	}
	if fields := reflect.TypeFor[connector.Objects]().NumField(); fields != len(order) {
		t.Errorf("Objects has %d fields, but Kinds has %d kinds", fields, len(order))
	}
}
