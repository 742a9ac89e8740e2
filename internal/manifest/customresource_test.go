package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// gateway returns a Gateway with the given listeners, in flow style.
func gateway(listeners string) string {
	return `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared}
spec: {gatewayClassName: cloudflare-tunnel, listeners: [` + listeners + `]}
`
}

// route returns an HTTPRoute with the given spec, in flow style.
func route(spec string) string {
	return `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: app}
spec: ` + spec + "\n"
}

func TestInvalidCustomResourcesAreRejected(t *testing.T) {
	const shared, app = "in.yaml: document 1: Gateway default/shared: ", "in.yaml: document 1: HTTPRoute default/app: "
	tests := map[string]struct {
		text string
		want []string
	}{
		"value out of range": {
			gateway("{name: a, port: 0, protocol: HTTP}"),
			[]string{shared + "spec.listeners[0].port: Invalid value: 0: spec.listeners[0].port in body should be greater than or equal to 1"},
		},
		"missing field": {
			gateway("{name: a, protocol: HTTP}"),
			[]string{shared + "spec.listeners[0].port: Required value"},
		},
		"wrong type": {
			gateway("{name: a, port: http, protocol: HTTP}"),
			[]string{shared + `spec.listeners[0].port: Invalid value: "string": spec.listeners[0].port in body must be of type integer: "string"`},
		},
		"field of the experimental channel": {
			route("{rules: [{retry: {attempts: 1}, x: 1}]}"),
			[]string{
				app + "spec.rules[0].retry: Forbidden: only the CRDs of the Gateway API's experimental channel have this field; if they are installed, use --experimental-crds",
				app + "spec.rules[0].x: Forbidden: unknown field",
			},
		},
		"unsupported value": {
			route("{rules: [{matches: [{path: {type: Glob, value: /}}]}]}"),
			[]string{app + `spec.rules[0].matches[0].path.type: Unsupported value: "Glob": supported values: "Exact", "PathPrefix", "RegularExpression"`},
		},
		"unknown fields, sorted": {
			gateway("{name: a, port: 80, protocol: HTTP, hostName: a.example}, {name: b, prot: HTTP, port: 81}") + "colour: blue\n",
			[]string{
				shared + "colour: Forbidden: unknown field",
				shared + "spec.listeners[0].hostName: Forbidden: unknown field; did you mean hostname?",
				shared + "spec.listeners[1].prot: Forbidden: unknown field; did you mean protocol?",
				shared + "spec.listeners[1].protocol: Required value",
			},
		},
		"unknown field in metadata": {
			"{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: a, nameSpace: b}, spec: {controllerName: a.example/b}}",
			[]string{"in.yaml: document 1: GatewayClass a: metadata.nameSpace: Forbidden: unknown field; did you mean namespace?"},
		},
		"hostname on a TCP listener": {
			gateway("{name: a, port: 80, protocol: TCP, hostname: a.example}"),
			[]string{shared + `spec.listeners: Invalid value: hostname must not be specified for protocols ['TCP', 'UDP']`},
		},
		"tls on an HTTP listener": {
			gateway("{name: a, port: 80, protocol: HTTP, tls: {certificateRefs: [{name: c}]}}"),
			[]string{shared + `spec.listeners: Invalid value: tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']`},
		},
		"errors without a path": {
			strings.Replace(gateway("{name: a, port: 80, protocol: HTTP}"), "listeners:", "addresses: [{type: IPAddress, value: 1.1.1}], listeners:", 1),
			[]string{
				shared + `"spec.addresses[0]" must validate one and only one schema (oneOf). Found none valid`,
				shared + `"spec.addresses[0].value" must validate at least one schema (anyOf)`,
				shared + `spec.addresses[0].value: Invalid value: "1.1.1": spec.addresses[0].value in body must be of type ipv4: "1.1.1"`,
			},
		},
		"duplicate key in a list": {
			gateway("{name: a, port: 80, protocol: HTTP}, {name: a, port: 81, protocol: HTTP}"),
			[]string{
				shared + `spec.listeners: Invalid value: Listener name must be unique within the Gateway`,
				shared + `spec.listeners[1]: Duplicate value: {"name":"a"}`,
			},
		},
		"invalid label": {
			"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: app, labels: {a: b c}}, spec: {}}",
			[]string{
				app + `metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345')`,
			},
		},
		"invalid status": {
			route("{}") + "status: {parents: [{controllerName: a.example/b}]}\n",
			[]string{
				app + "status.parents[0].conditions: Required value",
				app + "status.parents[0].parentRef: Required value",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseErrors(t, test.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCustomResourcesHaveTheDefaultsOfTheirSchema(t *testing.T) {
	got := parseOne[*gatewayv1.HTTPRoute](t, route("{parentRefs: [{name: shared}], rules: [{backendRefs: [{name: web, port: 80}]}]}"))
	want := gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
			Group: ptr.To(gatewayv1.Group(gatewayv1.GroupName)), Kind: ptr.To(gatewayv1.Kind("Gateway")), Name: "shared",
		}}},
		Rules: []gatewayv1.HTTPRouteRule{{
			Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
				Type: ptr.To(gatewayv1.PathMatchPathPrefix), Value: ptr.To("/"),
			}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{
					Group: ptr.To(gatewayv1.Group("")), Kind: ptr.To(gatewayv1.Kind("Service")), Name: "web", Port: ptr.To(gatewayv1.PortNumber(80)),
				},
				Weight: ptr.To(int32(1)),
			}}},
		}},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Error(diff)
	}
	if want := (metav1.TypeMeta{APIVersion: "gateway.networking.k8s.io/v1", Kind: "HTTPRoute"}); got.TypeMeta != want {
		t.Errorf("TypeMeta = %v, want %v", got.TypeMeta, want)
	}
}

func TestStatusOfTheManifestReplacesTheDefault(t *testing.T) {
	listener := gateway("{name: a, port: 80, protocol: HTTP}")
	defaulted := parseOne[*gatewayv1.Gateway](t, listener)
	if len(defaulted.Status.Conditions) != 2 || defaulted.Status.Conditions[0].Status != "Unknown" {
		t.Errorf("conditions = %v, want Accepted and Programmed with status Unknown", defaulted.Status.Conditions)
	}
	given := parseOne[*gatewayv1.Gateway](t, listener+`status:
  attachedListenerSets: 3
  conditions:
  - {type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 7}
`)
	if len(given.Status.Conditions) != 1 || given.Status.Conditions[0].ObservedGeneration != 7 {
		t.Errorf("conditions = %v, want the condition of the manifest", given.Status.Conditions)
	}
}

// TestServedVersionsDecodeAlike reads each kind that has an older version in both
// versions.
func TestServedVersionsDecodeAlike(t *testing.T) {
	tests := map[string]struct {
		text string
		want client.Object
	}{
		"GatewayClass":   {"spec: {controllerName: a.example/b}", &gatewayv1.GatewayClass{}},
		"Gateway":        {"spec: {gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP}]}", &gatewayv1.Gateway{}},
		"HTTPRoute":      {"spec: {rules: [{}]}", &gatewayv1.HTTPRoute{}},
		"ReferenceGrant": {`spec: {from: [{group: "", kind: A, namespace: b}], to: [{group: "", kind: C}]}`, &gatewayv1beta1.ReferenceGrant{}},
	}
	for kind, test := range tests {
		t.Run(kind, func(t *testing.T) {
			read := func(version string) client.Object {
				return parseOne[client.Object](t, "apiVersion: gateway.networking.k8s.io/"+version+"\nkind: "+kind+"\nmetadata: {name: a}\n"+test.text)
			}
			older, newer := read("v1beta1"), read("v1")
			if diff := cmp.Diff(newer, older); diff != "" {
				t.Error(diff)
			}
			if got, err := newObject(newer.GetObjectKind().GroupVersionKind()); err != nil || cmp.Diff(test.want, got) != "" {
				t.Errorf("newObject = %T, %v; want %T", got, err, test.want)
			}
		})
	}
}

// TestServedVersionsHaveOneSchema checks the assumption that allows validating a
// manifest in any served version with the stored version's schema.
func TestServedVersionsHaveOneSchema(t *testing.T) {
	crds, err := CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		if crd.Spec.Conversion != nil {
			t.Errorf("%s has the conversion strategy %s, want none", crd.Name, crd.Spec.Conversion.Strategy)
		}
		var first *apiextensionsv1.CustomResourceDefinitionVersion
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			if first == nil {
				first = &version
			}
			if diff := cmp.Diff(schemaWithoutDescriptions(t, first), schemaWithoutDescriptions(t, &version)); diff != "" {
				t.Errorf("%s: %s and %s differ: %s", crd.Name, first.Name, version.Name, diff)
			}
		}
	}
}

func schemaWithoutDescriptions(t *testing.T, version *apiextensionsv1.CustomResourceDefinitionVersion) any {
	t.Helper()
	data, err := json.Marshal(version.Schema)
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	return withoutDescriptions(schema)
}

// withoutDescriptions removes all descriptions from schema.
func withoutDescriptions(schema any) any {
	switch schema := schema.(type) {
	case map[string]any:
		if _, isText := schema["description"].(string); isText {
			delete(schema, "description")
		}
		for name, value := range schema {
			schema[name] = withoutDescriptions(value)
		}
	case []any:
		for i, value := range schema {
			schema[i] = withoutDescriptions(value)
		}
	}
	return schema
}

func TestCRDsAreCompleteAndSorted(t *testing.T) {
	crds, err := CRDs()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("crds/*.yaml")
	if err != nil || len(files) == 0 || len(files)+3 != len(crds) {
		t.Errorf("got %d definitions (%v), want %d files of the Gateway API, AccessPolicy, TunnelConfiguration and Tunnel", len(crds), err, len(files))
	}
	if !slices.IsSortedFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the definitions are not sorted by name")
	}
	for _, crd := range crds {
		if crd.Spec.Group == v1alpha1.GroupName {
			continue
		}
		if got := crd.Annotations[consts.BundleVersionAnnotation]; got != consts.BundleVersion {
			t.Errorf("%s: bundle version = %q, want %q", crd.Name, got, consts.BundleVersion)
		}
		if got := crd.Annotations[consts.ChannelAnnotation]; got != "standard" {
			t.Errorf("%s: channel = %q, want standard", crd.Name, got)
		}
	}
}

// TestOutputOfKubectlIsParsed parses what kubectl get -o yaml prints.
func TestOutputOfKubectlIsParsed(t *testing.T) {
	data, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set := parse(t, string(data))
	want := []string{
		"GatewayClass cloudflare-tunnel", "Gateway infra/shared", "HTTPRoute team-a/app",
		"Namespace team-a", "Service team-a/web", "Secret team-a/tls", "EndpointSlice team-a/web-abc12", "ConfigMap team-a/kube-root-ca.crt",
	}
	if diff := cmp.Diff(want, names(set)); diff != "" {
		t.Error(diff)
	}
	gateway := set.Objects[1].(*gatewayv1.Gateway)
	if gateway.Generation != 2 || gateway.UID == "" || gateway.CreationTimestamp.IsZero() || len(gateway.ManagedFields) == 0 {
		t.Errorf("the metadata is not complete: %v", gateway.ObjectMeta)
	}
}
