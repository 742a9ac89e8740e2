package controller

import (
	"maps"
	"strings"
	"testing"

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
			err := checkGatewayCRDs(test.versions)
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

func TestCheckOwnCRD(t *testing.T) {
	if err := checkOwnCRD(map[string]string{"tunnelconfigurations.tunnelgateway.dev": ""}); err != nil {
		t.Error(err)
	}
	if err := checkOwnCRD(nil); err == nil || !strings.Contains(err.Error(), "tunnelconfigurations.tunnelgateway.dev") {
		t.Errorf("got %v, want an error that names the CRD", err)
	}
}
