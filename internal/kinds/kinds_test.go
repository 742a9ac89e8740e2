package kinds_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

var (
	_ client.Object     = kinds.Object(nil)
	_ client.ObjectList = kinds.List(nil)
)

func TestTheChartPermitsWatchingExactlyTheKinds(t *testing.T) {
	isSecret := func(k kinds.Kind) bool { return k.GVK() == kinds.Secret.GVK() }
	for rules, watched := range map[string]func(kinds.Kind) bool{
		"clusterRules": func(k kinds.Kind) bool { return k.ClusterScoped },
		"tenantRules":  func(k kinds.Kind) bool { return !k.ClusterScoped && !k.OwnNamespace && !isSecret(k) },
		"secretRules":  isSecret,
		"tunnelRules":  func(k kinds.Kind) bool { return k.OwnNamespace },
	} {
		if diff := cmp.Diff(resources(kinds.Select(watched)), permitted(chartRules(t, rules), "list", "watch")); diff != "" {
			t.Errorf("%s (-kinds +chart):\n%s", rules, diff)
		}
	}
}

// ignoredResources are resources whose objects the controller ignores, and a plan reports.
var ignoredResources = []string{
	"tcproutes.gateway.networking.k8s.io", "tlsroutes.gateway.networking.k8s.io", "udproutes.gateway.networking.k8s.io",
	"xbackendtrafficpolicies.gateway.networking.x-k8s.io", "xlistenersets.gateway.networking.x-k8s.io",
}

func TestViewerRolePermitsExactlyWhatPlanReads(t *testing.T) {
	// The role does not permit reading Secrets, whose certificates a plan need not check.
	read := kinds.Select(func(k kinds.Kind) bool { return k.Plan != kinds.Never && k.GVK() != kinds.Secret.GVK() })
	want := slices.Concat(resources(read), ignoredResources)
	slices.Sort(want)
	if diff := cmp.Diff(want, permitted(chartRules(t, "viewerRules"), "get", "list")); diff != "" {
		t.Errorf("role (-kinds +chart):\n%s", diff)
	}
}

func TestKindsWithACRDMatchTheirDefinition(t *testing.T) {
	crds, err := manifest.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds.Select(kinds.Kind.HasCRD) {
		i := slices.IndexFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == k.Resource().String() })
		if i < 0 {
			t.Errorf("there is no CRD %s", k.Resource())
			continue
		}
		spec := crds[i].Spec
		stored := slices.IndexFunc(spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
		if defined := (schema.GroupVersionKind{Group: spec.Group, Version: spec.Versions[stored].Name, Kind: spec.Names.Kind}); k.GVK() != defined {
			t.Errorf("kind %s is defined as %s", k.GVK(), defined)
		}
		if k.ClusterScoped != (spec.Scope == apiextensionsv1.ClusterScoped) {
			t.Errorf("%s: ClusterScoped is %t, but the scope is %s", k.Plural, k.ClusterScoped, spec.Scope)
		}
	}
}

func TestEveryListedKindHasAList(t *testing.T) {
	scheme := kinds.Scheme(kinds.All())
	for _, k := range kinds.All() {
		known, _, err := scheme.ObjectKinds(k.New())
		if err != nil || known[0] != k.GVK() {
			t.Errorf("New returns %s, %v, want %s", known, err, k.GVK())
		}
		if k.Plan != kinds.Listed {
			continue
		}
		want := k.GVK().GroupVersion().WithKind(k.GVK().Kind + "List")
		if known, _, err = scheme.ObjectKinds(k.NewList()); err != nil || known[0] != want {
			t.Errorf("NewList returns %s, %v, want %s", known, err, want)
		}
	}
}

// resources returns the sorted names of the kinds' resources.
func resources(of []kinds.Kind) []string {
	names := make([]string, len(of))
	for i, k := range of {
		names[i] = k.Resource().String()
	}
	slices.Sort(names)
	return names
}

// permitted returns the sorted names of the resources for which the rules grant all
// verbs.
func permitted(rules []rbacv1.PolicyRule, verbs ...string) []string {
	var names []string
	for _, rule := range rules {
		if slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(rule.Verbs, verb) }) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				names = append(names, schema.GroupResource{Group: group, Resource: resource}.String())
			}
		}
	}
	slices.Sort(names)
	return names
}

// action matches a template action with its line, or the block below a condition.
var action = regexp.MustCompile(`(?s)\{\{- if .*?\{\{- end \}\}|(?-s:.*\{\{.*)`)

// chartRules returns the rules in one of the chart's named templates, except conditional
// ones.
func chartRules(t *testing.T, name string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile("../../charts/tunnel-gateway/templates/_rules.tpl")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := bytes.Cut(text, []byte(`{{- define "tunnel-gateway.`+name+`" -}}`))
	if !found {
		t.Fatalf("the chart has no template %s", name)
	}
	text, _, _ = bytes.Cut(text, []byte("{{- end -}}"))
	var rules []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(action.ReplaceAll(text, nil), &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}
