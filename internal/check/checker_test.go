package check_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/check"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

var update = flag.Bool("update", false, "update the golden files")

const controllerNamespace = "tunnel-gateway"

var now = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// cluster is a cluster in which the controller has processed all objects.
type cluster struct {
	objects []client.Object
	pods    client.Reader
	// permits reports whether the user may read objects of the kind; name is empty for a
	// list. Nil permits everything.
	permits func(kind, namespace, name string) bool
}

// newCluster returns the cluster with the objects in testdata/cluster.yaml after the
// replacements, and with the statuses that the controller writes.
func newCluster(t *testing.T, replacements ...string) *cluster {
	t.Helper()
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(replacements); n += 2 {
		if !strings.Contains(string(text), replacements[n]) {
			t.Fatalf("testdata/cluster.yaml does not contain %q", replacements[n])
		}
		text = bytes.ReplaceAll(text, []byte(replacements[n]), []byte(replacements[n+1]))
	}
	set, err := manifest.Read([]string{"-"}, manifest.Options{Stdin: bytes.NewReader(text), Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{objects: set.Objects}
	c.settle(t)
	return c
}

// settle gives the objects the statuses that the controller writes.
func (c *cluster) settle(t *testing.T) {
	t.Helper()
	_, p := c.plan(t)
	for _, s := range p.Statuses {
		text, err := json.Marshal(map[string]any{"status": s.Status})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range c.objects {
			if state.KindOf(o) == s.Kind && o.GetNamespace() == s.Namespace && o.GetName() == s.Name {
				if err := json.Unmarshal(text, o); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, o := range c.objects {
		switch o := o.(type) {
		case *gatewayv1.Gateway:
			setCondition(&o.Status.Conditions, conditions.TypeConnectorsReady.New(metav1.ConditionTrue, conditions.ReasonReady, "2 of 2 connectors are available."))
		case *v1alpha1.Tunnel:
			o.Status.Configuration.Hash = receiverOf(p, o).Hash
		}
	}
}

// receiverOf returns what serves shop.example.com through the Tunnel.
func receiverOf(p *plan.Plan, o *v1alpha1.Tunnel) plan.Receiver {
	for _, r := range p.Receivers(request("https://shop.example.com/")) {
		if r.Namespace == o.Spec.Gateway.Namespace && r.Name == o.Spec.Gateway.Name {
			return r
		}
	}
	return plan.Receiver{}
}

func (c *cluster) plan(t *testing.T) (*state.Source, *plan.Plan) {
	t.Helper()
	live := fake.NewClientBuilder().WithScheme(manifest.Scheme()).WithObjects(copies(c.objects)...).Build()
	source, err := state.FromCluster(t.Context(), state.Cluster{
		Live: interceptor.NewClient(live, c.permissions()), ControllerName: config.DefaultControllerName, ControllerNamespace: controllerNamespace,
		PermitGaps: true, Namespaces: []string{"team"},
	}, &manifest.Set{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.BuildAssumingApplications(t.Context(), source, plan.Options{Options: gateway.Options{
		ControllerName: config.DefaultControllerName, ControllerNamespace: controllerNamespace, ClusterDomain: config.DefaultClusterDomain,
	}}, now)
	if err != nil {
		t.Fatal(err)
	}
	return source, p
}

// permissions refuses what the user may not read.
func (c *cluster) permissions() interceptor.Funcs {
	refusal := func(kind, namespace, name string) error {
		if c.permits == nil || c.permits(kind, namespace, name) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, name, errors.New(`User "jane" cannot read it`))
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, live client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := refusal(state.KindOf(o), key.Namespace, key.Name); err != nil {
				return err
			}
			return live.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, live client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			kind := reflect.TypeOf(list).Elem().Name()
			if u, ok := list.(*unstructured.UnstructuredList); ok {
				kind = u.GetKind()
			}
			if err := refusal(strings.TrimSuffix(kind, "List"), (&client.ListOptions{}).ApplyOptions(opts).Namespace, ""); err != nil {
				return err
			}
			return live.List(ctx, list, opts...)
		},
	}
}

func copies(objects []client.Object) []client.Object {
	all := make([]client.Object, len(objects))
	for n, o := range objects {
		all[n] = o.DeepCopyObject().(client.Object)
	}
	return all
}

// check runs the steps in the cluster.
func (c *cluster) check(t *testing.T, target string) *check.Report {
	t.Helper()
	u, err := check.ParseTarget(target)
	if err != nil {
		t.Fatal(err)
	}
	source, p := c.plan(t)
	checker := check.Checker{
		Source: source, Plan: p, Pods: c.pods, ControllerName: config.DefaultControllerName, ControllerNamespace: controllerNamespace,
		Network: probe.Network{Resolver: noResolver{}, Dial: noDial},
	}
	report := checker.Run(t.Context(), check.Request{URL: u, NoRequest: true})
	report.Steps = report.Steps[:3]
	return report
}

// noDial fails at once.
func noDial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("the test has no network")
}

// noResolver fails at once.
type noResolver struct{}

func (noResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("no network in tests")
}

func (noResolver) LookupCNAME(context.Context, string) (string, error) {
	return "", errors.New("no network in tests")
}

func setCondition(list *[]metav1.Condition, c metav1.Condition) {
	c.LastTransitionTime = metav1.NewTime(now)
	for n := range *list {
		if (*list)[n].Type == c.Type {
			c.ObservedGeneration = (*list)[n].ObservedGeneration
			(*list)[n] = c
			return
		}
	}
	*list = append(*list, c)
}

// each calls change for the objects of a type.
func each[T client.Object](c *cluster, change func(T)) {
	for _, o := range c.objects {
		if typed, ok := o.(T); ok {
			change(typed)
		}
	}
}

// remove removes the objects of a type.
func remove[T client.Object](c *cluster) {
	var kept []client.Object
	for _, o := range c.objects {
		if _, ok := o.(T); !ok {
			kept = append(kept, o)
		}
	}
	c.objects = kept
}

// compareGolden compares a text with a golden file, or updates the file.
func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); run the test with -update if this is correct:\n%s", path, diff)
	}
}
