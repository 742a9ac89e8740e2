package controller

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

func TestTheChartPermitsWatchingExactlyTheWatchedKinds(t *testing.T) {
	for _, test := range []struct {
		rules []string
		kinds []client.Object
	}{
		{[]string{"clusterRules", "tenantRules", "secretRules"}, inputKinds()},
		{[]string{"tunnelRules"}, managedKinds()},
	} {
		wanted := map[string]bool{}
		for _, object := range test.kinds {
			gvk, err := apiutil.GVKForObject(object, Scheme())
			if err != nil {
				t.Fatal(err)
			}
			plural := strings.NewReplacer("ss$", "sses", "cy$", "cies", "$", "s").Replace(strings.ToLower(gvk.Kind) + "$")
			wanted[schema.GroupResource{Group: gvk.Group, Resource: plural}.String()] = true
		}
		permitted := map[string]bool{}
		for _, name := range test.rules {
			for _, rule := range chartRules(t, name) {
				if !slices.Contains(rule.Verbs, "list") || !slices.Contains(rule.Verbs, "watch") {
					continue
				}
				for _, resource := range rule.Resources {
					permitted[schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}.String()] = true
				}
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(permitted))); diff != "" {
			t.Errorf("%s (-watched +permitted):\n%s", test.rules, diff)
		}
	}
}

// action matches an action of a template with its line, or the block of a condition.
var action = regexp.MustCompile(`(?s)\{\{- if .*?\{\{- end \}\}|(?-s:.*\{\{.*)`)

// chartRules returns the rules in a named template of the chart, except conditional ones.
func chartRules(t *testing.T, name string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile("../../charts/tunnel-gateway/templates/_rules.tpl")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)\{\{- define "tunnel-gateway\.` + name + `" -\}\}(.*?)\{\{- end -\}\}`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("the chart has no template %s", name)
	}
	var rules []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(action.ReplaceAll(found[1], nil), &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}
