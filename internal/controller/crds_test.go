package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

func TestCheckGatewayCRDs(t *testing.T) {
	installed := map[string]string{}
	for _, kind := range gatewayCRDs {
		installed[kind+"."+gatewayv1.GroupName] = "v1.6.3"
	}
	set := func(kind, version string) map[string]string {
		changed := maps.Clone(installed)
		changed[kind+"."+gatewayv1.GroupName] = version
		return changed
	}
	without := maps.Clone(installed)
	delete(without, "listenersets.gateway.networking.k8s.io")
	delete(without, "grpcroutes.gateway.networking.k8s.io")
	for name, test := range map[string]struct {
		versions map[string]string
		want     []string // in the error; none for no error
	}{
		"all are installed":        {installed, nil},
		"the oldest supported":     {set("gateways", "v1.5.0"), nil},
		"newer than the known":     {set("gateways", "v1.7.0"), nil},
		"one without a version":    {set("gateways", ""), nil},
		"one with another version": {set("gateways", "main"), nil},
		"one is too old":           {set("gateways", "v1.4.1"), []string{"gateways.gateway.networking.k8s.io has version v1.4.1"}},
		"older than its number":    {set("gateways", "v1.5.0-rc.1"), []string{"v1.5.0-rc.1"}},
		"two are missing":          {without, []string{"listenersets.gateway.networking.k8s.io is missing", "grpcroutes.gateway.networking.k8s.io is missing"}},
		"none is installed":        {nil, []string{"gatewayclasses", "gateways", "listenersets", "httproutes", "grpcroutes", "referencegrants", "v1.5 or v1.6"}},
		"one of another group":     {map[string]string{"gateways.example.com": "v1.6.3"}, []string{"gateways.gateway.networking.k8s.io is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checkGatewayCRDs(test.versions)
			checkError(t, err, test.want)
		})
	}
}

func TestGatewayCRDsWithoutAVersionAreAccepted(t *testing.T) {
	versions := map[string]string{}
	for _, kind := range gatewayCRDs {
		versions[kind+"."+gatewayv1.GroupName] = "v1.6.3"
	}
	versions["gateways.gateway.networking.k8s.io"], versions["httproutes.gateway.networking.k8s.io"] = "", "main"
	unknown, err := checkGatewayCRDs(versions)
	want := []string{"gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io"}
	if err != nil || !slices.Equal(unknown, want) {
		t.Errorf("got %q, %v, want %q and no error", unknown, err, want)
	}
}

func TestCheckControllerCRDs(t *testing.T) {
	const settings, tunnels = "tunnelconfigurations.tunnelgateway.dev", "tunnels.tunnelgateway.dev"
	known := map[string]string{settings: "v0.2.0", tunnels: "v0.2.0"}
	for what, test := range map[string]struct {
		installed map[string]string
		want      []string // in the error; none for no error
	}{
		"the same":          {known, nil},
		"newer":             {map[string]string{settings: "v0.10.0", tunnels: "v0.3.0"}, nil},
		"older":             {map[string]string{settings: "v0.1.9", tunnels: "v0.2.0"}, []string{settings + " has version v0.1.9", "v0.2.0", "kubectl apply"}},
		"one of them older": {map[string]string{settings: "v0.2.0", tunnels: "v0.1.9"}, []string{tunnels + " has version v0.1.9"}},
		"older, a preview":  {map[string]string{settings: "v0.2.0-rc.1", tunnels: "v0.2.0"}, []string{"v0.2.0-rc.1"}},
		"without a version": {map[string]string{settings: "", tunnels: "v0.2.0"}, []string{settings, "v0.2.0", "tunnelgateway.dev/bundle-version", "kubectl apply"}},
		"one is missing":    {map[string]string{settings: "v0.2.0"}, []string{tunnels + " is missing", "kubectl apply"}},
		"both are missing":  {map[string]string{"tunnels.example.com": "v0.2.0"}, []string{settings + " is missing", tunnels + " is missing"}},
	} {
		t.Run(what, func(t *testing.T) {
			checkError(t, checkControllerCRDs(test.installed, known), test.want)
		})
	}
}

// Without a version of its own, a CRD would pass the check in every version.
func TestControllerCRDsHaveVersions(t *testing.T) {
	known, err := requiredVersions()
	if err != nil || len(known) != len(controllerCRDs) {
		t.Errorf("got %d CRDs, %v, want %d", len(known), err, len(controllerCRDs))
	}
	for _, kind := range controllerCRDs {
		if name := kind + "." + v1alpha1.GroupName; !semver.IsValid(known[name]) {
			t.Errorf("CRD %s has version %q", name, known[name])
		}
	}
}

// checkError fails unless the error contains what is wanted, or there is none when
// nothing is.
func checkError(t *testing.T, err error, wanted []string) {
	t.Helper()
	if (err == nil) != (len(wanted) == 0) {
		t.Fatalf("got %v, want an error with %q", err, wanted)
	}
	for _, want := range wanted {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
}
