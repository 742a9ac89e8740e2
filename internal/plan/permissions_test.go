package plan_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// restricted is an API server for user "jane" with some permissions.
type restricted struct {
	mutex sync.Mutex // for the requests
	*state.Memory
	// permits are the permitted requests, such as "list HTTPRoute team-a" and
	// "get Gateway infra/shared". "view team-a" permits every request in the namespace.
	permits []string
	// requests are all requests.
	requests []string
}

func (r *restricted) check(verb, kind, namespace, name string) error {
	request := strings.TrimSuffix(strings.TrimSpace(verb+" "+kind+" "+namespace+"/"+name), "/")
	if namespace == "" {
		request = strings.TrimSpace(verb + " " + kind + " " + name)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests = append(r.requests, request)
	viewed := namespace
	if kind == "Namespace" {
		viewed = name
	}
	if slices.Contains(r.permits, request) || viewed != "" && slices.Contains(r.permits, "view "+viewed) {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind)}, name, fmt.Errorf("User %q cannot %s", "jane", request))
}

func (r *restricted) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if err := r.check("get", state.KindOf(object), key.Namespace, key.Name); err != nil {
		return err
	}
	return r.Memory.Get(ctx, key, object, opts...)
}

func (r *restricted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	kind := strings.TrimSuffix(fmt.Sprintf("%T", list)[strings.LastIndex(fmt.Sprintf("%T", list), ".")+1:], "List")
	if page, ok := list.(*unstructured.UnstructuredList); ok {
		kind = strings.TrimSuffix(page.GetKind(), "List")
	}
	if err := r.check("list", kind, o.Namespace, ""); err != nil {
		return err
	}
	if _, ok := list.(*unstructured.UnstructuredList); ok {
		return apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	return r.Memory.List(ctx, list, client.InNamespace(o.Namespace))
}

// platform is what a team does not own: the Gateway, its class and another team's objects.
const platform = `
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: tunnel}, spec: {controllerName: tunnelgateway.dev/controller, parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: tunnel-gateway, name: defaults}}}
---
{apiVersion: tunnelgateway.dev/v1alpha1, kind: TunnelConfiguration, metadata: {name: defaults, namespace: tunnel-gateway}, spec: {dataPlane: Envoy}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: shared, namespace: infra}, spec: {gatewayClassName: tunnel, allowedListeners: {namespaces: {from: All}}, listeners: [{name: home, hostname: home.example.com, port: 80, protocol: HTTP}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {name: b, namespace: team-b, creationTimestamp: "2020-01-01T00:00:00Z"}, spec: {parentRef: {name: shared, namespace: infra}, listeners: [{name: web, hostname: taken.example.com, port: 80, protocol: HTTP}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: api, namespace: payments}, spec: {clusterIP: 192.0.2.7, ports: [{port: 8080}]}}
---
`

// team is what the team owns, with the statuses that the controller has written.
const team = `
{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: a, namespace: team-a, generation: 3, creationTimestamp: "2021-01-01T00:00:00Z"}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners:
  - {name: web, hostname: a.example.com, port: 80, protocol: HTTP}
  - {name: taken, hostname: taken.example.com, port: 80, protocol: HTTP}
status:
  conditions:
  - {type: Accepted, status: "True", reason: Accepted, message: fine, observedGeneration: 3, lastTransitionTime: "2021-01-01T00:00:00Z"}
  listeners:
  - name: web
    attachedRoutes: 1
    supportedKinds: []
    conditions:
    - {type: Accepted, status: "True", reason: Accepted, message: fine, observedGeneration: 3, lastTransitionTime: "2021-01-01T00:00:00Z"}
    - {type: Programmed, status: "True", reason: Programmed, message: fine, observedGeneration: 3, lastTransitionTime: "2021-01-01T00:00:00Z"}
  - name: taken
    attachedRoutes: 0
    supportedKinds: []
    conditions:
    - {type: Accepted, status: "False", reason: HostnameConflict, message: "Hostname \"taken.example.com\" on port 80 is already claimed by another ListenerSet.", observedGeneration: 3, lastTransitionTime: "2021-01-01T00:00:00Z"}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: team-a, generation: 2}
spec:
  parentRefs: [{kind: ListenerSet, name: a}]
  rules:
  - {matches: [{path: {value: /pay}}], backendRefs: [{name: api, namespace: payments, port: 8080}]}
  - {backendRefs: [{name: web, port: 80}]}
status:
  parents:
  - parentRef: {group: gateway.networking.k8s.io, kind: ListenerSet, name: a}
    controllerName: tunnelgateway.dev/controller
    conditions:
    - {type: Accepted, status: "True", reason: Accepted, message: fine, observedGeneration: 2, lastTransitionTime: "2021-01-01T00:00:00Z"}
    - {type: ResolvedRefs, status: "True", reason: ResolvedRefs, message: fine, observedGeneration: 2, lastTransitionTime: "2021-01-01T00:00:00Z"}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team-a}, spec: {clusterIP: 192.0.2.8, ports: [{port: 80}]}}
`

// gatewayOnly permits reading the platform's objects by their names.
var gatewayOnly = []string{
	"view team-a", "get Gateway infra/shared", "get GatewayClass tunnel", "get TunnelConfiguration tunnel-gateway/defaults",
	"get Tunnel tunnel-gateway/infra.shared",
}

// planAs returns the plan for a user with the permissions, with the manifests.
func planAs(t *testing.T, manifests string, permits ...string) (*plan.Plan, *state.Source, *restricted) {
	t.Helper()
	parse := func(text string) *manifest.Set {
		set, err := manifest.Parse("in.yaml", []byte(text), manifest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	memory, err := state.NewMemory(parse(platform+team).Objects, state.Indexes(options.ControllerName))
	if err != nil {
		t.Fatal(err)
	}
	server := &restricted{Memory: memory, permits: permits}
	source, err := state.FromCluster(t.Context(), state.Cluster{
		Live: server, ControllerName: options.ControllerName, ControllerNamespace: options.ControllerNamespace,
		PermitGaps: true, Namespaces: []string{"team-a"},
	}, parse(manifests))
	if err != nil {
		t.Fatal(err)
	}
	return buildPlan(t, source, now), source, server
}

// explained returns the explanation of the request as text.
func explained(t *testing.T, p *plan.Plan, text string) string {
	t.Helper()
	request, err := routing.ParseRequest(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.Explain(request).WriteTable(&out, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPermissionsOfATeam(t *testing.T) {
	// With different permissions, a plan says what it knows, and what it does not know.
	var got bytes.Buffer
	for _, c := range []struct {
		name      string
		permits   []string
		manifests string
	}{
		{"only view in the own namespace", []string{"view team-a"}, ""},
		{"the Gateway, but not its class", []string{"view team-a", "get Gateway infra/shared"}, ""},
		{"the Gateway, its class and its Tunnel by name", gatewayOnly, ""},
		{"a manifest with a new hostname", gatewayOnly, `
{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {name: new, namespace: team-a}, spec: {parentRef: {name: shared, namespace: infra}, listeners: [{name: web, hostname: new.example.com, port: 80, protocol: HTTP}]}}
`},
		{"a manifest without the Gateway's permission", []string{"view team-a"}, `
{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {name: new, namespace: team-a}, spec: {parentRef: {name: shared, namespace: infra}, listeners: [{name: web, hostname: a.example.com, port: 80, protocol: HTTP}]}}
`},
	} {
		p, source, _ := planAs(t, c.manifests, c.permits...)
		fmt.Fprintf(&got, "##### %s\n%s\n", c.name, source.DescribeGaps())
		fmt.Fprintf(&got, "healthy: %t\n\n# plan\n", p.Healthy())
		if err := p.WriteTable(&got, plan.Style{}); err != nil {
			t.Fatal(err)
		}
		for _, request := range []string{"a.example.com/", "a.example.com/pay", "taken.example.com/", "elsewhere.example.com/"} {
			parsed, err := routing.ParseRequest(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.ReadEndpoints(t.Context(), source, parsed); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "\n# --why %s: warning %q\n%s", request, p.Unserved(parsed), explained(t, p, request))
		}
		fmt.Fprintln(&got)
	}
	compareGolden(t, "testdata/permissions.txt", got.String())
}

func TestAPlanWithAllPermissionsReadsNoSingleObject(t *testing.T) {
	var lists []string
	for _, kind := range []string{
		"GatewayClass", "Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "ReferenceGrant", "BackendTLSPolicy", "TunnelConfiguration", "AccessPolicy",
		"Namespace", "Service", "ServiceImport",
	} {
		lists = append(lists, "list "+kind)
	}
	p, source, server := planAs(t, "", append(lists, "list Tunnel tunnel-gateway", "view team-a", "view payments")...)
	if len(source.Gaps) > 0 || len(p.Unknown) > 0 || len(p.Reported) > 0 || source.DescribeGaps() != "" {
		t.Errorf("got the gaps %v and %q, want none", source.Gaps, p.Unknown)
	}
	for _, request := range server.requests {
		if strings.HasPrefix(request, "get ") {
			t.Errorf("the plan sent the request %q", request)
		}
	}
}

func TestAPlanAsksOnceForEachMissingPermission(t *testing.T) {
	_, _, server := planAs(t, "", "view team-a")
	seen := map[string]bool{}
	for _, request := range server.requests {
		fields := strings.Fields(request)
		inVersions := []string{"ServiceImport", "TCPRoute", "TLSRoute", "UDPRoute"}
		if seen[request] && !slices.Contains(inVersions, fields[1]) {
			t.Errorf("the plan repeated the request %q", request)
		}
		seen[request] = true
	}
	if len(seen) > 40 {
		t.Errorf("the plan sent %d requests", len(seen))
	}
}

// Objects that the user may not read are not missing.
func TestUnreadParentsAreNoMistakes(t *testing.T) {
	p, _, _ := planAs(t, "", "view team-a")
	if len(p.Mistakes) > 0 {
		t.Errorf("got the mistakes %v, want none", p.Mistakes)
	}
	// The user may read the Gateway's namespace, so the Gateway does not exist.
	p, _, _ = planAs(t, `
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: lost, namespace: team-a}, spec: {parentRefs: [{name: absent, namespace: infra}]}}
`, "view team-a", "view infra")
	want := []plan.Mistake{{
		Object:  plan.Owner{Kind: "HTTPRoute", Namespace: "team-a", Name: "lost"},
		Message: "Gateway infra/absent does not exist. Create it, or correct the parentRef.",
	}}
	if diff := cmp.Diff(want, p.Mistakes, cmpopts.IgnoreUnexported(plan.Mistake{})); diff != "" {
		t.Errorf("mistakes differ (-want +got):\n%s", diff)
	}
}
