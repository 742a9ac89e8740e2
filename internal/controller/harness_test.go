package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

const (
	controllerName = "tunnelgateway.dev/controller"
	ownNamespace   = "tunnel-gateway"
)

// noon is when a harness starts.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// harness is a cluster in memory with one Gateway, a Cloudflare in memory, a
// clock, and a process of the controller.
type harness struct {
	*reconciler
	*apiServer
	registry *prometheus.Registry
	cloud    *fakeprovider.Provider
	events   *events.FakeRecorder
	key      state.Key
	// wall and up are the clocks.
	wall time.Time
	up   time.Duration
	// again is when the last reconcile wanted to come back.
	again time.Duration
	// woken are the Gateways that were woken by others or by an inventory.
	woken []string
}

// newHarness has a Gateway of the class "tunnel" with one listener for
// a.example.com and one route. The class runs no connectors.
func newHarness(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	configuration := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: ownNamespace, Name: "tunnel"}}
	configuration.Spec.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)}
	class := &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "tunnel"},
		Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName, ParametersRef: &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: "tunnel", Namespace: ptr.To(gatewayv1.Namespace(ownNamespace)),
		}},
	}
	all := append([]client.Object{
		configuration, class, namespaceObject("infra"), namespaceObject(ownNamespace), newGateway("shared", "a.example.com"), newRoute(), newService(),
	}, objects...)
	h := &harness{
		apiServer: newAPIServer(t, all...), cloud: fakeprovider.New(), events: events.NewFakeRecorder(1000),
		key: state.GatewayKey("infra", "shared"), wall: noon,
	}
	h.cloud.SetClock(func() time.Time { return h.wall })
	h.restart()
	return h
}

func namespaceObject(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newGateway(name, hostname string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name, UID: types.UID(name + "-1"), Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec: gatewayv1.GatewaySpec{GatewayClassName: "tunnel", Listeners: []gatewayv1.Listener{{
			Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr.To(gatewayv1.Hostname(hostname)),
		}}},
	}
}

// newRoute returns the route of Gateway shared, which serves its hostnames.
func newRoute() *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "web", Generation: 1}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "shared"}}
	backend := gatewayv1.HTTPBackendRef{}
	backend.Name, backend.Port = "web", ptr.To(gatewayv1.PortNumber(80))
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend}}}
	return route
}

func newService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "web"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// restart replaces the process of the controller: nothing is remembered.
func (h *harness) restart() {
	h.up = 0
	h.registry = prometheus.NewRegistry()
	c, live := h.client(), h.kube
	writer := &status.Writer{
		Client: c, Live: live, ControllerName: controllerName, Now: func() time.Time { return h.wall }, Notify: func(client.Object, status.Change) {},
	}
	l := &lifecycle{
		objects:    tunnelObjects{client: c, live: live, namespace: ownNamespace},
		gateways:   gatewayReader{live: live, controllerName: controllerName, inScope: func(string) bool { return true }},
		tokens:     tokenSecrets{client: c, live: live},
		connectors: &connectors{client: c, live: live, applied: map[string]applied{}},
		accounts: &accounts{
			flags:   credentials.Default{Account: fakeprovider.AccountID, Token: "token"},
			connect: func(string, string) (provider.Provider, error) { return h.cloud, nil }, metadata: c, live: live,
			opened: map[credentials.Source]*opened{}, secrets: map[types.NamespacedName]bool{},
		},
		reserved: &reservations{holder: map[string]state.Key{}}, statuses: writer, notify: notifier{events: h.events},
		options: tunnel.Options{
			ControllerName: controllerName, ClusterUID: "cluster", ClusterID: "west", RetirementDelay: 30 * time.Second, DriftInterval: 10 * time.Minute,
		},
		clock:   clock{now: func() time.Time { return h.wall }, uptime: func() time.Duration { return h.up }},
		tunnels: map[state.Key]*managed{}, doubts: map[state.Key]doubt{},
	}
	h.reconciler = &reconciler{
		loader: state.Loader{
			Reader: c, ControllerName: controllerName, ControllerNamespace: ownNamespace,
			Certificates: &state.CachedCertificates{Metadata: c, Live: live, Reads: func(string) bool { return true }},
		},
		decisions: gateway.Options{ControllerName: controllerName, ClusterDomain: "cluster.local", ControllerNamespace: ownNamespace},
		lifecycle: l, writer: writer, observer: newObserver(metrics.New(h.registry), noop.NewTracerProvider().Tracer(""), func() time.Time { return h.wall }),
		now: func() time.Time { return h.wall },
	}
	h.overlaps = &overlaps{
		all:       watches{reader: c, controllerName: controllerName, namespace: ownNamespace}.fromManaged,
		hostnames: gateway.NewHostnames(), wake: func(key state.Key) { h.woken = append(h.woken, key.Name) },
	}
}

// reconcileOnce reconciles the Gateway.
func (h *harness) reconcileOnce() {
	h.t.Helper()
	result, err := h.Reconcile(h.t.Context(), h.key)
	if err != nil {
		h.t.Fatal(err)
	}
	h.again = result.RequeueAfter
}

// settle reconciles as often as the controller wants to within the time.
func (h *harness) settle(within time.Duration) {
	h.t.Helper()
	for end := h.up + within; ; {
		h.reconcileOnce()
		if h.again == 0 || h.up+h.again > end {
			h.advance(end - h.up)
			return
		}
		h.advance(h.again)
	}
}

// advance lets time pass.
func (h *harness) advance(d time.Duration) { h.up, h.wall = h.up+d, h.wall.Add(d) }

// tunnelObject returns the Gateway's Tunnel, or nil.
func (h *harness) tunnelObject() *v1alpha1.Tunnel {
	h.t.Helper()
	object, err := h.lifecycle.objects.read(h.t.Context(), h.kube, h.key.NamespacedName)
	if err != nil {
		h.t.Fatal(err)
	}
	return object
}

// gateway returns the Gateway as it is.
func (h *harness) gateway() *gatewayv1.Gateway {
	h.t.Helper()
	g := &gatewayv1.Gateway{}
	if err := h.kube.Get(h.t.Context(), h.key.NamespacedName, g); err != nil {
		h.t.Fatal(err)
	}
	return g
}

// delete deletes an object.
func (h *harness) delete(object client.Object) {
	h.t.Helper()
	if err := h.kube.Delete(h.t.Context(), object); err != nil {
		h.t.Fatal(err)
	}
}

// wantCalls compares the calls of the provider since the last time.
func (h *harness) wantCalls(want ...fakeprovider.Op) {
	h.t.Helper()
	var got []fakeprovider.Op
	for _, call := range h.cloud.Calls() {
		got = append(got, call.Op)
	}
	h.cloud.ResetCalls()
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("calls differ (-want +got):\n%s", diff)
	}
}

// wantEvent wants an event that contains the text among those since the last
// time.
func (h *harness) wantEvent(text string) {
	h.t.Helper()
	all := h.takeEvents()
	if !slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, text) }) {
		h.t.Errorf("no event contains %q: %q", text, all)
	}
}

// programmed returns the Gateway's condition Programmed.
func (h *harness) programmed() *metav1.Condition {
	h.t.Helper()
	for _, c := range h.gateway().Status.Conditions {
		if c.Type == string(gatewayv1.GatewayConditionProgrammed) {
			return &c
		}
	}
	h.t.Fatal("the Gateway has no condition Programmed")
	return nil
}

// configure changes the TunnelConfiguration of the class.
func (h *harness) configure(change func(*v1alpha1.TunnelConfigurationSpec)) {
	h.t.Helper()
	configuration := &v1alpha1.TunnelConfiguration{}
	h.change(ownNamespace, "tunnel", configuration, func() { change(&configuration.Spec) })
}

// change changes an object as a user would.
func (h *harness) change(namespace, name string, object client.Object, change func()) {
	h.t.Helper()
	if err := h.kube.Get(h.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		h.t.Fatal(err)
	}
	change()
	if err := h.kube.Update(h.t.Context(), object); err != nil {
		h.t.Fatal(err)
	}
}

// changeGateway changes the Gateway.
func (h *harness) changeGateway(change func(*gatewayv1.Gateway)) {
	h.t.Helper()
	g := &gatewayv1.Gateway{}
	h.change(h.key.Namespace, h.key.Name, g, func() { change(g); g.Generation++ })
}

// serve has the Gateway serve another hostname.
func (h *harness) serve(hostname string) {
	h.t.Helper()
	h.changeGateway(func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = ptr.To(gatewayv1.Hostname(hostname)) })
}

// annotate sets an annotation of the Gateway.
func (h *harness) annotate(key, value string) {
	h.t.Helper()
	h.changeGateway(func(g *gatewayv1.Gateway) { metav1.SetMetaDataAnnotation(&g.ObjectMeta, key, value) })
}

// create creates an object as a user would.
func (h *harness) create(object client.Object) {
	h.t.Helper()
	if err := h.kube.Create(h.t.Context(), object); err != nil {
		h.t.Fatal(err)
	}
}

// tunnelID returns the tunnel that the Gateway's Tunnel records.
func (h *harness) tunnelID() provider.TunnelID {
	h.t.Helper()
	object := h.tunnelObject()
	if object == nil || object.Status.TunnelID == "" {
		h.t.Fatalf("no tunnel is recorded: %+v", object)
	}
	return provider.TunnelID(object.Status.TunnelID)
}

// served returns the hostname that the tunnel's configuration begins with.
func (h *harness) served() string {
	h.t.Helper()
	configuration, _ := h.cloud.StoredConfiguration(h.tunnelID())
	if len(configuration.Ingress) == 0 {
		return ""
	}
	return configuration.Ingress[0].Hostname
}

// wantWrites compares the writes since the last time.
func (h *harness) wantWrites(want ...string) {
	h.t.Helper()
	var got []string
	for _, w := range h.takeWrites() {
		got = append(got, w.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("writes differ (-want +got):\n%s", diff)
	}
}

// wantProgrammed compares the status and the reason of the condition Programmed,
// and wants the message to contain the text.
func (h *harness) wantProgrammed(status metav1.ConditionStatus, reason, text string) {
	h.t.Helper()
	if c := h.programmed(); c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		h.t.Errorf("Programmed is %s/%s: %s; want %s/%s with %q", c.Status, c.Reason, c.Message, status, reason, text)
	}
}

// wantReady compares the phase of the Tunnel and the reason of its condition
// Ready.
func (h *harness) wantReady(phase v1alpha1.TunnelPhase, reason tunnel.Reason) {
	h.t.Helper()
	object := h.tunnelObject()
	if object == nil {
		h.t.Fatal("there is no Tunnel")
	}
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.TunnelReady)
	if ready == nil || object.Status.Phase != phase || ready.Reason != string(reason) {
		h.t.Errorf("the Tunnel is in phase %s with %+v, want %s and the reason %s", object.Status.Phase, ready, phase, reason)
	}
}

// takeEvents returns the events since the last time.
func (h *harness) takeEvents() []string {
	var all []string
	for len(h.events.Events) > 0 {
		all = append(all, <-h.events.Events)
	}
	return all
}

// metric returns the value of the Gateway's or the account's series with further
// labels in their order, or -1 when there is none. Of a histogram it is the sum.
func (h *harness) metric(name string, labels ...string) float64 {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var values []string
			for _, label := range metric.GetLabel() {
				if !slices.Contains([]string{"gateway", "gateway_namespace", "account"}, label.GetName()) {
					values = append(values, label.GetValue())
				}
			}
			if family.GetName() == "tunnel_gateway_"+name && slices.Equal(values, labels) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return -1
}

// wantMetrics compares series, which are named by the metric and further labels.
func (h *harness) wantMetrics(values map[string]float64) {
	h.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts := strings.Fields(name)
		if got := h.metric(parts[0], parts[1:]...); got != values[name] {
			h.t.Errorf("%s is %v, want %v", name, got, values[name])
		}
	}
}
