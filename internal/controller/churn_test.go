package controller

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

var (
	churnChanges = flag.Int("churn", 0, "number of changes in the day of churn, half with each data plane; 0 means a few")
	churnSeed    = flag.Uint64("churn-seed", 1, "seed for the changes in the day of churn")
)

// churned is in the name of every object that comes and goes.
const churned = "churned"

// A day with changes to routes, ListenerSets, Secrets, namespaces and Gateways, and with new
// leaders, leaves nothing behind in the process, its metrics or the account.
func TestADayOfChurnLeavesNothingBehind(t *testing.T) {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
		t.Run(string(plane), func(t *testing.T) {
			c := newChurn(t, plane)
			quarter := c.changes / 4
			c.run(quarter, quarter/5) // several leaders
			c.run(quarter, 0)         // one leader from here on
			before := c.measure()
			c.run(2*quarter, 0)
			after := c.measure()
			t.Logf("after half of %d changes and at the end: %+v, %+v", c.changes, before, after)
			if grown := after.heap - before.heap; grown > heapTolerance+int64(2*quarter)*heapPerChange {
				t.Errorf("the heap grew by %d KiB", grown>>10)
			}
			if after.goroutines > before.goroutines || after.series > before.series+seriesTolerance {
				t.Errorf("goroutines or series grew: %+v, then %+v", before, after)
			}
			if len(remembered(c.process, churned)) == 0 {
				t.Error("the process remembers no object, so this test cannot fail")
			}
			c.removeAll()
			c.wantNothingLeft()
		})
	}
}

const (
	// heapTolerance covers objects that exist by chance at the end, but not in the middle.
	heapTolerance = 1 << 20
	// heapPerChange is what the fakes keep for a change: deleted tunnels and certificates.
	heapPerChange = 256
	// seriesTolerance covers the series of Gateways that exist by chance at the end.
	seriesTolerance = 200
)

// churn changes the objects in a harness.
type churn struct {
	*harness
	watches watches
	random  *rand.Rand
	changes int
	step    time.Duration
	created int // objects so far
	live    map[churnedKind][]client.Object
	// due has the uptime at which a key is reconciled although nothing changes.
	due map[state.Key]time.Duration
	// certificate is the data in a Secret with a certificate.
	certificate map[string][]byte
}

func newChurn(t *testing.T, plane v1alpha1.DataPlane) *churn {
	t.Helper()
	h := newConnectorHarness(t)
	h.selectDataPlane(plane)
	c := &churn{
		harness: h, random: rand.New(rand.NewPCG(*churnSeed, 0)), // #nosec G404 -- the run can be repeated
		live: map[churnedKind][]client.Object{}, due: map[state.Key]time.Duration{},
		watches:     watches{reader: h.client(), controllerName: controllerName, namespace: controllerNamespace},
		certificate: newCertificate(t),
		changes:     cmp.Or(*churnChanges/2, churnedBriefly),
	}
	c.step = 24 * time.Hour / time.Duration(c.changes)
	c.prepare()
	return c
}

// run makes changes. After every so many changes, another process leads, unless it is 0.
func (c *churn) run(changes, leaders int) {
	c.t.Helper()
	for i := range changes {
		c.change()
		c.advance(c.step)
		c.reconcileDue()
		if leaders > 0 && i%leaders == leaders-1 {
			c.replaceLeader()
		}
	}
}

// reconcile reconciles the keys until only time can change something.
func (c *churn) reconcile(keys []state.Key) {
	c.t.Helper()
	slices.SortFunc(keys, func(a, b state.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range slices.Compact(keys) {
		for c.reconcileKey(key) { // the watch for Tunnels adds the key again
		}
	}
}

// reconcileKey reconciles the key, and reports whether that deleted its Tunnel.
func (c *churn) reconcileKey(key state.Key) bool {
	c.t.Helper()
	result, err := c.Reconcile(c.t.Context(), key)
	if err != nil {
		c.t.Fatalf("reconcile %s with seed %d: %v", key, *churnSeed, err)
	}
	if delete(c.due, key); result.RequeueAfter > 0 {
		c.due[key] = c.uptime + result.RequeueAfter
	}
	return c.discard()
}

// affect records that the keys are affected by a change, and reconciles them. It also
// reconciles the Gateways that the process requeued.
func (c *churn) affect(keys []state.Key) {
	c.t.Helper()
	for _, key := range keys {
		c.observer.pending.add(key)
	}
	c.reconcile(keys)
	requeued := c.requeued
	c.requeued = nil
	for _, name := range requeued {
		c.reconcile([]state.Key{state.GatewayKey("infra", name)})
	}
}

func (c *churn) reconcileDue() {
	c.t.Helper()
	var keys []state.Key
	for key, uptime := range c.due {
		if uptime <= c.uptime {
			keys = append(keys, key)
		}
	}
	c.reconcile(keys)
}

// discard empties the records that only the fakes keep. It reports whether a Tunnel was
// deleted, and then also deletes what the Tunnel owned.
func (c *churn) discard() bool {
	deleted := slices.ContainsFunc(c.drainWrites(), func(w write) bool { return w.verb == "delete" && w.kind == "Tunnel" })
	if deleted {
		c.collectGarbage()
	}
	c.drainEvents()
	c.cloud.ResetCalls()
	c.xds.publications, c.xds.endpoints, c.xds.byName, c.xds.removed, c.xds.withheld = nil, nil, nil, nil, nil
	return deleted
}

// replaceLeader starts another process, which finds that nothing needs to change.
func (c *churn) replaceLeader() {
	c.t.Helper()
	c.settle(2 * time.Minute)
	configuration, _ := c.cloud.StoredConfiguration(c.tunnelID())
	c.restart()
	clear(c.due)
	var gateways []state.Key
	for _, object := range c.live[gatewayKind] {
		gateways = append(gateways, state.GatewayKey(object.GetNamespace(), object.GetName()))
	}
	c.affect(append(gateways, c.key))
	if after, _ := c.cloud.StoredConfiguration(c.tunnelID()); !slices.EqualFunc(configuration.Ingress, after.Ingress, sameRule) {
		c.t.Errorf("the new leader replaced the configuration %+v by %+v", configuration.Ingress, after.Ingress)
	}
}

// settle lets time pass.
func (c *churn) settle(duration time.Duration) {
	c.t.Helper()
	for end := c.uptime + duration; c.uptime < end; {
		c.advance(10 * time.Second)
		c.reconcileDue()
	}
}

// measurement is what may not grow.
type measurement struct {
	heap               int64
	goroutines, series int
}

func (c *churn) measure() measurement {
	c.t.Helper()
	c.settle(2 * time.Minute)
	return measurement{c.heap(), runtime.NumGoroutine(), len(c.seriesWith(""))}
}

// seriesWith returns the metric series that have the text in a label's value.
func (c *churn) seriesWith(text string) []string {
	c.t.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if series := family.GetName() + " " + metric.String(); strings.Contains(series, text) {
				found = append(found, series)
			}
		}
	}
	return found
}

// wantNothingLeft checks that nothing remains from the removed objects.
func (c *churn) wantNothingLeft() {
	c.t.Helper()
	c.settle(time.Hour)
	// The metrics keep at most 100 namespaces for a Gateway, while the Gateway exists.
	maps := slices.DeleteFunc(remembered(c.process, churned), func(path string) bool { return path == "process.observer.metrics.collector.sources" })
	if len(maps) > 0 {
		c.t.Errorf("maps that remember removed objects: %v", maps)
	}
	series := slices.DeleteFunc(c.seriesWith(churned), func(s string) bool { return strings.Contains(s, `"source_namespace"`) })
	if len(series) > 0 {
		c.t.Errorf("%d series for removed objects, such as %s", len(series), series[0])
	}
	if tunnels := c.cloud.LiveTunnels(); len(tunnels) != 1 {
		c.t.Errorf("the account has %d tunnels, want 1", len(tunnels))
	}
	var secrets corev1.SecretList
	if err := c.kube.List(c.t.Context(), &secrets, client.InNamespace(controllerNamespace)); err != nil {
		c.t.Fatal(err)
	}
	for i := range secrets.Items {
		if strings.Contains(secrets.Items[i].Name, churned) {
			c.t.Errorf("the Secret %s remains", secrets.Items[i].Name)
		}
	}
}
