package state_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// forbidAs returns an apiServer.fail that forbids the user everything that the function
// selects.
func forbidAs(user string, selects func(key client.ObjectKey, object any) bool) func(client.ObjectKey, any) error {
	return func(key client.ObjectKey, object any) error {
		if !selects(key, object) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, key.Name, errorText(`User "`+user+`" cannot read it`))
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }

// permissive returns the Source for a user who may not read everything.
func permissive(t *testing.T, live client.Reader, controllerNamespace, manifests string) *state.Source {
	t.Helper()
	set, err := manifest.Parse("in.yaml", []byte(manifests), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(live)
	c.PermitGaps, c.Namespaces, c.ControllerNamespace = true, []string{"team"}, controllerNamespace
	source, err := state.FromCluster(t.Context(), c, set)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestTheCommandThatPermitsReadingFitsTheUser(t *testing.T) {
	for user, want := range map[string]string{
		"jane":                                  "tunnel-gateway-viewer-jane --clusterrole=tunnel-gateway-viewer --user=jane",
		"Jane@example.com":                      "tunnel-gateway-viewer-jane-example-com --clusterrole=tunnel-gateway-viewer --user=Jane@example.com",
		"https://issuer.example.com#a b":        "tunnel-gateway-viewer-https-issuer-example-com-a-b --clusterrole=tunnel-gateway-viewer --user='https://issuer.example.com#a b'",
		"it's":                                  `tunnel-gateway-viewer-it-s --clusterrole=tunnel-gateway-viewer --user='it'\''s'`,
		"system:serviceaccount:team:deployment": "tunnel-gateway-viewer-system-serviceaccount-team-deployment --clusterrole=tunnel-gateway-viewer --serviceaccount=team:deployment",
	} {
		server := newAPIServer(t, clusterManifests)
		server.fail = forbidAs(user, func(_ client.ObjectKey, object any) bool { _, ok := object.(*corev1.ServiceList); return ok })
		if got := permissive(t, server, "tunnel-gateway", "").DescribeGaps(); !strings.HasSuffix(got, "kubectl create clusterrolebinding "+want) {
			t.Errorf("%s: got %q, want the suffix %q", user, got, want)
		}
	}
	// A team does not need to read the objects of others.
	team := newAPIServer(t, clusterManifests)
	team.fail = forbidAs("jane", func(_ client.ObjectKey, object any) bool {
		switch object.(type) {
		case *gatewayv1.GatewayClassList, *gatewayv1.GatewayClass, *corev1.ServiceList:
			return true
		}
		return false
	})
	const class = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: own, namespace: team}\n" +
		"spec: {gatewayClassName: tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}"
	if got := permissive(t, team, "tunnel-gateway", class).DescribeGaps(); !strings.HasSuffix(got, "tunnel-gateway-team-viewer-jane --clusterrole=tunnel-gateway-team-viewer --user=jane") {
		t.Errorf("got %q, want the role of teams", got)
	}
	// The chart adds the namespace to the role's name.
	server := newAPIServer(t, clusterManifests)
	server.fail = forbidAs("jane", func(_ client.ObjectKey, object any) bool { _, ok := object.(*corev1.ServiceList); return ok })
	if got := permissive(t, server, "gateways", "").DescribeGaps(); !strings.Contains(got, "--clusterrole=tunnel-gateway-viewer.gateways ") {
		t.Errorf("got %q, want the role of the namespace", got)
	}
}

const conflictManifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set, namespace: team, generation: 2}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners:
  - {name: conflicted, hostname: a.example.com, port: 80, protocol: HTTP}
  - {name: outdated, hostname: b.example.com, port: 80, protocol: HTTP}
  - {name: rejected, hostname: c.example.com, port: 80, protocol: HTTP}
status:
  listeners:
  - {name: conflicted, attachedRoutes: 0, supportedKinds: [], conditions: [{type: Accepted, status: "False", reason: HostnameConflict, message: taken, observedGeneration: 2, lastTransitionTime: "2021-01-01T00:00:00Z"}]}
  - {name: outdated, attachedRoutes: 0, supportedKinds: [], conditions: [{type: Accepted, status: "False", reason: HostnameConflict, message: taken, observedGeneration: 1, lastTransitionTime: "2021-01-01T00:00:00Z"}]}
  - {name: rejected, attachedRoutes: 0, supportedKinds: [], conditions: [{type: Accepted, status: "False", reason: UnsupportedValue, message: invalid, observedGeneration: 2, lastTransitionTime: "2021-01-01T00:00:00Z"}]}
`

func TestConflictsWithUnreadListenersComeFromStatuses(t *testing.T) {
	set := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: types.NamespacedName{Namespace: "team", Name: "set"}}
	conflicts := func(manifests string, forbidden bool) []string {
		server := newAPIServer(t, conflictManifests)
		lists := 0
		server.fail = forbidAs("jane", func(_ client.ObjectKey, object any) bool {
			if _, ok := object.(*gatewayv1.ListenerSetList); ok {
				lists++ // the first list is of all namespaces
			}
			return forbidden && lists == 1
		})
		var names []string
		for name, problem := range permissive(t, server, "tunnel-gateway", manifests).ReportedConflicts()[set] {
			names = append(names, string(name)+" "+problem.Reason.String()+" "+problem.Message)
		}
		return names
	}
	if diff := cmp.Diff([]string{"conflicted HostnameConflict taken"}, conflicts("", true)); diff != "" {
		t.Errorf("conflicts differ (-want +got):\n%s", diff)
	}
	if got := conflicts("", false); got != nil {
		t.Errorf("got the conflicts %q from statuses, although all ListenerSets were read", got)
	}
	changed := strings.Replace(conflictManifests, "hostname: a.example.com", "hostname: free.example.com", 1)
	if got := conflicts(changed, true); got != nil {
		t.Errorf("got the conflicts %q of a listener that the manifest changes", got)
	}
}

func TestUnreadBackendsAreAssumedToExist(t *testing.T) {
	server := newAPIServer(t, "")
	server.fail = forbidAs("jane", func(key client.ObjectKey, object any) bool {
		_, isImport := object.(*unstructured.UnstructuredList)
		_, isRoute := object.(*gatewayv1.HTTPRouteList)
		return !isRoute || isImport || key.Name != ""
	})
	source := permissive(t, server, "tunnel-gateway", `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: team}
spec:
  rules:
  - backendRefs:
    - {name: api, namespace: payments, port: 8080}
    - {name: api, namespace: payments, port: 8081}
    - {group: multicluster.x-k8s.io, kind: ServiceImport, name: remote, namespace: payments, port: 443}
`)
	var service corev1.Service
	if err := source.Get(t.Context(), types.NamespacedName{Namespace: "payments", Name: "api"}, &service); err != nil {
		t.Fatal(err)
	}
	if ports := service.Spec.Ports; len(ports) != 2 || ports[0].Port != 8080 || ports[1].Port != 8081 {
		t.Errorf("got the ports %v, want those of the references", ports)
	}
	var remote multicluster.ServiceImport
	if err := source.Get(t.Context(), types.NamespacedName{Namespace: "payments", Name: "remote"}, &remote); err != nil {
		t.Error(err)
	}
	err := source.Get(t.Context(), types.NamespacedName{Namespace: "payments", Name: "other"}, &service)
	if !apierrors.IsNotFound(err) {
		t.Errorf("got the error %v for a Service without a reference, want NotFound", err)
	}
}
