package state_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// configurationManifests contains Gateways with a TunnelConfiguration for the
// GatewayClass and the Gateway, for the GatewayClass only, without one, and with
// references that do not resolve.
const configurationManifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: set}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: platform, name: both}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: plain}
spec: {controllerName: tunnelgateway.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: without-namespace}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: both}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: both, namespace: infra}
spec:
  gatewayClassName: set
  infrastructure: {parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: both}}
  listeners: [{name: a, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: class-only, namespace: infra}
spec: {gatewayClassName: set, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: none, namespace: infra}
spec: {gatewayClassName: plain, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other-kind, namespace: infra}
spec:
  gatewayClassName: without-namespace
  infrastructure: {parametersRef: {group: example.com, kind: TunnelConfiguration, name: both}}
  listeners: [{name: a, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: missing, namespace: elsewhere}
spec:
  gatewayClassName: plain
  infrastructure: {parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: both}}
  listeners: [{name: a, port: 80, protocol: HTTP}]
---
{apiVersion: tunnelgateway.dev/v1alpha1, kind: TunnelConfiguration, metadata: {name: both, namespace: platform}}
---
{apiVersion: tunnelgateway.dev/v1alpha1, kind: TunnelConfiguration, metadata: {name: both, namespace: infra}}
`

func TestLoadReadsTheConfigurationsOfClassAndGateway(t *testing.T) {
	loader := state.Loader{Reader: memory(t, objects(t, configurationManifests)), ControllerName: controllerName}
	for name, test := range map[string]struct {
		key            state.Key
		class, gateway string
	}{
		"class and Gateway":           {state.GatewayKey("infra", "both"), "platform/both", "infra/both"},
		"class only":                  {state.GatewayKey("infra", "class-only"), "platform/both", ""},
		"no reference":                {state.GatewayKey("infra", "none"), "", ""},
		"invalid references":          {state.GatewayKey("infra", "other-kind"), "", ""},
		"missing TunnelConfiguration": {state.GatewayKey("elsewhere", "missing"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := loader.Load(t.Context(), test.key)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{nameOf(loaded.Snapshot.ClassConfiguration), nameOf(loaded.Snapshot.GatewayConfiguration)}
			if diff := cmp.Diff([]string{test.class, test.gateway}, got); diff != "" {
				t.Errorf("configurations of class and Gateway differ (-want +got):\n%s", diff)
			}
		})
	}
}

func nameOf(c *v1alpha1.TunnelConfiguration) string {
	if c == nil {
		return ""
	}
	return client.ObjectKeyFromObject(c).String()
}

func TestIndexParametersFindsClassesAndGateways(t *testing.T) {
	// The index contains exactly the objects that refer to a TunnelConfiguration.
	reader := memory(t, objects(t, configurationManifests))
	for configuration, want := range map[string][]string{
		"platform/both":  {"/set"},
		"infra/both":     {"infra/both"},
		"elsewhere/both": {"elsewhere/missing"},
		"infra/none":     nil,
	} {
		var got []string
		for _, list := range []client.ObjectList{&gatewayv1.GatewayClassList{}, &gatewayv1.GatewayList{}} {
			if err := reader.List(t.Context(), list, client.MatchingFields{state.IndexParameters: configuration}); err != nil {
				t.Fatal(err)
			}
			got = append(got, names(list)...)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("objects that refer to %s differ (-want +got):\n%s", configuration, diff)
		}
	}
}

func names(list client.ObjectList) []string {
	var all []string
	switch l := list.(type) {
	case *gatewayv1.GatewayClassList:
		for i := range l.Items {
			all = append(all, client.ObjectKeyFromObject(&l.Items[i]).String())
		}
	case *gatewayv1.GatewayList:
		for i := range l.Items {
			all = append(all, client.ObjectKeyFromObject(&l.Items[i]).String())
		}
	}
	return all
}

func TestLoadReturnsErrorsOfReadingConfigurations(t *testing.T) {
	// A read error must not look like a reference that does not resolve.
	for _, unreadable := range []string{"platform/both", "infra/both"} {
		reader := failingReader{memory(t, objects(t, configurationManifests)), func(key client.ObjectKey, object any) bool {
			_, settings := object.(*v1alpha1.TunnelConfiguration)
			return settings && key.String() == unreadable
		}}
		_, err := state.Loader{Reader: reader, CABundles: state.DirectCABundles{Reader: reader}, ControllerName: controllerName}.Load(t.Context(), state.GatewayKey("infra", "both"))
		if !errors.Is(err, errRead) {
			t.Errorf("with unreadable %s: got %v, want %v", unreadable, err, errRead)
		}
	}
}
