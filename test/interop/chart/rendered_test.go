package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

// rendering returns the objects of a release by its name and namespace.
func rendering(t *testing.T, name, namespace string, arguments ...string) []object {
	t.Helper()
	return objects(t, mustHelm(t, append([]string{"template", name, chartDir, "--namespace", namespace}, arguments...)...))
}

// only returns the one object of the kind.
func only(t *testing.T, all []object, kind string) object {
	t.Helper()
	var found []object
	for _, o := range all {
		if o["kind"] == kind {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d of kind %s", len(found), kind)
	}
	return found[0]
}

// podOf is the pod's spec, and container the controller's in it.
func podOf(t *testing.T, all []object) (pod, container map[string]any) {
	t.Helper()
	pod = child(child(child(only(t, all, "Deployment"), "spec"), "template"), "spec")
	return pod, pod["containers"].([]any)[0].(map[string]any)
}

// argument returns the value of a flag of the controller.
func argument(t *testing.T, all []object, flag string) string {
	t.Helper()
	_, container := podOf(t, all)
	for _, given := range container["args"].([]any) {
		if value, ok := strings.CutPrefix(given.(string), "--"+flag+"="); ok {
			return value
		}
	}
	t.Fatalf("--%s is not among %v", flag, container["args"])
	return ""
}

// What looks like a number, or like a mapping, stays the text that it is.
func TestTextStaysText(t *testing.T) {
	all := rendering(t, "123", "456",
		"--set-string", "gatewayClass.name=7,priorityClassName=1,serviceAccount.name=8,controller.clusterID=9,tunnelConfiguration.name=10",
		"--set-string", "cloudflare.accountID=11,cloudflare.existingSecret=12,controller.clusterDomain=14,controller.namespaces={456,a}",
		"--set", "controller.name=example.com/a:,tunnelConfiguration.create=true",
		"--set", "podLabels.team=on,metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true")
	for _, o := range all {
		checkText(t, o.id(), map[string]any(o))
	}
	pod, container := podOf(t, all)
	if pod["priorityClassName"] != "1" || pod["serviceAccountName"] != "8" {
		t.Errorf("the pod has %v and %v", pod["priorityClassName"], pod["serviceAccountName"])
	}
	for _, given := range container["args"].([]any) {
		if _, ok := given.(string); !ok {
			t.Errorf("the argument %v is no text", given)
		}
	}
	if got := child(only(t, all, "GatewayClass"), "spec")["controllerName"]; got != "example.com/a:" {
		t.Errorf("the controller's name is %v", got)
	}
}

// checkText wants all names and labels in a value to be text.
func checkText(t *testing.T, path string, value any) {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for n, item := range v {
			checkText(t, fmt.Sprintf("%s[%d]", path, n), item)
		}
	case map[string]any:
		for key, item := range v {
			texts := map[string]any{key: item}
			if slices.Contains([]string{"labels", "matchLabels", "annotations", "selector"}, key) {
				texts, _ = item.(map[string]any)
			} else if !slices.Contains([]string{"name", "namespace", "resourceNames"}, key) {
				texts = nil
			}
			for name, text := range texts {
				switch text.(type) {
				case string, []any, map[string]any:
				default:
					t.Errorf("%s.%s: %s is %v, which is no text", path, key, name, text)
				}
			}
			checkText(t, path+"."+key, item)
		}
	}
}

// Every name of a release makes valid names of objects.
func TestNames(t *testing.T) {
	long := strings.Repeat("a23456789-", 6)[:53]
	for name, test := range map[string]struct {
		release string
		set     string
		want    string
	}{
		"the chart's":           {"tunnel-gateway", "", "tunnel-gateway"},
		"another":               {"edge", "", "edge-tunnel-gateway"},
		"one that has it":       {"my-tunnel-gateway", "", "my-tunnel-gateway"},
		"dots":                  {"edge.west", "", "edge-west-tunnel-gateway"},
		"a digit":               {"1edge", "", "tunnel-gateway-1edge"},
		"a digit and all of it": {"1-tunnel-gateway", "", "tunnel-gateway-1-tunnel-gateway"},
		"as long as can be":     {long, "", long},
		"an override":           {"edge", "nameOverride=west", "edge-west"},
		"a whole override":      {"edge", "fullnameOverride=west", "west"},
		"cut behind a hyphen":   {strings.Repeat("a", 52), "", strings.Repeat("a", 52)},
		"cut behind two":        {strings.Repeat("a", 49), "nameOverride=b--c", strings.Repeat("a", 49) + "-b"},
	} {
		t.Run(name, func(t *testing.T) {
			all := rendering(t, test.release, namespace, "--set", test.set,
				"--set", "controller.namespaces={team-a},cloudflare.accountID=account,cloudflare.existingSecret=cloudflare",
				"--set", "metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true")
			if got := only(t, all, "Deployment").metadata()["name"]; got != test.want {
				t.Errorf("the Deployment is %v, want %s", got, test.want)
			}
			for _, o := range all {
				valid := validation.IsDNS1123Subdomain
				if o["kind"] == "Service" {
					valid = validation.IsDNS1035Label
				}
				if errs := valid(o.metadata()["name"].(string)); len(errs) > 0 {
					t.Errorf("%s: %v", o.id(), errs)
				}
				for label, value := range child(o.metadata(), "labels") {
					if errs := validation.IsValidLabelValue(value.(string)); len(errs) > 0 {
						t.Errorf("%s: label %s: %v", o.id(), label, errs)
					}
				}
			}
			if errs := validation.IsDNS1123Subdomain(argument(t, all, "leader-election-id")); len(errs) > 0 {
				t.Errorf("the Lease: %v", errs)
			}
		})
	}
}

// Releases in one namespace each elect a leader of their own, by a Lease that
// their role names.
func TestLeases(t *testing.T) {
	leases := map[string]string{}
	for _, name := range []string{"tunnel-gateway", "edge", "west.edge"} {
		all := rendering(t, name, namespace)
		lease := argument(t, all, "leader-election-id")
		if other, taken := leases[lease]; taken {
			t.Errorf("%s and %s share the Lease %s", name, other, lease)
		}
		leases[lease] = name
		if diff := cmp.Diff([]any{lease}, resourceNames(all)); diff != "" {
			t.Errorf("%s: its Role names another Lease (-flag +role):\n%s", name, diff)
		}
	}
	if leases["tunnel-gateway.tunnelgateway.dev"] != "tunnel-gateway" {
		t.Errorf("the Leases are %v", leases)
	}
}

// resourceNames returns the names of objects to which the Roles are limited.
func resourceNames(all []object) []any {
	var named []any
	for _, o := range all {
		rules, _ := o["rules"].([]any)
		for _, rule := range rules {
			names, _ := rule.(map[string]any)["resourceNames"].([]any)
			named = append(named, names...)
		}
	}
	return named
}

// rulesFor returns the namespaces in which a release may use a verb on a resource,
// in order; "*" stands for all.
func rulesFor(all []object, resource, verb string) []string {
	var namespaces []string
	for _, o := range all {
		rules, _ := o["rules"].([]any)
		for _, rule := range rules {
			r := rule.(map[string]any)
			if !slices.Contains(r["resources"].([]any), any(resource)) || !slices.Contains(r["verbs"].([]any), any(verb)) {
				continue
			}
			namespace, ok := o.metadata()["namespace"].(string)
			if !ok {
				namespace = "*"
			}
			namespaces = append(namespaces, namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// The controller may read Secrets where it checks certificates, and in its own
// namespace.
func TestSecretsAreReadWhereCertificatesAreChecked(t *testing.T) {
	for set, want := range map[string][]string{
		"":                                 {"*"},
		"certificates.validate=false":      {namespace},
		"certificates.namespaces={team-a}": {"team-a", namespace},
		"controller.namespaces={a,b}":      {"a", "b", namespace},
		"controller.namespaces={a,b},certificates.namespaces={a}": {"a", namespace},
		"controller.namespaces={a,b},certificates.validate=false": {namespace},
		"certificates.namespaces={" + namespace + "}":             {namespace},
	} {
		all := rendering(t, release, namespace, "--set", set)
		if diff := cmp.Diff(want, rulesFor(all, "secrets", "get")); diff != "" {
			t.Errorf("%s: Secrets are read elsewhere (-want +got):\n%s", set, diff)
		}
		if diff := cmp.Diff([]string{namespace}, rulesFor(all, "secrets", "patch")); diff != "" {
			t.Errorf("%s: Secrets are written elsewhere (-want +got):\n%s", set, diff)
		}
	}
}

// Two releases of one name, in two namespaces, have no object in common but
// those whose names are values. `kubectl apply` of one would overwrite those of the
// other.
func TestReleasesShareNothing(t *testing.T) {
	for name, set := range map[string]string{
		"everywhere":         "crds.install=false",
		"the same namespace": "crds.install=false,controller.namespaces={team-a},cloudflare.accountID=account,cloudflare.existingSecret=cloudflare",
		"some certificates":  "crds.install=false,certificates.namespaces={team-a,tunnel}",
		"each other's":       "crds.install=false,controller.namespaces={tunnel,gateway}",
	} {
		t.Run(name, func(t *testing.T) {
			owners := map[string]string{}
			// Parts of the release's name, and the name itself.
			for _, namespace := range []string{"tunnel-gateway", "tunnel", "gateway", "default"} {
				for _, o := range rendering(t, release, namespace, "--set", set+",gatewayClass.name="+namespace) {
					if other, taken := owners[o.id()]; taken {
						t.Errorf("%s is that of the release in %s and of the one in %s", o.id(), other, namespace)
					}
					owners[o.id()] = namespace
				}
			}
		})
	}
}

// A Deployment's selector can never be changed.
func TestSelectorStays(t *testing.T) {
	selectors := func(arguments ...string) map[string]any {
		found := map[string]any{}
		for _, o := range objects(t, render(t, append(arguments, "--set", "metrics.serviceMonitor.enabled=true")...)) {
			for _, field := range []string{"selector", "podSelector"} {
				if selector, ok := child(o, "spec")[field]; ok {
					found[fmt.Sprint(o["kind"])] = selector
				}
			}
		}
		return found
	}
	before := selectors()
	if len(before) != 5 {
		t.Errorf("the selectors are %v", before)
	}
	if diff := cmp.Diff(before, selectors("--set", "nameOverride=edge")); diff != "" {
		t.Errorf("nameOverride changes what cannot be changed:\n%s", diff)
	}
}
