package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

// renderRelease returns the objects that a release with the name renders in the
// namespace.
func renderRelease(t *testing.T, name, namespace string, arguments ...string) []object {
	t.Helper()
	return objects(t, mustHelm(t, append([]string{"template", name, chartDir, "--namespace", namespace}, arguments...)...))
}

// onlyObject returns the only object with the kind.
func onlyObject(t *testing.T, all []object, kind string) object {
	t.Helper()
	var found []object
	for _, o := range all {
		if o["kind"] == kind {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s, want 1", len(found), kind)
	}
	return found[0]
}

// controllerPod returns the controller's pod spec and its container.
func controllerPod(t *testing.T, all []object) (pod, container map[string]any) {
	t.Helper()
	pod = childMap(childMap(childMap(onlyObject(t, all, "Deployment"), "spec"), "template"), "spec")
	return pod, pod["containers"].([]any)[0].(map[string]any)
}

// controllerFlag returns the value of a flag in the controller's arguments.
func controllerFlag(t *testing.T, all []object, flag string) string {
	t.Helper()
	_, container := controllerPod(t, all)
	for _, arg := range container["args"].([]any) {
		if value, ok := strings.CutPrefix(arg.(string), "--"+flag+"="); ok {
			return value
		}
	}
	t.Fatalf("--%s is not in the arguments %v", flag, container["args"])
	return ""
}

// TestNumbersInNamesStayStrings renders values that YAML would read as a number, a
// boolean or a mapping if the chart did not quote them.
func TestNumbersInNamesStayStrings(t *testing.T) {
	all := renderRelease(t, "123", "456",
		"--set-string", "gatewayClass.name=7,priorityClassName=1,serviceAccount.name=8,controller.clusterID=9,tunnelConfiguration.name=10",
		"--set-string", "cloudflare.accountID=12345678901234567890123456789012,cloudflare.existingSecret=12,controller.clusterDomain=14,controller.namespaces={456,a}",
		"--set", "controller.name=example.com/a:,tunnelConfiguration.create=true",
		"--set", "podLabels.team=on,metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true")
	for _, o := range all {
		checkStrings(t, o.id(), map[string]any(o))
	}
	pod, container := controllerPod(t, all)
	if pod["priorityClassName"] != "1" || pod["serviceAccountName"] != "8" {
		t.Errorf("priorityClassName is %v and serviceAccountName is %v, want 1 and 8", pod["priorityClassName"], pod["serviceAccountName"])
	}
	for _, arg := range container["args"].([]any) {
		if _, ok := arg.(string); !ok {
			t.Errorf("the argument %v is not a string", arg)
		}
	}
	if got := childMap(onlyObject(t, all, "GatewayClass"), "spec")["controllerName"]; got != "example.com/a:" {
		t.Errorf("controllerName is %v, want example.com/a:", got)
	}
}

// checkStrings checks that all names, labels and annotations in the value are strings.
func checkStrings(t *testing.T, path string, value any) {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for n, item := range v {
			checkStrings(t, fmt.Sprintf("%s[%d]", path, n), item)
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
					t.Errorf("%s.%s: %s is %v, want a string", path, key, name, text)
				}
			}
			checkStrings(t, path+"."+key, item)
		}
	}
}

// TestEveryReleaseNameMakesValidObjectNames renders releases with unusual names and
// overrides.
func TestEveryReleaseNameMakesValidObjectNames(t *testing.T) {
	long := strings.Repeat("a23456789-", 6)[:53]
	for name, test := range map[string]struct {
		release string
		set     string
		want    string
	}{
		"the name of the chart":            {"tunnel-gateway", "", "tunnel-gateway"},
		"a name without the chart's name":  {"edge", "", "edge-tunnel-gateway"},
		"a name that contains the chart's": {"my-tunnel-gateway", "", "my-tunnel-gateway"},
		"a name with dots":                 {"edge.west", "", "edge-west-tunnel-gateway"},
		"a name that begins with a digit":  {"1edge", "", "tunnel-gateway-1edge"},
		"a digit and the chart's name":     {"1-tunnel-gateway", "", "tunnel-gateway-1-tunnel-gateway"},
		"the longest possible name":        {long, "", long},
		"nameOverride":                     {"edge", "nameOverride=west", "edge-west"},
		"fullnameOverride":                 {"edge", "fullnameOverride=west", "west"},
		"a truncation after a hyphen":      {strings.Repeat("a", 52), "", strings.Repeat("a", 52)},
		"a truncation after two hyphens":   {strings.Repeat("a", 49), "nameOverride=b--c", strings.Repeat("a", 49) + "-b"},
	} {
		t.Run(name, func(t *testing.T) {
			all := renderRelease(t, test.release, namespace, "--set", test.set,
				"--set", "controller.namespaces={team-a},cloudflare.accountID="+account+",cloudflare.existingSecret=cloudflare",
				"--set", "metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true")
			if got := onlyObject(t, all, "Deployment").metadata()["name"]; got != test.want {
				t.Errorf("the name of the Deployment is %v, want %s", got, test.want)
			}
			for _, o := range all {
				valid := validation.IsDNS1123Subdomain
				if o["kind"] == "Service" {
					valid = validation.IsDNS1035Label
				}
				if errs := valid(o.metadata()["name"].(string)); len(errs) > 0 {
					t.Errorf("%s: %v", o.id(), errs)
				}
				for label, value := range childMap(o.metadata(), "labels") {
					if errs := validation.IsValidLabelValue(value.(string)); len(errs) > 0 {
						t.Errorf("%s: label %s: %v", o.id(), label, errs)
					}
				}
			}
			if errs := validation.IsDNS1123Subdomain(controllerFlag(t, all, "leader-election-id")); len(errs) > 0 {
				t.Errorf("the name of the Lease is invalid: %v", errs)
			}
		})
	}
}

// TestReleasesDoNotShareALease checks that each release in a namespace has its own
// Lease, and that its Role permits exactly this Lease.
func TestReleasesDoNotShareALease(t *testing.T) {
	leases := map[string]string{}
	for _, name := range []string{"tunnel-gateway", "edge", "west.edge"} {
		all := renderRelease(t, name, namespace)
		lease := controllerFlag(t, all, "leader-election-id")
		if other, exists := leases[lease]; exists {
			t.Errorf("releases %s and %s share Lease %s", name, other, lease)
		}
		leases[lease] = name
		if diff := cmp.Diff([]any{lease}, leaseNames(all)); diff != "" {
			t.Errorf("the Role of release %s names another Lease (-flag +role):\n%s", name, diff)
		}
	}
	if leases["tunnel-gateway.tunnelgateway.dev"] != "tunnel-gateway" {
		t.Errorf("the Leases are %v", leases)
	}
}

// leaseNames returns all resourceNames in the Roles. Only the rules for Leases have some.
func leaseNames(all []object) []any {
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

// namespacesGranting returns the sorted namespaces in which a release may use a
// verb on a resource. "*" means all namespaces.
func namespacesGranting(all []object, resource, verb string) []string {
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

// TestSecretsAreReadOnlyWhereCertificatesAreChecked checks the namespaces in which
// the roles grant access to Secrets. The controller also needs the Secrets in its
// own namespace.
func TestSecretsAreReadOnlyWhereCertificatesAreChecked(t *testing.T) {
	for set, want := range map[string][]string{
		"":                                 {"*"},
		"certificates.validate=false":      {namespace},
		"certificates.namespaces={team-a}": {"team-a", namespace},
		"controller.namespaces={a,b}":      {"a", "b", namespace},
		"controller.namespaces={a,b},certificates.namespaces={a}": {"a", namespace},
		"controller.namespaces={a,b},certificates.validate=false": {namespace},
		"certificates.namespaces={" + namespace + "}":             {namespace},
	} {
		all := renderRelease(t, release, namespace, "--set", set)
		if diff := cmp.Diff(want, namespacesGranting(all, "secrets", "get")); diff != "" {
			t.Errorf("with %q, the namespaces in which Secrets can be read differ (-want +got):\n%s", set, diff)
		}
		if diff := cmp.Diff([]string{namespace}, namespacesGranting(all, "secrets", "patch")); diff != "" {
			t.Errorf("with %q, the namespaces in which Secrets can be written differ (-want +got):\n%s", set, diff)
		}
	}
}

// TestReleasesInTwoNamespacesShareNoObject renders releases with the same name in several
// namespaces. If two of them contained the same object, `kubectl apply` for one release
// would overwrite the other release's object. The test omits the CRDs and names the
// GatewayClasses, because these names do not depend on the release.
func TestReleasesInTwoNamespacesShareNoObject(t *testing.T) {
	for name, set := range map[string]string{
		"releases for all namespaces":                      "crds.install=false",
		"releases for the same namespace":                  "crds.install=false,controller.namespaces={team-a},cloudflare.accountID=" + account + ",cloudflare.existingSecret=cloudflare",
		"releases that check certificates in the same one": "crds.install=false,certificates.namespaces={team-a,tunnel}",
		"releases for each other's namespaces":             "crds.install=false,controller.namespaces={tunnel,gateway}",
	} {
		t.Run(name, func(t *testing.T) {
			owners := map[string]string{}
			// The release name, and parts of it.
			for _, namespace := range []string{"tunnel-gateway", "tunnel", "gateway", "default"} {
				for _, o := range renderRelease(t, release, namespace, "--set", set+",gatewayClass.name="+namespace) {
					if other, exists := owners[o.id()]; exists {
						t.Errorf("the releases in %s and %s share %s", other, namespace, o.id())
					}
					owners[o.id()] = namespace
				}
			}
		})
	}
}

// TestNameOverrideKeepsSelectors checks that nameOverride changes no selector: a
// Deployment's selector is immutable.
func TestNameOverrideKeepsSelectors(t *testing.T) {
	selectors := func(arguments ...string) map[string]any {
		found := map[string]any{}
		for _, o := range objects(t, render(t, append(arguments, "--set", "metrics.serviceMonitor.enabled=true")...)) {
			for _, field := range []string{"selector", "podSelector"} {
				if selector, ok := childMap(o, "spec")[field]; ok {
					found[fmt.Sprint(o["kind"])] = selector
				}
			}
		}
		return found
	}
	before := selectors()
	if len(before) != 5 {
		t.Errorf("%d objects with a selector, want 5: %v", len(before), before)
	}
	if diff := cmp.Diff(before, selectors("--set", "nameOverride=edge")); diff != "" {
		t.Errorf("nameOverride changes a selector (-before +after):\n%s", diff)
	}
}
