package hostnames

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// vector is one case in testdata/permissions.yaml, which describes the fields.
type vector struct {
	Annotation     *string
	Hostname       string
	Result         string
	Invalid        []string
	OnlyController string
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	content, err := os.ReadFile("testdata/permissions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := yaml.UnmarshalStrict(content, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func TestPermissions(t *testing.T) {
	results := map[string]int{}
	for _, v := range readVectors(t) {
		var permission Permission
		if v.Annotation != nil {
			permission = ParsePermission(*v.Annotation)
		}
		got := "Accepted"
		switch {
		case !permission.Permits(v.Hostname):
			got = "HostnameNotPermitted"
		case Problem(v.Hostname) != "":
			got = "UnsupportedValue"
		}
		if got != v.Result {
			t.Errorf("annotation %s, hostname %q: got %s, want %s", describe(v.Annotation), v.Hostname, got, v.Result)
		}
		if diff := cmp.Diff(v.Invalid, permission.Invalid); diff != "" {
			t.Errorf("annotation %s: invalid entries differ (-want +got):\n%s", describe(v.Annotation), diff)
		}
		results[got]++
	}
	if len(results) != 3 {
		t.Errorf("the cases have only the results %v", results)
	}
}

func describe(annotation *string) string {
	if annotation == nil {
		return "absent"
	}
	return *annotation
}
