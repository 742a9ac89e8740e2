package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// The plan for a cluster predicts what the controller writes: tunnel configurations and
// statuses. After the controller has written them, with the records in the Tunnels, the
// plan is the same.
func TestPlanPredictsTheController(t *testing.T) {
	cases := goldenCases(t)
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed, cases)
			for range 4 {
				predicted := w.plan()
				w.reconcile()
				w.want("the plan before the reconciles", predicted, cmpopts.IgnoreFields(gatewayv1.GatewayStatus{}, "Addresses"))
				w.want("the plan after the reconciles", w.plan())
				w.change()
			}
		})
	}
}

// goldenCases returns the objects in each golden case from internal/gateway.
func goldenCases(t *testing.T) [][]client.Object {
	t.Helper()
	inputs, err := filepath.Glob("../gateway/testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var all [][]client.Object
	for _, input := range inputs {
		source, err := state.FromFiles([]string{input}, manifest.Options{Namespace: "default", Experimental: true}, controllerName, "cloudflare-tunnel")
		if err != nil {
			continue // a case about an invalid manifest
		}
		all = append(all, source.Objects)
	}
	return all
}

// world is a cluster with objects from random golden cases.
type world struct {
	*harness
	random *rand.Rand
	cases  [][]client.Object
	added  int // counts the objects that addCase has added, for their UIDs
}

func newWorld(t *testing.T, seed uint64, cases [][]client.Object) *world {
	t.Helper()
	w := &world{random: rand.New(rand.NewPCG(seed, 0)), cases: cases} //nolint:gosec // the test must be reproducible
	w.harness = newCluster(t, &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "cloudflare-tunnel"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName},
	}, namespaceObject(controllerNamespace))
	for range 1 + w.random.IntN(3) {
		w.addCase()
	}
	return w
}

// addCase adds most objects from a golden case.
func (w *world) addCase() {
	w.t.Helper()
	for _, object := range w.cases[w.random.IntN(len(w.cases))] {
		if w.random.IntN(8) == 0 {
			continue
		}
		object = object.DeepCopyObject().(client.Object)
		object.SetResourceVersion("")
		w.added++
		object.SetUID(types.UID(fmt.Sprintf("added-%d", w.added)))
		w.createOnce(namespaceObject(object.GetNamespace()))
		w.createOnce(object)
	}
}

// createOnce creates the object, or replaces the object with the same name.
func (w *world) createOnce(object client.Object) {
	w.t.Helper()
	if _, ok := object.(*v1alpha1.Tunnel); ok || object.GetName() == "" {
		return
	}
	err := w.kube.Create(w.t.Context(), object)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
}

// change changes the cluster at random.
func (w *world) change() {
	w.t.Helper()
	w.advance(time.Minute)
	switch w.random.IntN(4) {
	case 0:
		w.addCase()
	case 1:
		w.deleteSome(&gatewayv1.HTTPRouteList{}, &gatewayv1.ListenerSetList{})
	case 2:
		w.changeSettings()
	case 3:
		w.pauseSome()
	}
}

// deleteSome deletes a quarter of the objects in the lists.
func (w *world) deleteSome(lists ...client.ObjectList) {
	w.t.Helper()
	for _, object := range w.list(lists...) {
		if w.random.IntN(4) == 0 {
			w.delete(object)
		}
	}
}

// changeSettings changes the settings in every GatewayClass that has its own
// configuration.
func (w *world) changeSettings() {
	w.t.Helper()
	for _, object := range w.list(&v1alpha1.TunnelConfigurationList{}) {
		spec := &object.(*v1alpha1.TunnelConfiguration).Spec
		plane := []v1alpha1.DataPlane{v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneIngressRules}[w.random.IntN(2)]
		spec.DataPlane = &plane
		object.SetGeneration(object.GetGeneration() + 1)
		w.update(object)
	}
}

// pauseSome pauses or resumes half of the Gateways.
func (w *world) pauseSome() {
	w.t.Helper()
	for _, object := range w.list(&gatewayv1.GatewayList{}) {
		if w.random.IntN(2) == 0 {
			object.SetAnnotations(map[string]string{v1alpha1.PausedAnnotation: fmt.Sprint(w.random.IntN(2) == 0)})
			w.update(object)
		}
	}
}

func (w *world) update(object client.Object) {
	w.t.Helper()
	if err := w.kube.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// list lists the objects in a stable order.
func (w *world) list(lists ...client.ObjectList) []client.Object {
	w.t.Helper()
	var all []client.Object
	for _, list := range lists {
		if err := w.kube.List(w.t.Context(), list); err != nil {
			w.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			all = append(all, o.(client.Object))
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

// reconcile reconciles every key that the objects name until the controller waits for a
// change.
func (w *world) reconcile() {
	w.t.Helper()
	for range 2 { // shared hostnames depend on the other Gateways
		keys := map[state.Key]bool{}
		for _, object := range w.list(&gatewayv1.GatewayList{}, &gatewayv1.ListenerSetList{}, &gatewayv1.HTTPRouteList{}, &gatewayv1.GRPCRouteList{}) {
			switch name := client.ObjectKeyFromObject(object); object.(type) {
			case *gatewayv1.Gateway:
				keys[state.Key{Kind: gateway.KindGateway, NamespacedName: name}] = true
			case *gatewayv1.ListenerSet:
				keys[state.Key{Kind: gateway.KindListenerSet, NamespacedName: name}] = true
			}
			for _, parent := range state.RouteStatusParents(object, controllerName) {
				keys[parent] = true
			}
		}
		byName := func(a, b state.Key) int { return strings.Compare(a.Kind+a.String(), b.Kind+b.String()) }
		for _, w.key = range slices.SortedFunc(maps.Keys(keys), byName) {
			w.reconcileFor(time.Minute)
		}
	}
}

// plan returns the cluster's plan.
func (w *world) plan() *plan.Plan {
	w.t.Helper()
	cluster := state.Cluster{Live: importLister{w.kube}, ControllerName: controllerName, ControllerNamespace: controllerNamespace}
	source, err := state.FromCluster(w.t.Context(), cluster, &manifest.Set{})
	if err != nil {
		w.t.Fatal(err)
	}
	options := plan.Options{Options: w.options.Gateway, ClusterID: "west", Account: w.accounts.defaults}
	p, err := plan.Build(w.t.Context(), source, options, w.wallTime)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// want compares the plan with the tunnel configurations and statuses in the cluster.
func (w *world) want(name string, p *plan.Plan, ignored ...cmp.Option) {
	w.t.Helper()
	w.wantConfigurations(name, p)
	want, got := plannedStatuses(p), w.statuses()
	for id := range got {
		if _, isRoute := got[id].(*gatewayv1.RouteStatus); want[id] == nil && isRoute {
			want[id] = &gatewayv1.RouteStatus{}
		} else if want[id] == nil {
			continue // the API server has set the default
		}
		if diff := cmp.Diff(want[id], got[id], append(ignored, evidence)...); diff != "" {
			w.t.Errorf("%s: the status of %s differs (-plan +controller):\n%s", name, id, diff)
		}
	}
}

// wantConfigurations compares the configurations by hash, unless the Gateway is paused
// or has none.
func (w *world) wantConfigurations(name string, p *plan.Plan) {
	w.t.Helper()
	for i := range p.Gateways {
		g := &p.Gateways[i]
		w.key = state.GatewayKey(g.Namespace, g.Name)
		object := w.tunnelObject()
		if object == nil || g.Config == nil || object.Status.Configuration.Hash == "" || v1alpha1.RequestsPause(w.gateway()) {
			continue
		}
		if got := object.Status.Configuration.Hash; got != g.Config.Hash() {
			w.t.Errorf("%s: Gateway %s: the controller wrote the configuration %s, the plan has %s", name, w.key, got, g.Config.Hash())
		}
	}
}

// plannedStatuses returns the statuses in the plan by kind and name.
func plannedStatuses(p *plan.Plan) map[string]any {
	all := map[string]any{}
	for _, s := range p.Statuses {
		switch status := s.Status.(type) {
		case gatewayv1.GatewayStatus:
			s.Status = &status
		case gatewayv1.ListenerSetStatus:
			s.Status = &status
		}
		all[s.Kind+" "+s.Namespace+"/"+s.Name] = s.Status
	}
	return all
}

// statuses returns the statuses in the cluster by kind and name.
func (w *world) statuses() map[string]any {
	w.t.Helper()
	all := map[string]any{}
	for _, o := range w.list(&gatewayv1.GatewayList{}, &gatewayv1.ListenerSetList{}, &gatewayv1.HTTPRouteList{}, &gatewayv1.GRPCRouteList{}) {
		name := " " + o.GetNamespace() + "/" + o.GetName()
		switch o := o.(type) {
		case *gatewayv1.Gateway:
			all["Gateway"+name] = &o.Status
		case *gatewayv1.ListenerSet:
			all["ListenerSet"+name] = &o.Status
		case *gatewayv1.HTTPRoute:
			all["HTTPRoute"+name] = &o.Status.RouteStatus
		case *gatewayv1.GRPCRoute:
			all["GRPCRoute"+name] = &o.Status.RouteStatus
		}
	}
	return all
}

// pausedSince matches when a pause started in a message.
var pausedSince = regexp.MustCompile(`has been paused since [^ ,]*`)

// describe returns a text that differs for different parents.
func describe(ref gatewayv1.ParentReference) string {
	text, _ := json.Marshal(ref) //nolint:errchkjson // it has only strings and numbers
	return string(text)
}

// evidence ignores what only a controller knows: when a condition changed, and what the
// connectors and Envoys report.
var evidence = cmp.Options{
	cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime"),
	cmpopts.IgnoreSliceElements(func(c metav1.Condition) bool {
		return c.Type == conditions.TypeConnectorsReady.String() || c.Type == conditions.TypeDataPlaneReady.String()
	}),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Message" }, cmp.Transformer("withoutPause", func(message string) string {
		return pausedSince.ReplaceAllString(message, "is paused")
	})),
	cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b gatewayv1.RouteParentStatus) bool { return describe(a.ParentRef) < describe(b.ParentRef) }),
}

// importLister lists ServiceImports as an API server that serves one version. The fake
// client knows only the Go type.
type importLister struct{ client.Reader }

// List implements client.Reader.
func (l importLister) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	page, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return l.Reader.List(ctx, list, opts...)
	}
	if page.GroupVersionKind().GroupVersion() != multicluster.GroupVersion {
		return apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	var imports multicluster.ServiceImportList
	if err := l.Reader.List(ctx, &imports); err != nil {
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
