package plan_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// importManifests make the ServiceImport v1 a backend beside the Service with this name. spec is
// a part of its spec.
func importManifests(spec string) []string {
	const service = "{apiVersion: v1, kind: Service, metadata: {name: v1, namespace: infra}"
	return []string{
		"  - backendRefs: [{name: v1, port: 8080}]", "  - backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: v1, port: 8080}]",
		service, `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: v1, namespace: infra}
spec: {` + spec + `, ports: [{port: 8080, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: east, namespace: infra, labels: {multicluster.kubernetes.io/service-name: v1}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [{addresses: [192.0.2.31]}]
---
` + service,
	}
}

// An explanation of a ServiceImport names its own endpoints, and none if Envoy connects to its
// addresses.
func TestExplanationNamesEndpointsOfServiceImports(t *testing.T) {
	request := routing.Request{Host: "admin.example.com", Path: "/"}
	for spec, want := range map[string]string{"type: Headless": "192.0.2.31:8080", "type: ClusterSetIP, ips: [10.42.0.1]": ""} {
		source := read(t, envoyManifests(t, importManifests(spec)...), "-")
		p := buildPlan(t, source, now)
		if err := p.ReadEndpoints(t.Context(), source, request); err != nil {
			t.Fatal(err)
		}
		got := ""
		if found := p.Explain(request).Traces[0].Answer.Backends[0].Endpoints; found != nil {
			got = strings.Join(found.Ready, " ")
		}
		if got != want {
			t.Errorf("%s: the ready endpoints are %q, want %q", spec, got, want)
		}
	}
}

// An explanation names the ClusterIP if Envoy connects to it, and the pods behind it.
func TestExplanationNamesEndpoints(t *testing.T) {
	request := routing.Request{Host: "admin.example.com", Path: "/"}
	for name, test := range map[string]struct {
		replaced   []string
		text, json string
	}{
		"pods": {nil, "\n  ready endpoints: 192.0.2.21:8080\n  terminating endpoints: 192.0.2.22:8080\n  endpoints that are not ready: 192.0.2.23:8080\n", `"endpoints":{"ready":["192.0.2.21:8080"],"terminating":["192.0.2.22:8080"],"unready":["192.0.2.23:8080"]}`},
		"a ClusterIP": {
			[]string{"clusterIP: 192.0.2.11,", "clusterIP: 192.0.2.11, internalTrafficPolicy: Local,"},
			"\n  Envoy connects to the ClusterIP 192.0.2.11\n  ready endpoints: 192.0.2.21:8080\n", `"clusterIP":"192.0.2.11","endpoints":{"ready":["192.0.2.21:8080"]`,
		},
		"backends Service": {
			[]string{"dataPlane: Envoy", "dataPlane: Envoy\n  connector: {envoy: {backends: Service}}"},
			"\n  Envoy connects to the ClusterIP 192.0.2.11\n", `"clusterIP":"192.0.2.11"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := read(t, envoyManifests(t, test.replaced...), "-")
			p := buildPlan(t, source, now)
			if err := p.ReadEndpoints(t.Context(), source, request); err != nil {
				t.Fatal(err)
			}
			e := p.Explain(request)
			var text bytes.Buffer
			if err := e.WriteTable(&text, plan.Style{}); err != nil {
				t.Fatal(err)
			}
			encoded, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), test.text) || !strings.Contains(string(encoded), test.json) {
				t.Errorf("the explanation does not contain %q and %s:\n%s\n%s", test.text, test.json, text.String(), encoded)
			}
		})
	}
}
