package manifest

import (
	"os"
	"testing"
)

// FuzzParse checks that Parse never panics, and returns either a Set or an error.
func FuzzParse(f *testing.F) {
	cluster, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"", "---", "...", "{}{}", "[", "\ufeff", "a: &a [*a]", "\t", "{apiVersion: v1, kind: List, items: [null]}",
		string(cluster), namespace("a"), service("{ports: [{}]}"), gateway("{}"), gateway("null"), route("{rules: [null]}"), route("null"),
		"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a, managedFields: [{fieldsV1: 1}]}\nstatus: 1\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := Parse("fuzz", data, Options{})
		if (set == nil) != (err != nil) {
			t.Errorf("Parse = %v, %v; want either a Set or an error", set, err)
		}
		if err != nil && err.Error() == "" {
			t.Error("the error has no text")
		}
	})
}
