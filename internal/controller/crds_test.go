package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"
)

func TestMissingOrUnsupportedGatewayCRDsAreReported(t *testing.T) {
	installed := map[string]string{}
	for _, name := range gatewayCRDs {
		installed[name] = "v1.6.3"
	}
	set := func(kind, version string) map[string]string {
		changed := maps.Clone(installed)
		changed[kind+"."+gatewayv1.GroupName] = version
		return changed
	}
	incomplete := maps.Clone(installed)
	delete(incomplete, "listenersets.gateway.networking.k8s.io")
	delete(incomplete, "grpcroutes.gateway.networking.k8s.io")
	for name, test := range map[string]struct {
		versions map[string]string
		want     []string // contained in the error; empty for no error
	}{
		"all CRDs are installed":               {installed, nil},
		"the minimum version":                  {set("gateways", "v1.5.0"), nil},
		"a newer version":                      {set("gateways", "v1.7.0"), nil},
		"a CRD without a version":              {set("gateways", ""), nil},
		"a CRD with an invalid version":        {set("gateways", "main"), nil},
		"an outdated CRD":                      {set("gateways", "v1.4.1"), []string{"gateways.gateway.networking.k8s.io has version v1.4.1"}},
		"a pre-release of the minimum version": {set("gateways", "v1.5.0-rc.1"), []string{"v1.5.0-rc.1"}},
		"two missing CRDs":                     {incomplete, []string{"listenersets.gateway.networking.k8s.io is missing", "grpcroutes.gateway.networking.k8s.io is missing"}},
		"no CRDs":                              {nil, []string{"gatewayclasses", "gateways", "listenersets", "httproutes", "grpcroutes", "referencegrants", "v1.5 or v1.6"}},
		"a CRD of another group":               {map[string]string{"gateways.example.com": "v1.6.3"}, []string{"gateways.gateway.networking.k8s.io is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checkGatewayCRDs(test.versions)
			checkError(t, err, test.want)
		})
	}
}

// The channel of the HTTPRoute CRD decides whether routes can have retries.
func TestChannelOfRoutes(t *testing.T) {
	for _, test := range []struct {
		name, channel string
		want          bool
	}{
		{"httproutes.gateway.networking.k8s.io", "experimental", true},
		{"httproutes.gateway.networking.k8s.io", "standard", false},
		{"httproutes.gateway.networking.k8s.io", "", false},
		{"gateways.gateway.networking.k8s.io", "experimental", false},
	} {
		crd := &metav1.PartialObjectMetadata{}
		crd.Name, crd.Annotations = test.name, map[string]string{consts.ChannelAnnotation: test.channel}
		if got := hasExperimentalRoutes(crd); got != test.want {
			t.Errorf("%s of the channel %q: %t, want %t", test.name, test.channel, got, test.want)
		}
	}
}

func TestGatewayCRDsWithoutAVersionAreAccepted(t *testing.T) {
	versions := map[string]string{}
	for _, name := range gatewayCRDs {
		versions[name] = "v1.6.3"
	}
	versions["gateways.gateway.networking.k8s.io"], versions["httproutes.gateway.networking.k8s.io"] = "", "main"
	unversioned, err := checkGatewayCRDs(versions)
	want := []string{"gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io"}
	if err != nil || !slices.Equal(unversioned, want) {
		t.Errorf("got %q, %v, want %q and no error", unversioned, err, want)
	}
}

func TestMissingOrOutdatedControllerCRDsAreReported(t *testing.T) {
	const configurations, tunnels, policies = "tunnelconfigurations.tunnelgateway.dev", "tunnels.tunnelgateway.dev", "accesspolicies.tunnelgateway.dev"
	required := map[string]string{configurations: "v0.2.0", tunnels: "v0.2.0", policies: "v0.2.0"}
	for name, test := range map[string]struct {
		installed map[string]string
		want      []string // contained in the error; empty for no error
	}{
		"the required versions":                 {required, nil},
		"newer versions":                        {map[string]string{configurations: "v0.10.0", tunnels: "v0.3.0"}, nil},
		"an outdated CRD":                       {map[string]string{configurations: "v0.1.9", tunnels: "v0.2.0"}, []string{configurations + " has version v0.1.9", "v0.2.0", "kubectl apply"}},
		"another outdated CRD":                  {map[string]string{configurations: "v0.2.0", tunnels: "v0.1.9"}, []string{tunnels + " has version v0.1.9"}},
		"a pre-release of the required version": {map[string]string{configurations: "v0.2.0-rc.1", tunnels: "v0.2.0"}, []string{"v0.2.0-rc.1"}},
		"a CRD without a version":               {map[string]string{configurations: "", tunnels: "v0.2.0"}, []string{configurations, "v0.2.0", "tunnelgateway.dev/bundle-version", "kubectl apply"}},
		"a missing CRD":                         {map[string]string{configurations: "v0.2.0"}, []string{tunnels + " is missing", "kubectl apply"}},
		"a missing CRD of AccessPolicies":       {map[string]string{configurations: "v0.2.0", tunnels: "v0.2.0"}, nil},
		"an outdated CRD of AccessPolicies":     {map[string]string{configurations: "v0.2.0", tunnels: "v0.2.0", policies: "v0.1.9"}, []string{policies + " has version v0.1.9"}},
		"two missing CRDs":                      {map[string]string{"tunnels.example.com": "v0.2.0"}, []string{configurations + " is missing", tunnels + " is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			checkError(t, checkControllerCRDs(test.installed, required), test.want)
		})
	}
}

func TestControllerCRDsHaveVersions(t *testing.T) {
	// A built-in CRD without a version would make the check accept every installed version.
	required, err := requiredVersions()
	if err != nil || len(required) != len(controllerCRDs) {
		t.Errorf("got %d CRDs, %v, want %d", len(required), err, len(controllerCRDs))
	}
	for _, name := range controllerCRDs {
		if !semver.IsValid(required[name]) {
			t.Errorf("CRD %s has the invalid version %q", name, required[name])
		}
	}
}

// checkError checks that the error contains the wanted texts, or that it is nil if there
// are none.
func checkError(t *testing.T, err error, substrings []string) {
	t.Helper()
	if (err == nil) != (len(substrings) == 0) {
		t.Fatalf("got %v, want an error with %q", err, substrings)
	}
	for _, want := range substrings {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
}
