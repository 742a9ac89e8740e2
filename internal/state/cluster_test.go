package state_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// apiServer simulates the API server for a plan's requests.
type apiServer struct {
	*state.Memory
	// fail returns a request's error, or nil. The key is empty when a list is
	// requested.
	fail func(key client.ObjectKey, object any) error
	// pageSize limits the objects in a page; 0 means no limit.
	pageSize int
	// pagesUntilExpiry is how many further pages a continue token lasts.
	pagesUntilExpiry int
	gets             []string
	lists            []string
	// importVersions are the versions of ServiceImports that the server serves.
	importVersions []string
	// unsupported are the objects of kinds that the controller does not read. The server
	// serves the versions that they have.
	unsupported []*unstructured.Unstructured
}

// listUnsupported lists the objects of a kind that the controller does not read. It permits
// concurrent calls.
func (s *apiServer) listUnsupported(page *unstructured.UnstructuredList) error {
	if s.fail != nil {
		if err := s.fail(client.ObjectKey{}, page); err != nil {
			return err
		}
	}
	for _, object := range s.unsupported {
		if object.GetAPIVersion() == page.GetAPIVersion() && object.GetKind()+"List" == page.GetKind() {
			page.Items = append(page.Items, *object)
		}
	}
	if len(page.Items) == 0 {
		return apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	return nil
}

func (s *apiServer) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	s.gets = append(s.gets, typeName(object)+" "+key.String())
	if s.fail != nil {
		if err := s.fail(key, object); err != nil {
			return err
		}
	}
	return s.Memory.Get(ctx, key, object, opts...)
}

func (s *apiServer) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if page, ok := list.(*unstructured.UnstructuredList); ok {
		if page.GroupVersionKind().Group != multicluster.GroupVersion.Group {
			return s.listUnsupported(page)
		}
		return s.listImports(ctx, page)
	}
	s.lists = append(s.lists, typeName(list))
	var o client.ListOptions
	if o.ApplyOptions(opts); o.FieldSelector != nil {
		return fmt.Errorf("the API server does not support the field selector %s", o.FieldSelector)
	}
	if s.fail != nil {
		if err := s.fail(client.ObjectKey{}, list); err != nil {
			return err
		}
	}
	if err := s.Memory.List(ctx, list, opts...); err != nil || s.pageSize == 0 {
		return err
	}
	return s.paginate(list, opts)
}

// listImports lists the ServiceImports if the server serves the version.
func (s *apiServer) listImports(ctx context.Context, page *unstructured.UnstructuredList) error {
	version := page.GroupVersionKind().Version
	s.lists = append(s.lists, page.GroupVersionKind().Kind+" "+version)
	if s.fail != nil {
		if err := s.fail(client.ObjectKey{}, page); err != nil {
			return err
		}
	}
	if !slices.Contains(s.importVersions, version) {
		return apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	var imports multicluster.ServiceImportList
	if err := s.Memory.List(ctx, &imports); err != nil {
		return err
	}
	for i := range imports.Items {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&imports.Items[i])
		if err != nil {
			return err
		}
		page.Items = append(page.Items, unstructured.Unstructured{Object: content})
	}
	return nil
}

// paginate reduces a list to one page.
func (s *apiServer) paginate(list client.ObjectList, opts []client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Limit == 0 {
		return nil
	}
	if o.Continue != "" {
		if s.pagesUntilExpiry--; s.pagesUntilExpiry < 0 {
			return apierrors.NewResourceExpired("too old")
		}
	}
	all, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b runtime.Object) int { return strings.Compare(keyOf(a), keyOf(b)) })
	from, _ := strconv.Atoi(o.Continue)
	to := min(from+s.pageSize, len(all))
	if to < len(all) {
		list.SetContinue(strconv.Itoa(to))
	}
	return meta.SetList(list, all[from:to])
}

// newAPIServer returns an API server with the objects in the manifests.
func newAPIServer(t *testing.T, manifests string) *apiServer {
	t.Helper()
	return &apiServer{Memory: memory(t, objects(t, manifests))}
}

// newCluster returns a Cluster that reads from the API server and shows no progress.
func newCluster(live client.Reader) state.Cluster {
	return state.Cluster{
		Live: live, ControllerName: controllerName, ControllerNamespace: controllerNamespace,
	}
}

// fromCluster reads the cluster with the changes from the manifests.
func fromCluster(t *testing.T, live client.Reader, manifests string) *state.Source {
	t.Helper()
	set, err := manifest.Parse("in.yaml", []byte(manifests), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source, err := state.FromCluster(t.Context(), newCluster(live), set)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestFromClusterReturnsTheObjectsOfTheCluster(t *testing.T) {
	// A Loader returns the same objects from a Source as from the cluster itself.
	for name, server := range map[string]*apiServer{
		"in one page":                    newAPIServer(t, clusterManifests),
		"page by page":                   {Memory: memory(t, objects(t, clusterManifests)), pageSize: 1, pagesUntilExpiry: 100},
		"with an expired continue token": {Memory: memory(t, objects(t, clusterManifests)), pageSize: 1, pagesUntilExpiry: 1},
	} {
		t.Run(name, func(t *testing.T) {
			source := fromCluster(t, server, "")
			if want, got := len(objects(t, clusterManifests)), len(source.Objects); want != got {
				t.Errorf("got %d objects, want %d", got, want)
			}
			for _, key := range []state.Key{state.GatewayKey("infra", "shared"), state.GatewayKey("infra", "unmanaged"), setKey("team", "deleted")} {
				want, err := newLoader(server.Memory).Load(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				got, err := newLoader(source).Load(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(contentOf(want), contentOf(got)); diff != "" {
					t.Errorf("%s differs (-want +got):\n%s", key, diff)
				}
			}
		})
	}
}

func TestFromClusterListsEachKindOnce(t *testing.T) {
	// FromCluster lists each kind once and reads no single objects.
	server := newAPIServer(t, clusterManifests)
	var progress []string
	c := newCluster(server)
	c.Progress = func(name string) func() {
		return func() { progress = append(progress, name) }
	}
	if _, err := state.FromCluster(t.Context(), c, &manifest.Set{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"*v1.GatewayClassList", "*v1.GatewayList", "*v1.ListenerSetList", "*v1.HTTPRouteList", "*v1.GRPCRouteList",
		"*v1beta1.ReferenceGrantList", "*v1.BackendTLSPolicyList", "*v1alpha1.TunnelConfigurationList", "*v1alpha1.AccessPolicyList",
		"*v1alpha1.TunnelList", "*v1.NamespaceList", "*v1.ServiceList",
		"ServiceImportList v1", "ServiceImportList v1beta1", "ServiceImportList v1alpha1", // the newest version that is served
	}
	if diff := cmp.Diff(want, server.lists); diff != "" {
		t.Errorf("lists differ (-want +got):\n%s", diff)
	}
	if len(server.gets) != 0 {
		t.Errorf("FromCluster read the objects %q, want none", server.gets)
	}
	if len(progress) != len(want)-1 || progress[3] != "reading HTTPRoutes from the cluster" {
		t.Errorf("the progress is %q, want one step for each kind and one for the kinds that are not read", progress)
	}
}

// forbiddenError returns the API server's error for user "jane".
func forbiddenError(resource, namespace, name string) error {
	return apierrors.NewForbidden(schema.ParseGroupResource(resource), name, fmt.Errorf("User %q cannot read in %q", "jane", namespace))
}

func TestFromClusterNamesAllMissingPermissions(t *testing.T) {
	// The error names all missing permissions, so that the user can request all of them
	// together.
	server := newAPIServer(t, clusterManifests)
	server.fail = func(_ client.ObjectKey, object any) error {
		switch object.(type) {
		case *gatewayv1.HTTPRouteList:
			return forbiddenError("httproutes.gateway.networking.k8s.io", "", "")
		case *corev1.ServiceList:
			return forbiddenError("services", "", "")
		case *gatewayv1.ListenerSetList:
			return apierrors.NewNotFound(schema.GroupResource{}, "")
		}
		return nil
	}
	_, err := state.FromCluster(t.Context(), newCluster(server), &manifest.Set{})
	if err == nil {
		t.Fatal("FromCluster returned no error")
	}
	for _, want := range []string{
		`user "jane" cannot list httproutes, services in all namespaces. To permit it: kubectl create clusterrolebinding tunnel-gateway-viewer-jane --clusterrole=tunnel-gateway-viewer --user=jane`,
		"the CRD listenersets.gateway.networking.k8s.io is missing",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
}

func TestFromClusterStopsAtTheFirstOtherError(t *testing.T) {
	server := newAPIServer(t, clusterManifests)
	server.fail = func(client.ObjectKey, any) error { return errRead }
	_, err := state.FromCluster(t.Context(), newCluster(server), &manifest.Set{})
	if !errors.Is(err, errRead) || len(server.lists) != 1 || !strings.Contains(err.Error(), "GatewayClasses") {
		t.Errorf("got error %v after the lists %q, want the error of the first list", err, server.lists)
	}
}

const onDemandManifests = `
{apiVersion: v1, kind: Secret, metadata: {name: live, namespace: team}, type: Opaque, data: {from: bGl2ZQ==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: both, namespace: team}, type: Opaque, data: {from: bGl2ZQ==}}
---
`

func endpointSliceManifest(name, service string) string {
	return `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ` + name + `, namespace: team, labels: {kubernetes.io/service-name: ` + service + `}}
addressType: IPv4
endpoints: []
---
`
}

func TestFromClusterReadsSecretsAndEndpointSlicesOnDemand(t *testing.T) {
	// Secrets and EndpointSlices are read on demand. Objects from manifests replace
	// those in the cluster.
	server := newAPIServer(t, clusterManifests+"---\n"+onDemandManifests+endpointSliceManifest("kept", "web")+endpointSliceManifest("changed", "web")+endpointSliceManifest("moved", "web")+endpointSliceManifest("other", "elsewhere"))
	source := fromCluster(t, server, strings.ReplaceAll(strings.Split(onDemandManifests, "---\n")[1], "bGl2ZQ==", "ZmlsZQ==")+"---\n"+
		endpointSliceManifest("changed", "web")+endpointSliceManifest("moved", "elsewhere")+endpointSliceManifest("new", "web"))

	for name, want := range map[string]string{"live": "live", "both": "file"} {
		var secret corev1.Secret
		if err := source.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: name}, &secret); err != nil {
			t.Fatal(err)
		}
		if got := string(secret.Data["from"]); got != want {
			t.Errorf("Secret %s comes from %q, want %q", name, got, want)
		}
	}
	if err := source.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "none"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("Get of a missing Secret: got %v, want NotFound", err)
	}
	if diff := cmp.Diff([]string{"*v1.Secret team/live", "*v1.Secret team/none"}, server.gets); diff != "" {
		t.Errorf("gets differ (-want +got):\n%s", diff)
	}

	endpointSlices, err := state.Endpoints(t.Context(), source, types.NamespacedName{Namespace: "team", Name: "web"}, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, endpointSlice := range endpointSlices {
		got = append(got, endpointSlice.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"changed", "kept", "new"}, got); diff != "" {
		t.Errorf("EndpointSlices differ (-want +got):\n%s", diff)
	}
}

func TestFromClusterReturnsErrorsOfLaterReads(t *testing.T) {
	server := newAPIServer(t, clusterManifests)
	source := fromCluster(t, server, "")
	server.fail = func(client.ObjectKey, any) error { return errRead }
	if err := source.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "tls"}, &corev1.Secret{}); !errors.Is(err, errRead) {
		t.Errorf("Get of a Secret: got %v, want %v", err, errRead)
	}
	if err := source.List(t.Context(), &discoveryv1.EndpointSliceList{}, client.MatchingFields{state.IndexService: "team/web"}); !errors.Is(err, errRead) {
		t.Errorf("List of EndpointSlices: got %v, want %v", err, errRead)
	}
	if err := source.List(t.Context(), &discoveryv1.EndpointSliceList{}); err == nil {
		t.Error("EndpointSlices are listed without their Service")
	}
	if _, _, err := source.Certificates.Inspect(t.Context(), types.NamespacedName{Namespace: "team", Name: "tls"}); !errors.Is(err, errRead) {
		t.Errorf("Inspect: got %v, want %v", err, errRead)
	}
}

func TestPermittedCertificatesDoNotCheckForbiddenSecrets(t *testing.T) {
	// PermittedCertificates reports a Secret that the user cannot read as existing and
	// unchecked.
	server := newAPIServer(t, clusterManifests+"---\n"+onDemandManifests)
	server.fail = func(key client.ObjectKey, _ any) error {
		if key.Name == "closed" {
			return forbiddenError("secrets", key.Namespace, key.Name)
		}
		return nil
	}
	certificates := state.NewPermittedCertificates(server)
	closed := types.NamespacedName{Namespace: "team", Name: "closed"}
	for _, name := range []string{"closed", "live", "none", "closed", "live", "none"} {
		found, exists, err := certificates.Inspect(t.Context(), types.NamespacedName{Namespace: "team", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if exists != (name != "none") {
			t.Errorf("%s exists: %t, want %t", name, exists, !exists)
		}
		if found.Unchecked != (name == "closed") {
			t.Errorf("%s is unchecked: %t, want %t", name, found.Unchecked, !found.Unchecked)
		}
	}
	if diff := cmp.Diff([]types.NamespacedName{closed}, certificates.Forbidden()); diff != "" {
		t.Errorf("forbidden Secrets differ (-want +got):\n%s", diff)
	}
	if len(server.gets) != 3 {
		t.Errorf("got reads %q, want one of each Secret", server.gets)
	}
}

func TestGatewayNamesListsManagedGateways(t *testing.T) {
	server := newAPIServer(t, clusterManifests)
	got, err := newCluster(server).GatewayNames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "infra", Name: "shared"}, {Namespace: "team", Name: "shared"}}, got); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	for _, kind := range []string{"*v1.GatewayClassList", "*v1.GatewayList"} {
		server.fail = func(_ client.ObjectKey, object any) error {
			if typeName(object) == kind {
				return errRead
			}
			return nil
		}
		if _, err := newCluster(server).GatewayNames(t.Context()); !errors.Is(err, errRead) {
			t.Errorf("without %s: got %v, want %v", kind, err, errRead)
		}
	}
}

func keyOf(o runtime.Object) string { return client.ObjectKeyFromObject(o.(client.Object)).String() }

func TestConnectMapsKindsWithoutDiscovery(t *testing.T) {
	// Without discovery, Connect must map every kind to the correct API path.
	var requested []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = append(requested, r.URL.Path)
		http.NotFound(w, r)
	}))
	defer server.Close()
	live, err := state.Connect(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.FromCluster(t.Context(), newCluster(live), &manifest.Set{}); err == nil {
		t.Error("FromCluster returned no error although the server has no resources")
	}
	for _, object := range []client.Object{&corev1.Secret{}, &discoveryv1.EndpointSlice{}} {
		if err := live.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "x"}, object); !apierrors.IsNotFound(err) {
			t.Errorf("Get of %T: got %v, want NotFound", object, err)
		}
	}
	const gatewayAPI = "/apis/gateway.networking.k8s.io/v1/"
	want := []string{
		gatewayAPI + "gatewayclasses", gatewayAPI + "gateways", gatewayAPI + "listenersets", gatewayAPI + "httproutes", gatewayAPI + "grpcroutes",
		"/apis/gateway.networking.k8s.io/v1beta1/referencegrants", gatewayAPI + "backendtlspolicies", "/apis/tunnelgateway.dev/v1alpha1/tunnelconfigurations", "/apis/tunnelgateway.dev/v1alpha1/namespaces/tunnel-gateway/tunnels",
		"/api/v1/namespaces", "/api/v1/services", "/api/v1/namespaces/n/secrets/x", "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices/x",
	}
	if diff := cmp.Diff(want, requested); diff != "" {
		t.Errorf("paths differ (-want +got):\n%s", diff)
	}
}
