package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

func TestCheckGatewayCRDs(t *testing.T) {
	installed := map[string]string{}
	for _, kind := range gatewayKinds {
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
		want     []string // of the error; none for no error
	}{
		"all are there":             {installed, nil},
		"the oldest that will do":   {set("gateways", "v1.5.0"), nil},
		"newer than what we know":   {set("gateways", "v1.7.0"), nil},
		"one that says no version":  {set("gateways", ""), nil},
		"one that says nonsense":    {set("gateways", "main"), nil},
		"one is too old":            {set("gateways", "v1.4.1"), []string{"gateways.gateway.networking.k8s.io is of version v1.4.1"}},
		"older than its number":     {set("gateways", "v1.5.0-rc.1"), []string{"v1.5.0-rc.1"}},
		"two are missing":           {without, []string{"listenersets.gateway.networking.k8s.io is missing", "grpcroutes.gateway.networking.k8s.io is missing"}},
		"none is there":             {nil, []string{"gatewayclasses", "gateways", "listenersets", "httproutes", "grpcroutes", "referencegrants", "v1.5 or v1.6"}},
		"another group's of a name": {map[string]string{"gateways.example.com": "v1.6.3"}, []string{"gateways.gateway.networking.k8s.io is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checkGatewayCRDs(test.versions)
			if len(test.want) == 0 && err != nil || len(test.want) > 0 && err == nil {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestGatewayCRDsOfNoVersion(t *testing.T) {
	versions := map[string]string{}
	for _, kind := range gatewayKinds {
		versions[kind+"."+gatewayv1.GroupName] = "v1.6.3"
	}
	versions["gateways.gateway.networking.k8s.io"], versions["httproutes.gateway.networking.k8s.io"] = "", "main"
	unknown, err := checkGatewayCRDs(versions)
	want := []string{"gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io"}
	if err != nil || !slices.Equal(unknown, want) {
		t.Errorf("got %q, %v, want %q and no error", unknown, err, want)
	}
}

func TestCheckOwnCRD(t *testing.T) {
	const name = "tunnelconfigurations.tunnelgateway.dev"
	for what, test := range map[string]struct {
		versions map[string]string
		want     []string // of the error; none for no error
	}{
		"the same":         {map[string]string{name: "v0.2.0"}, nil},
		"newer":            {map[string]string{name: "v0.10.0"}, nil},
		"older":            {map[string]string{name: "v0.1.9"}, []string{name, "v0.1.9", "v0.2.0", "kubectl apply"}},
		"older, a preview": {map[string]string{name: "v0.2.0-rc.1"}, []string{"v0.2.0-rc.1"}},
		"without version":  {map[string]string{name: ""}, []string{name, "v0.2.0", "tunnelgateway.dev/bundle-version", "kubectl apply"}},
		"missing":          {map[string]string{"tunnelconfigurations.example.com": "v0.2.0"}, []string{name + " is missing", "kubectl apply"}},
	} {
		t.Run(what, func(t *testing.T) {
			err := checkOwnCRD(test.versions, "v0.2.0")
			if (err == nil) != (len(test.want) == 0) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// The check would let everything pass without.
func TestOurCRDSaysItsVersion(t *testing.T) {
	if known, err := knownBundle(); err != nil || !semver.IsValid(known) {
		t.Errorf("got %q, %v, want a version", known, err)
	}
}
