package controller

import (
	"maps"
	"math"
	"net/netip"
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
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

const (
	controllerName      = "tunnelgateway.dev/controller"
	controllerNamespace = "tunnel-gateway"
)

// startTime is when the clock in a harness starts.
var startTime = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// harness simulates a cluster with one Gateway, the Cloudflare API, a clock and a
// controller process.
type harness struct {
	*process
	*apiServer
	registry *prometheus.Registry
	// adapt changes what the next process is built from. It is nil if nothing changes.
	adapt func(*dependencies, *Options)
	// openDNS opens the DNS API. It is nil unless a test manages zones.
	openDNS    func(account, apiToken, dnsToken string) (provider.DNS, error)
	cloud      *fakeprovider.Provider
	events     *events.FakeRecorder
	key        state.Key
	xds        *fakeXDS
	identities *fakeIdentities
	// wallTime and uptime are what the controller's clock returns.
	wallTime time.Time
	uptime   time.Duration
	// changes records the events of the cache, and own the statuses that the controller has
	// written. Both are nil without a cache.
	changes *state.Changes
	own     *ownWrites
	// requeueAfter is the delay that the last reconcile returned.
	requeueAfter time.Duration
	// requeued contains the Gateways that other Gateways or an inventory requeued.
	requeued []string
	// zones processes DNS zones, and queued contains the zones that wait for it.
	zones  *zoneReconciler
	queued map[zoneKey]bool
	// applications processes the accounts' applications, and queuedAccounts contains the
	// accounts that wait for it. openAccess opens the API; it is nil unless a test manages
	// applications.
	applications   *accountReconciler
	queuedAccounts map[accountKey]bool
	openAccess     func(account, apiToken, accessToken string) (provider.Access, error)
}

// newHarness returns a harness with a Gateway whose GatewayClass is "tunnel", one
// listener for a.example.com and one route. The GatewayClass runs no connectors.
func newHarness(t testing.TB, objects ...client.Object) *harness {
	t.Helper()
	configuration := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "tunnel"}}
	configuration.Spec.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)}
	class := &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "tunnel"},
		Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName, ParametersRef: &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: "tunnel", Namespace: ptr.To(gatewayv1.Namespace(controllerNamespace)),
		}},
	}
	return newCluster(t, append([]client.Object{
		configuration, class, namespaceObject("infra"), namespaceObject(controllerNamespace), newGateway("shared", "a.example.com"), newRoute(), newService(),
	}, objects...)...)
}

func newCluster(t testing.TB, objects ...client.Object) *harness {
	t.Helper()
	h := &harness{
		apiServer: newAPIServer(t, objects...), cloud: fakeprovider.New(), events: events.NewFakeRecorder(1000),
		key: state.GatewayKey("infra", "shared"), wallTime: startTime, identities: &fakeIdentities{},
	}
	h.cloud.SetClock(func() time.Time { return h.wallTime })
	h.restart()
	return h
}

func namespaceObject(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newGateway(name, hostname string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name, UID: types.UID(name + "-1"), Generation: 1, CreationTimestamp: metav1.NewTime(startTime)},
		Spec: gatewayv1.GatewaySpec{GatewayClassName: "tunnel", Listeners: []gatewayv1.Listener{{
			Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr.To(gatewayv1.Hostname(hostname)),
		}}},
	}
}

// newRoute returns a route without hostnames that is attached to Gateway infra/shared.
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

// restart replaces the controller process. The new process has no state in memory.
func (h *harness) restart() {
	h.uptime = 0
	h.xds = &fakeXDS{state: xds.State{Connected: 2, Known: true, Published: true, Acknowledged: math.MaxInt64}}
	h.registry = prometheus.NewRegistry()
	h.queued, h.queuedAccounts = map[zoneKey]bool{}, map[accountKey]bool{}
	d := dependencies{
		client: h.own.client(h.client()), own: h.own, metadata: h.client(), live: h.kube, changes: h.changes, notify: notifier{events: h.events},
		requeue:        func(key state.Key) { h.requeued = append(h.requeued, key.Name) },
		enqueueZone:    func(key zoneKey) { h.queued[key] = true },
		enqueueAccount: func(key accountKey) { h.queuedAccounts[key] = true },
		xds:            h.xds, identities: h.identities,
		clock: clock{now: func() time.Time { return h.wallTime }, uptime: func() time.Duration { return h.uptime }},
	}
	o := Options{
		ControllerName: controllerName, ClusterDomain: "cluster.local", ClusterUID: "cluster", ClusterID: "west", Namespace: controllerNamespace,
		InScope: func(string) bool { return true }, ReadsCertificates: func(string) bool { return true },
		Account:         credentials.Default{Account: fakeprovider.AccountID, Token: "token"},
		Open:            func(string, string) (provider.Provider, error) { return h.cloud, nil },
		RetirementDelay: 30 * time.Second, DriftInterval: 10 * time.Minute, XDSService: "tunnel-gateway-xds", PodIP: netip.MustParseAddr("fd00::1"),
		PodIPs:  []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("10.244.9.9")},
		Metrics: metrics.New(h.registry), Tracer: noop.NewTracerProvider().Tracer(""),
		OpenDNS: h.openDNS, OpenAccess: h.openAccess, SigningKeySecret: "dns-key",
	}
	if h.adapt != nil {
		h.adapt(&d, &o)
	}
	h.process = newProcess(d, o)
	key := newSigningKey(d, o)
	h.zones, h.applications = newZoneReconciler(h.process, d, o, key), newAccountReconciler(h.process, d, o, key)
}

// reconcileOnce reconciles the Gateway.
func (h *harness) reconcileOnce() {
	h.t.Helper()
	result, err := h.Reconcile(h.t.Context(), h.key)
	if err != nil {
		h.t.Fatal(err)
	}
	h.requeueAfter = result.RequeueAfter
}

// reconcileFor reconciles the Gateway whenever the controller requests it within the
// duration, and then advances the clock to the end.
func (h *harness) reconcileFor(duration time.Duration) {
	h.t.Helper()
	for end := h.uptime + duration; ; {
		h.reconcileOnce()
		if h.requeueAfter == 0 || h.uptime+h.requeueAfter > end {
			h.advance(end - h.uptime)
			return
		}
		h.advance(h.requeueAfter)
	}
}

// advance advances the clock.
func (h *harness) advance(d time.Duration) { h.uptime, h.wallTime = h.uptime+d, h.wallTime.Add(d) }

// tunnelObject returns the Gateway's Tunnel, or nil.
func (h *harness) tunnelObject() *v1alpha1.Tunnel {
	h.t.Helper()
	object, err := h.objects.read(h.t.Context(), h.kube, h.key.NamespacedName)
	if err != nil {
		h.t.Fatal(err)
	}
	return object
}

// gateway returns the current Gateway.
func (h *harness) gateway() *gatewayv1.Gateway {
	h.t.Helper()
	g := &gatewayv1.Gateway{}
	if err := h.kube.Get(h.t.Context(), h.key.NamespacedName, g); err != nil {
		h.t.Fatal(err)
	}
	return g
}

// dataPlaneMessage returns the DataPlaneReady condition's message.
func (h *harness) dataPlaneMessage() string {
	h.t.Helper()
	c := meta.FindStatusCondition(h.gateway().Status.Conditions, conditions.TypeDataPlaneReady.String())
	if c == nil {
		return ""
	}
	return c.Message
}

func (h *harness) delete(object client.Object) {
	h.t.Helper()
	if err := h.kube.Delete(h.t.Context(), object); err != nil {
		h.t.Fatal(err)
	}
}

// wantCalls compares the provider calls since the previous check.
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

// wantEvent checks that one of the new events contains the text.
func (h *harness) wantEvent(text string) {
	h.t.Helper()
	all := h.drainEvents()
	if !slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, text) }) {
		h.t.Errorf("no event contains %q: %q", text, all)
	}
}

// programmedCondition returns the Gateway's Programmed condition.
func (h *harness) programmedCondition() *metav1.Condition {
	h.t.Helper()
	for _, c := range h.gateway().Status.Conditions {
		if c.Type == string(gatewayv1.GatewayConditionProgrammed) {
			return &c
		}
	}
	h.t.Fatal("the Gateway has no Programmed condition")
	return nil
}

// changeConfiguration changes the TunnelConfiguration of the GatewayClass.
func (h *harness) changeConfiguration(change func(*v1alpha1.TunnelConfigurationSpec)) {
	h.t.Helper()
	configuration := &v1alpha1.TunnelConfiguration{}
	h.change(controllerNamespace, "tunnel", configuration, func() { change(&configuration.Spec) })
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

func (h *harness) changeGateway(change func(*gatewayv1.Gateway)) {
	h.t.Helper()
	g := &gatewayv1.Gateway{}
	h.change(h.key.Namespace, h.key.Name, g, func() { change(g); g.Generation++ })
}

// setHostname changes the hostname on the Gateway's listener.
func (h *harness) setHostname(hostname string) {
	h.t.Helper()
	h.changeGateway(func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = ptr.To(gatewayv1.Hostname(hostname)) })
}

// annotate sets an annotation on the Gateway.
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

// tunnelID returns the tunnel ID in the status of the Gateway's Tunnel.
func (h *harness) tunnelID() provider.TunnelID {
	h.t.Helper()
	object := h.tunnelObject()
	if object == nil || object.Status.TunnelID == "" {
		h.t.Fatalf("the Tunnel records no tunnel ID: %+v", object)
	}
	return provider.TunnelID(object.Status.TunnelID)
}

// servedHostname returns the hostname in the first rule in the tunnel's configuration.
func (h *harness) servedHostname() string {
	h.t.Helper()
	configuration, _ := h.cloud.StoredConfiguration(h.tunnelID())
	if len(configuration.Ingress) == 0 {
		return ""
	}
	return configuration.Ingress[0].Hostname
}

// wantWrites compares the writes since the previous check.
func (h *harness) wantWrites(want ...string) {
	h.t.Helper()
	var got []string
	for _, w := range h.drainWrites() {
		got = append(got, w.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("writes differ (-want +got):\n%s", diff)
	}
}

// wantProgrammed compares the Programmed condition's status and reason, and checks that
// its message contains the text.
func (h *harness) wantProgrammed(status metav1.ConditionStatus, reason, text string) {
	h.t.Helper()
	if c := h.programmedCondition(); c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		h.t.Errorf("Programmed is %s/%s: %s; want %s/%s with %q", c.Status, c.Reason, c.Message, status, reason, text)
	}
}

// wantReady compares the Tunnel's phase and the reason in its Ready condition.
func (h *harness) wantReady(phase v1alpha1.TunnelPhase, reason conditions.Reason) {
	h.t.Helper()
	object := h.tunnelObject()
	if object == nil {
		h.t.Fatal("the Gateway has no Tunnel")
	}
	ready := conditions.TypeTunnelReady.Find(object.Status.Conditions)
	if ready == nil || object.Status.Phase != phase || ready.Reason != reason.String() {
		h.t.Errorf("the Tunnel is in phase %s with Ready condition %+v, want phase %s and reason %s", object.Status.Phase, ready, phase, reason)
	}
}

// drainEvents returns the events since the previous call.
func (h *harness) drainEvents() []string {
	var all []string
	for len(h.events.Events) > 0 {
		all = append(all, <-h.events.Events)
	}
	return all
}

// metric returns the value of a series for the Gateway or the account, or -1 if the
// series does not exist. Labels are the values of all other labels. For a histogram,
// metric returns the sum.
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

// wantMetrics compares series. A key contains the metric's name and the label values.
func (h *harness) wantMetrics(values map[string]float64) {
	h.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts := strings.Fields(name)
		if got := h.metric(parts[0], parts[1:]...); got != values[name] {
			h.t.Errorf("%s is %v, want %v", name, got, values[name])
		}
	}
}
