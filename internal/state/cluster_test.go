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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// apiServer answers as one does, as far as a plan asks.
type apiServer struct {
	*state.Memory
	// refuse returns the error of a request, or nil; a list has no key.
	refuse func(key client.ObjectKey, into any) error
	// page is how many objects a list has at most; 0 for all.
	page int
	// expires is how many further pages there are before their token expires.
	expires int
	gets    []string
	lists   []string
}

func (s *apiServer) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	s.gets = append(s.gets, typeName(into)+" "+key.String())
	if s.refuse != nil {
		if err := s.refuse(key, into); err != nil {
			return err
		}
	}
	return s.Memory.Get(ctx, key, into, opts...)
}

func (s *apiServer) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	s.lists = append(s.lists, typeName(into))
	if s.refuse != nil {
		if err := s.refuse(client.ObjectKey{}, into); err != nil {
			return err
		}
	}
	if err := s.Memory.List(ctx, into, opts...); err != nil || s.page == 0 {
		return err
	}
	return s.cut(into, opts)
}

// cut leaves one page of a list.
func (s *apiServer) cut(into client.ObjectList, opts []client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Limit == 0 {
		return nil
	}
	if o.Continue != "" {
		if s.expires--; s.expires < 0 {
			return apierrors.NewResourceExpired("too old")
		}
	}
	all, err := meta.ExtractList(into)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b runtime.Object) int { return strings.Compare(keyOf(a), keyOf(b)) })
	from, _ := strconv.Atoi(o.Continue)
	to := min(from+s.page, len(all))
	if to < len(all) {
		into.SetContinue(strconv.Itoa(to))
	}
	return meta.SetList(into, all[from:to])
}

func serving(t *testing.T, manifests string) *apiServer {
	t.Helper()
	return &apiServer{Memory: memory(t, objects(t, manifests))}
}

// asCluster is the cluster of the API server, in which nothing takes long.
func asCluster(live client.Reader) state.Cluster {
	return state.Cluster{
		Live: live, ControllerName: controllerName, ControllerNamespace: controllerNamespace,
		Progress: func(string) func() { return func() {} },
	}
}

// laidOver reads the cluster with manifests over it, of which there may be
// none.
func laidOver(t *testing.T, live client.Reader, manifests string) *state.Source {
	t.Helper()
	set, err := manifest.Parse("in.yaml", []byte(manifests), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	source, err := state.FromCluster(t.Context(), asCluster(live), set)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// What belongs to a key is the same, wherever it is read from.
func TestFromClusterHoldsWhatTheClusterHolds(t *testing.T) {
	for name, server := range map[string]*apiServer{
		"all at once":                      serving(t, cluster),
		"page by page":                     {Memory: memory(t, objects(t, cluster)), page: 1, expires: 100},
		"with pages that are gone midways": {Memory: memory(t, objects(t, cluster)), page: 1, expires: 1},
	} {
		t.Run(name, func(t *testing.T) {
			source := laidOver(t, server, "")
			if want, got := len(objects(t, cluster)), len(source.Objects); want != got {
				t.Errorf("%d objects, want %d", got, want)
			}
			for _, key := range []state.Key{state.GatewayKey("infra", "shared"), state.GatewayKey("infra", "foreign"), setKey("team", "deleted")} {
				want, err := loaderOf(server.Memory).Load(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				got, err := loaderOf(source).Load(t.Context(), key)
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

// One list per kind, whatever the size of the cluster, and nothing that a
// plan may not need.
func TestFromClusterAsksOncePerKind(t *testing.T) {
	server := serving(t, cluster)
	var steps []string
	c := asCluster(server)
	c.Progress = func(name string) func() {
		return func() { steps = append(steps, name) }
	}
	if _, err := state.FromCluster(t.Context(), c, &manifest.Set{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"*v1.GatewayClassList", "*v1.GatewayList", "*v1.ListenerSetList", "*v1.HTTPRouteList", "*v1.GRPCRouteList",
		"*v1beta1.ReferenceGrantList", "*v1alpha1.TunnelConfigurationList", "*v1alpha1.TunnelList", "*v1.NamespaceList", "*v1.ServiceList",
	}
	if diff := cmp.Diff(want, server.lists); diff != "" {
		t.Errorf("lists differ (-want +got):\n%s", diff)
	}
	if len(server.gets) != 0 {
		t.Errorf("it read %q", server.gets)
	}
	if len(steps) != len(want) || steps[3] != "reading HTTPRoutes of the cluster" {
		t.Errorf("it told of %q", steps)
	}
}

func forbidden(resource, namespace, name string) error {
	return apierrors.NewForbidden(schema.ParseGroupResource(resource), name, fmt.Errorf("User %q cannot read in %q", "jane", namespace))
}

// Who asks for permissions wants to ask once.
func TestFromClusterNamesAllThatItMayNotRead(t *testing.T) {
	server := serving(t, cluster)
	server.refuse = func(_ client.ObjectKey, into any) error {
		switch into.(type) {
		case *gatewayv1.HTTPRouteList:
			return forbidden("httproutes.gateway.networking.k8s.io", "", "")
		case *corev1.ServiceList:
			return forbidden("services", "", "")
		case *gatewayv1.ListenerSetList:
			return apierrors.NewNotFound(schema.GroupResource{}, "")
		}
		return nil
	}
	_, err := state.FromCluster(t.Context(), asCluster(server), &manifest.Set{})
	if err == nil {
		t.Fatal("it gave no error")
	}
	for _, want := range []string{
		`user "jane" may not list: httproutes.gateway.networking.k8s.io, services; docs/plan.md has the role`,
		"the CRD listenersets.gateway.networking.k8s.io is missing",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestFromClusterEndsAtAnyOtherError(t *testing.T) {
	server := serving(t, cluster)
	server.refuse = func(client.ObjectKey, any) error { return errRead }
	_, err := state.FromCluster(t.Context(), asCluster(server), &manifest.Set{})
	if !errors.Is(err, errRead) || len(server.lists) != 1 || !strings.Contains(err.Error(), "GatewayClasses") {
		t.Errorf("%v after %q, want the first one's", err, server.lists)
	}
}

const opaque = `
{apiVersion: v1, kind: Secret, metadata: {name: live, namespace: team}, type: Opaque, data: {from: bGl2ZQ==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: both, namespace: team}, type: Opaque, data: {from: bGl2ZQ==}}
---
`

func slice(name, service string) string {
	return `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ` + name + `, namespace: team, labels: {kubernetes.io/service-name: ` + service + `}}
addressType: IPv4
endpoints: []
---
`
}

// Secrets and EndpointSlices are read when they are needed, and those of
// manifests go before the cluster's.
func TestFromClusterReadsTheRestOnDemand(t *testing.T) {
	server := serving(t, cluster+"---\n"+opaque+slice("kept", "web")+slice("changed", "web")+slice("moved", "web")+slice("other", "elsewhere"))
	source := laidOver(t, server, strings.ReplaceAll(strings.Split(opaque, "---\n")[1], "bGl2ZQ==", "ZmlsZQ==")+"---\n"+
		slice("changed", "web")+slice("moved", "elsewhere")+slice("new", "web"))

	for name, want := range map[string]string{"live": "live", "both": "file"} {
		var secret corev1.Secret
		if err := source.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: name}, &secret); err != nil {
			t.Fatal(err)
		}
		if got := string(secret.Data["from"]); got != want {
			t.Errorf("Secret %s is that of the %s, want %s", name, got, want)
		}
	}
	if err := source.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "none"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret that is nowhere gave %v", err)
	}
	if diff := cmp.Diff([]string{"*v1.Secret team/live", "*v1.Secret team/none"}, server.gets); diff != "" {
		t.Errorf("gets differ (-want +got):\n%s", diff)
	}

	var list discoveryv1.EndpointSliceList
	err := source.List(t.Context(), &list, client.InNamespace("team"), client.MatchingLabels{discoveryv1.LabelServiceName: "web"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range list.Items {
		got = append(got, item.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"changed", "kept", "new"}, got); diff != "" {
		t.Errorf("EndpointSlices differ (-want +got):\n%s", diff)
	}
}

func TestFromClusterReturnsErrorsOfWhatItReadsLater(t *testing.T) {
	server := serving(t, cluster)
	source := laidOver(t, server, "")
	server.refuse = func(client.ObjectKey, any) error { return errRead }
	if err := source.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "tls"}, &corev1.Secret{}); !errors.Is(err, errRead) {
		t.Errorf("a Secret gave %v", err)
	}
	if err := source.List(t.Context(), &discoveryv1.EndpointSliceList{}); !errors.Is(err, errRead) {
		t.Errorf("EndpointSlices gave %v", err)
	}
	if _, _, err := source.Certificates.Inspect(t.Context(), types.NamespacedName{Namespace: "team", Name: "tls"}); !errors.Is(err, errRead) {
		t.Errorf("a certificate gave %v", err)
	}
}

// A user who may not read a Secret learns neither whether it exists nor what it
// holds.
func TestPermittedCertificatesDoNotCheckForbiddenSecrets(t *testing.T) {
	server := serving(t, cluster+"---\n"+opaque)
	server.refuse = func(key client.ObjectKey, _ any) error {
		if key.Name == "closed" {
			return forbidden("secrets", key.Namespace, key.Name)
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
			t.Errorf("%s exists: %t", name, exists)
		}
		if found.Unchecked != (name == "closed") {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if diff := cmp.Diff([]types.NamespacedName{closed}, certificates.Forbidden()); diff != "" {
		t.Errorf("forbidden differ (-want +got):\n%s", diff)
	}
	if len(server.gets) != 3 {
		t.Errorf("it read %q, want each once", server.gets)
	}
}

func TestGatewayNames(t *testing.T) {
	server := serving(t, cluster)
	got, err := asCluster(server).GatewayNames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "infra", Name: "shared"}, {Namespace: "team", Name: "shared"}}, got); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	for _, kind := range []string{"*v1.GatewayClassList", "*v1.GatewayList"} {
		server.refuse = func(_ client.ObjectKey, into any) error {
			if typeName(into) == kind {
				return errRead
			}
			return nil
		}
		if _, err := asCluster(server).GatewayNames(t.Context()); !errors.Is(err, errRead) {
			t.Errorf("without %s it gave %v", kind, err)
		}
	}
}

func keyOf(o runtime.Object) string { return client.ObjectKeyFromObject(o.(client.Object)).String() }

// What is not asked has to be known: the paths are those of the API.
func TestConnectKnowsTheKinds(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		http.NotFound(w, r)
	}))
	defer server.Close()
	live, err := state.Connect(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.FromCluster(t.Context(), asCluster(live), &manifest.Set{}); err == nil {
		t.Error("nothing is missing")
	}
	for _, into := range []client.Object{&corev1.Secret{}, &discoveryv1.EndpointSlice{}} {
		if err := live.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "x"}, into); !apierrors.IsNotFound(err) {
			t.Errorf("%T: %v", into, err)
		}
	}
	const gatewayAPI = "/apis/gateway.networking.k8s.io/v1/"
	want := []string{
		gatewayAPI + "gatewayclasses", gatewayAPI + "gateways", gatewayAPI + "listenersets", gatewayAPI + "httproutes", gatewayAPI + "grpcroutes",
		"/apis/gateway.networking.k8s.io/v1beta1/referencegrants", "/apis/tunnelgateway.dev/v1alpha1/tunnelconfigurations", "/apis/tunnelgateway.dev/v1alpha1/namespaces/tunnel-gateway/tunnels",
		"/api/v1/namespaces", "/api/v1/services", "/api/v1/namespaces/n/secrets/x", "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices/x",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("paths differ (-want +got):\n%s", diff)
	}
}
