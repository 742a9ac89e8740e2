package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// envoyBinary returns the path to Envoy. It downloads Envoy if necessary.
func envoyBinary(t *testing.T) string {
	t.Helper()
	path, err := binaries.Envoy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// messageProblem checks a message by its own rules, including the messages that are packed
// in it.
func messageProblem(m proto.Message) error {
	var errs []error
	check := func(m proto.Message) {
		if v, ok := m.(interface{ ValidateAll() error }); ok {
			errs = append(errs, v.ValidateAll())
		}
	}
	check(m)
	err := protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		if packed, ok := p.Index(-1).Value.Interface().(protoreflect.Message); ok && packed.Descriptor().FullName() == "google.protobuf.Any" {
			unpacked, err := packed.Interface().(*anypb.Any).UnmarshalNew()
			if err != nil {
				return err
			}
			check(unpacked)
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// resourcesProblem checks all resources by their own rules.
func resourcesProblem(r *envoy.Resources) error {
	var errs []error
	for _, c := range r.Routes {
		errs = append(errs, messageProblem(c))
	}
	for _, s := range r.Scopes {
		errs = append(errs, messageProblem(s))
	}
	for _, c := range r.Clusters {
		errs = append(errs, messageProblem(c))
	}
	return errors.Join(errs...)
}

// wantEnvoyAccepts checks resources for independent tables with Envoy, all together. When
// Envoy rejects them, it finds which tables Envoy rejects.
func wantEnvoyAccepts(t *testing.T, tables map[string]*envoy.Resources) {
	t.Helper()
	binary := envoyBinary(t)
	for name, problem := range rejectedByEnvoy(t, binary, tables, slices.Sorted(maps.Keys(tables))) {
		t.Errorf("Envoy rejects %s: %s", name, problem)
	}
}

// rejectedByEnvoy returns the named tables that Envoy rejects, with what Envoy reports.
func rejectedByEnvoy(t *testing.T, binary string, tables map[string]*envoy.Resources, names []string) map[string]string {
	t.Helper()
	problem := envoyProblem(t, binary, tables, names)
	switch {
	case problem == "":
		return nil
	case len(names) == 1:
		return map[string]string{names[0]: problem}
	}
	rejected := rejectedByEnvoy(t, binary, tables, names[:len(names)/2])
	if rejected == nil {
		rejected = map[string]string{}
	}
	maps.Copy(rejected, rejectedByEnvoy(t, binary, tables, names[len(names)/2:]))
	return rejected
}

// envoyProblem returns why Envoy rejects a configuration with the named tables, each with
// its own listeners, or "".
func envoyProblem(t *testing.T, binary string, tables map[string]*envoy.Resources, names []string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "envoy.json")
	text, err := protojson.Marshal(joined(tables, names))
	if err != nil {
		t.Fatal(err)
	}
	text = withClientCertificate(t, text)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command(binary, "--mode", "validate", "--log-level", "error", "-c", file).CombinedOutput()
	// With a shared scope for metrics, Envoy crashes at its exit from this mode.
	if err == nil || bytes.Contains(output, []byte("' OK")) {
		return ""
	}
	return fmt.Sprintf("%v: %s", err, strings.TrimSpace(string(output)))
}

// joined returns one configuration with the named tables.
func joined(tables map[string]*envoy.Resources, names []string) *bootstrapv3.Bootstrap {
	all := envoy.Static(&envoy.Resources{}, nil)
	all.StaticResources.Listeners = nil
	clusters := map[string]*clusterv3.Cluster{}
	for _, name := range names {
		b := envoy.Static(tables[name], nil)
		for _, c := range b.StaticResources.Clusters {
			clusters[c.Name] = c
		}
		if len(b.StaticResources.Secrets) > len(all.StaticResources.Secrets) {
			all.StaticResources.Secrets = b.StaticResources.Secrets
		}
		for _, l := range b.StaticResources.Listeners {
			l.Name = fmt.Sprintf("%s %s", name, l.Name)
			l.Address.GetSocketAddress().Address = fmt.Sprintf("127.0.%d.%d", len(all.StaticResources.Listeners)/250, 1+len(all.StaticResources.Listeners)%250)
			all.StaticResources.Listeners = append(all.StaticResources.Listeners, l)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		all.StaticResources.Clusters = append(all.StaticResources.Clusters, clusters[name])
	}
	return all
}

// The API server accepts a ClusterIP with leading zeros. Envoy rejects the whole table for
// an address in that form.
func TestClusterIPsAreCanonical(t *testing.T) {
	c := newTenantCluster(0)
	c.HTTPRoutes = nil
	c.addNamespace("shop", "")
	c.addRoute("shop", "", 1, "").Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: "cart", Port: new(gatewayv1.PortNumber(80))},
	}}}}}
	c.Services.Set(types.NamespacedName{Namespace: "shop", Name: "cart"}, &corev1.Service{
		Spec: corev1.ServiceSpec{
			ClusterIP: "010.096.0.05", Ports: []corev1.ServicePort{{Port: 80}}, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyLocal),
		},
	})
	c.DataPlane = v1alpha1.DataPlaneEnvoy
	resources := envoy.Render(gateway.Build(c.Snapshot, envoyOptions()).Table)
	if len(resources.Clusters) == 0 {
		t.Fatal("no clusters")
	}
	for _, cluster := range resources.Clusters {
		address := cluster.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().Address.GetSocketAddress().Address
		if address != "10.96.0.5" {
			t.Errorf("cluster %s has the address %q, want 10.96.0.5", cluster.Name, address)
		}
	}
}

// Envoy has no address for a Service that has no ClusterIP yet. A headless Service needs
// none.
func TestServiceWithoutClusterIPIsNotFound(t *testing.T) {
	o := envoyOptions()
	o.DataPlanes = routing.DataPlanes{v1alpha1.DataPlaneIngressRules: ingress.Capabilities(), v1alpha1.DataPlaneEnvoy: envoy.Capabilities()}
	for ip, want := range map[string]string{"": "BackendNotFound: Service infra/web has no ClusterIP yet", "10.0.0.1": "", corev1.ClusterIPNone: ""} {
		c := newTenantCluster(0)
		c.HTTPRoutes, c.DataPlane = nil, v1alpha1.DataPlaneEnvoy
		c.addRoute("infra", "", 1, "")
		c.Services.Set(types.NamespacedName{Namespace: "infra", Name: "web"}, &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}}})
		got := ""
		if problem := gateway.Build(c.Snapshot, o).Table.Groups[0].Entries[0].Action.Problem; problem != nil {
			got = problem.Reason + ": " + problem.Cause
		}
		if got != want {
			t.Errorf("ClusterIP %q: got the problem %q, want %q", ip, got, want)
		}
	}
}
