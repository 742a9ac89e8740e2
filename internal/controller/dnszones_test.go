package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

var exampleZone = zoneKey{fakeprovider.AccountID, "example.com"}

// addClass adds a GatewayClass with its own TunnelConfiguration.
func (h *dnsHarness) addClass(name string, created time.Time, spec v1alpha1.TunnelConfigurationSpec) {
	h.t.Helper()
	h.create(&v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: name}, Spec: spec})
	h.create(&gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(created)},
		Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName, ParametersRef: &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: name, Namespace: ptr.To(gatewayv1.Namespace(controllerNamespace)),
		}},
	})
}

// refresh reads the classes, and returns the changed zones, sorted.
func (h *dnsHarness) refresh() (changed []zoneKey) {
	h.t.Helper()
	changed, err := h.process.dns.zones.refresh(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	slices.SortFunc(changed, func(a, b zoneKey) int { return strings.Compare(a.account+a.name, b.account+b.name) })
	return changed
}

func wantZones(t *testing.T, got []zoneKey, want ...zoneKey) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(zoneKey{})); diff != "" {
		t.Errorf("the zones differ (-want +got):\n%s", diff)
	}
}

func TestClassesListZonesByAccount(t *testing.T) {
	h := newDNSHarness(t)
	zones := h.process.dns.zones
	wantZones(t, h.refresh(), exampleZone)
	wantZones(t, h.refresh())
	other := zoneKey{"other", "example.com"}
	set := &v1alpha1.DNS{Mode: ptr.To(v1alpha1.DNSObserve), Zones: []v1alpha1.DNSZone{{Name: "example.com"}}}
	h.addClass("other", startTime, v1alpha1.TunnelConfigurationSpec{DNS: set, Account: &v1alpha1.Account{AccountID: ptr.To("other")}})
	wantZones(t, h.refresh(), other)
	if got := zones.modeOf(other); got != v1alpha1.DNSObserve {
		t.Errorf("the mode in the other account is %s", got)
	}
	wantZones(t, zones.managed(fakeprovider.AccountID), exampleZone)
	wantZones(t, zones.managed("other"))

	// The settings of the older class count.
	h.addClass("a-younger", startTime.Add(time.Hour), v1alpha1.TunnelConfigurationSpec{DNS: set})
	wantZones(t, h.refresh(), exampleZone)
	_, classes := zones.of(exampleZone)
	if len(classes) != 2 || classes[0].name != "tunnel" || zones.modeOf(exampleZone) != v1alpha1.DNSManage {
		t.Errorf("the classes are %+v, want the oldest first", classes)
	}
}

func TestClassThatIsNotValidKeepsItsZones(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	h.wantRecords(managedRecord)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.DNS.Zones = nil })
	h.changeClass()
	h.runFor(time.Hour)
	h.wantRecords(managedRecord)
	wantZones(t, h.process.dns.zones.listed(""), exampleZone)
	h.delete(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}})
	wantZones(t, h.refresh(), exampleZone)
	wantZones(t, h.process.dns.zones.listed(""))
}

func TestWatchesMapObjectsToZones(t *testing.T) {
	h := newDNSHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.DNS.APIToken = &v1alpha1.SecretKeyReference{Name: "dns-token"}
	})
	h.refresh()
	for name, want := range map[string][]zoneKey{"dns-key": {exampleZone}, "dns-token": {exampleZone}, "other": nil} {
		keys, err := h.zones.fromSecret(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		wantZones(t, keys, want...)
	}
	tunnel := newTunnel("shared", "t-1")
	tunnel.Annotations = map[string]string{v1alpha1.AdoptRecordsAnnotation: `[{"zone":"example.com","name":"a.example.com","requested":"2026-01-01T00:00:00Z"},
		{"zone":"example.com","name":"b.example.com","requested":"2026-01-01T00:00:00Z"}]`}
	keys, err := h.zones.fromTunnel(t.Context(), tunnel)
	if err != nil {
		t.Fatal(err)
	}
	wantZones(t, keys, zoneKey{tunnel.Spec.AccountID, "example.com"})
	tunnel.Annotations[v1alpha1.AdoptRecordsAnnotation] = "{"
	keys, err = h.zones.fromTunnel(t.Context(), tunnel)
	if err != nil {
		t.Fatal(err)
	}
	wantZones(t, keys)
}

func TestChangesInQuickSuccessionCauseOneReconcile(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(rateLimiter[zoneKey]())
	defer queue.ShutDown()
	for range 100 {
		addLater(t.Context(), event.TypedGenericEvent[zoneKey]{Object: exampleZone}, queue)
	}
	key, _ := queue.Get()
	queue.Done(key)
	if key != exampleZone || queue.Len() != 0 {
		t.Errorf("got zone %v and %d more, want one reconcile", key, queue.Len())
	}
}

func TestOnlyAffectedZonesAreProcessed(t *testing.T) {
	h := newDNSHarness(t)
	h.addZone("example.net")
	h.setDNS(v1alpha1.DNSManage, "example.com", "example.net")
	h.restart()
	h.publish()
	h.collect()
	h.dueZones = map[zoneKey]time.Duration{}
	h.setHostname("b.example.com")
	h.changed("shared")
	h.processDue()
	h.collect()
	if _, affected := h.dueZones[exampleZone]; !affected || len(h.dueZones) != 1 {
		t.Errorf("the zones %v are processed, want only example.com", h.dueZones)
	}
}
