package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnknownFieldsHaveASuggestion(t *testing.T) {
	const (
		app   = "in.yaml: document 1: HTTPRoute default/app: "
		rules = "{rules: [{backendRefs: [{name: web, port: 80}], "
		text  = ": Forbidden: unknown field"
	)
	for name, test := range map[string]struct{ text, want string }{
		"singular":                      {route("{parentRef: {name: shared}}"), app + "spec.parentRef" + text + "; did you mean parentRefs?"},
		"hostname of a route":           {route("{hostname: a.example.com}"), app + "spec.hostname" + text + "; did you mean hostnames?"},
		"letter in another case":        {route("{hostNames: [a.example.com]}"), app + "spec.hostNames" + text + "; did you mean hostnames?"},
		"swapped letters":               {route("{rules: [{macthes: []}]}"), app + "spec.rules[0].macthes" + text + "; did you mean matches?"},
		"beginning of a field":          {route("{rules: [{backend: web}]}"), app + "spec.rules[0].backend" + text + "; did you mean backendRefs?"},
		"field of the rules":            {route("{backendRefs: [{name: web, port: 80}]}"), app + "spec.backendRefs" + text + "; did you mean spec.rules[].backendRefs?"},
		"field of a route":              {route("{rules: [{hostnames: [a.example.com]}]}"), app + "spec.rules[0].hostnames" + text + "; did you mean spec.hostnames?"},
		"field of the matches":          {route(rules + "path: {value: /a}}]}"), app + "spec.rules[0].path" + text + "; did you mean spec.rules[].matches[].path?"},
		"field that several parts have": {route("{value: a}"), app + "spec.value" + text},
		"field that resembles none":     {route("{colour: a}"), app + "spec.colour" + text},
		"field of the spec": {"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: app}, spec: {}, parentRefs: [{name: shared}]}",
			app + "parentRefs" + text + "; did you mean spec.parentRefs?"},
		"labels of an object": {"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: app}, spec: {}, labels: {a: b}}", app + "labels" + text + "; did you mean metadata.labels?"},
		"metadata in a spec":  {route("{rules: [{labels: {a: b}}]}"), app + "spec.rules[0].labels" + text},
		"metadata":            {"{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: a, label: {}}, spec: {controllerName: a.example/b}}", "in.yaml: document 1: GatewayClass a: metadata.label" + text + "; did you mean labels?"},
		"core kind":           {service("{port: [{port: 80}]}"), "in.yaml: document 1: Service default/web: spec.port" + text + "; did you mean ports?"},
		"list in a core kind": {service("{ports: [{port: 80, target: 81}]}"), "in.yaml: document 1: Service default/web: spec.ports[0].target" + text + "; did you mean targetPort?"},
		"core metadata":       {"{apiVersion: v1, kind: Namespace, metadata: {name: a, label: {}}}", "in.yaml: document 1: Namespace a: metadata.label" + text + "; did you mean labels?"},
		"settings":            {"{apiVersion: tunnelgateway.dev/v1alpha1, kind: TunnelConfiguration, metadata: {name: a}, spec: {replicas: 2}}", "in.yaml: document 1: TunnelConfiguration default/a: spec.replicas" + text + "; did you mean spec.connector.replicas?"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseErrors(t, test.text); got[0] != test.want {
				t.Errorf("the first error differs (-want +got):\n%s", cmp.Diff(test.want, got[0]))
			}
		})
	}
}
