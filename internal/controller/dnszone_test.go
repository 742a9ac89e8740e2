package controller

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	edgezones "github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const managedRecord = "a.example.com CNAME west.infra.shared"

func TestRecordAppearsForAGateway(t *testing.T) {
	h := newDNSHarness(t)
	h.runFor(10 * time.Second)
	h.wantRecords() // no connector has been connected
	h.connect()
	h.runFor(10 * time.Second)
	h.wantRecords(managedRecord)
	if got := h.tunnelObject().Status.DNS; got == nil || got.Hostnames["Managed"] != 1 {
		t.Errorf("the Tunnel reports %+v, want one managed hostname", got)
	}
	if got := h.condition("DNSReady"); got != "True Published" {
		t.Errorf("DNSReady is %q", got)
	}
	h.wantMetrics(map[string]float64{"dns_records Managed example.com": 1, "dns_changes_total create success example.com": 1, "dns_zone_records example.com": 1})

	h.setHostname("b.example.com")
	h.changed("shared")
	h.runFor(20 * time.Second)
	h.wantRecords(managedRecord, "b.example.com CNAME west.infra.shared")
	h.runFor(15 * time.Minute)
	h.wantRecords("b.example.com CNAME west.infra.shared")
}

func TestRestartDeletesNothingBeforeEveryGatewayIsDecided(t *testing.T) {
	h := newDNSHarness(t)
	h.addGateway("o.example.com")
	h.publish()
	h.connect()
	h.runFor(10 * time.Second)
	want := []string{managedRecord, "o.example.com CNAME west.infra.other"}
	h.wantRecords(want...)

	applied := len(h.dns.Calls(fakeprovider.OpApply))
	h.restart() // and reconcile only one of the two Gateways
	h.runFor(time.Hour)
	h.wantRecords(want...)
	h.setHostname("b.example.com")
	h.changed("shared")
	h.runFor(time.Hour)
	h.wantRecords(want...)
	if n := len(h.dns.Calls(fakeprovider.OpApply)); n != applied {
		t.Errorf("%d batches were applied before every Gateway was decided", n-applied)
	}
	h.changed("other")
	h.connect()
	h.runFor(time.Hour)
	h.wantRecords("b.example.com CNAME west.infra.shared", "o.example.com CNAME west.infra.other")
}

func TestNothingIsReadWithoutZones(t *testing.T) {
	h := newDNSHarness(t)
	h.setDNS(v1alpha1.DNSOff)
	h.restart()
	h.publish()
	h.runFor(time.Hour)
	if len(h.tokens) > 0 || len(h.dns.Calls()) > 0 {
		t.Errorf("tokens %v were used for the calls %v, want none", h.tokens, h.dns.Calls())
	}
	if err := h.kube.Get(t.Context(), h.zones.key.name, &corev1.Secret{}); err == nil {
		t.Error("the signing key exists")
	}
	if h.tunnelObject().Status.DNS != nil {
		t.Error("the Tunnel reports on DNS")
	}
}

func TestObserveCreatesNoKeyAndNoRecord(t *testing.T) {
	h := newDNSHarness(t)
	h.setDNS(v1alpha1.DNSObserve, "example.com")
	h.restart()
	h.publish()
	h.runFor(time.Hour)
	h.wantRecords()
	if err := h.kube.Get(t.Context(), h.zones.key.name, &corev1.Secret{}); err == nil {
		t.Error("the signing key exists")
	}
	h.wantMetrics(map[string]float64{"dns_records Missing example.com": 1})
}

func TestZoneThatIsNoLongerListedIsForgotten(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	h.wantRecords(managedRecord)
	calls := len(h.dns.Calls())
	h.setDNS(v1alpha1.DNSOff)
	h.changeClass()
	h.runFor(2 * time.Hour)
	h.wantRecords(managedRecord)
	if n := len(h.dns.Calls()); n != calls {
		t.Errorf("%d calls after the zone was forgotten", n-calls)
	}
	if len(h.process.dns.zones.byKey) != 0 || len(h.zones.tokens.read) != 0 {
		t.Error("the process remembers the zone")
	}
	h.wantMetrics(map[string]float64{"dns_records Managed example.com": -1, "dns_zone_records example.com": -1})
	if h.tunnelObject().Status.DNS != nil {
		t.Errorf("the Tunnel reports %+v", h.tunnelObject().Status.DNS)
	}
}

func TestGatewayWithoutATunnelIsForgotten(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	h.cloud.SetConnected(h.tunnelID(), false)
	h.delete(h.gateway())
	h.changed("shared")
	h.runFor(5 * time.Minute)
	h.changed("shared")
	h.runFor(5 * time.Minute)
	if n := len(h.process.dns.entries); n != 0 {
		t.Errorf("the process remembers %d Gateways", n)
	}
}

// stuckDNS is a DNS whose reads of a zone do not return until the channel is closed.
type stuckDNS struct {
	provider.DNS
	zone    string
	entered chan struct{}
	release chan struct{}
}

// Zones implements provider.DNS.
func (d stuckDNS) Zones(ctx context.Context, name string, id provider.ZoneID) ([]provider.Zone, error) {
	if name == d.zone {
		close(d.entered)
		<-d.release
	}
	return d.DNS.Zones(ctx, name, id)
}

func TestZoneThatIsStuckDelaysNoOtherZoneAndNoTunnel(t *testing.T) {
	h := newDNSHarness(t)
	other := h.addZone("example.net")
	h.setDNS(v1alpha1.DNSManage, "example.com", "example.net")
	h.addGateway("o.example.net")
	d := stuckDNS{DNS: h.dns, zone: "example.com", entered: make(chan struct{}), release: make(chan struct{})}
	h.apis["token"] = d
	h.restart()
	h.changed("other")
	h.processDue()
	h.collect()
	key, done := zoneKey{fakeprovider.AccountID, "example.com"}, make(chan error)
	delete(h.dueZones, key)
	go func() {
		_, err := h.zones.Reconcile(t.Context(), key)
		done <- err
	}()
	<-d.entered

	h.stuck = key
	h.publish()
	h.connect()
	h.runFor(10 * time.Second)
	if got := h.records(other); !slices.Equal(got, []string{"o.example.net CNAME west.infra.other"}) {
		t.Errorf("the other zone has the records %v", got)
	}
	h.setHostname("b.example.com")
	h.changed("shared")
	h.runFor(10 * time.Second)
	if h.servedHostname() != "b.example.com" {
		t.Error("the tunnel's configuration was not written")
	}
	h.wantProgrammed("True", "Programmed", "")
	h.wantRecords()
	close(d.release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestFailingZoneDelaysNoOtherZone(t *testing.T) {
	h := newDNSHarness(t)
	h.addZone("example.net")
	h.setDNS(v1alpha1.DNSManage, "example.com", "example.net")
	h.addGateway("o.example.net")
	h.database.Update(h.zone, func(z *edgezones.Zone) { z.Account = "another" })
	h.restart()
	h.changed("other")
	h.publish()
	h.connect()
	h.runFor(10 * time.Second)
	h.wantRecords()
	h.wantMetrics(map[string]float64{"dns_records Managed example.net": 1, "dns_records NoZone example.com": 1})
	h.wantProgrammed("True", "Programmed", "")
}

func TestPanicForgetsTheZone(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	key := zoneKey{fakeprovider.AccountID, "example.com"}
	zone, _ := h.process.dns.zones.of(key)
	zone.api.provider = nil // so that the next call panics
	h.advance(time.Hour)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = h.zones.Reconcile(t.Context(), key)
	}()
	if !reflect.DeepEqual(zone.memory, dns.Memory{}) {
		t.Error("the process remembers the zone")
	}
}

func TestThousandHostnamesCostTenRequests(t *testing.T) {
	h := newDNSHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.DNS.MaxRecordsPerNamespace = new(int32(2000)) })
	route := &gatewayv1.HTTPRoute{}
	h.change("infra", "web", route, func() {
		for i := range 8 {
			route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("h%d.example.com", i)))
		}
	})
	h.changeGateway(func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Hostname = nil })
	for n := range 62 {
		more := newRoute()
		more.Name = fmt.Sprintf("web-%d", n)
		for i := range 16 {
			more.Spec.Hostnames = append(more.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("h%d-%d.example.com", n, i)))
		}
		h.create(more)
	}
	h.restart()
	h.publish()
	h.runFor(time.Minute)
	if n := len(h.records(h.zone)); n != 62*16+8 {
		t.Fatalf("%d records, want %d", n, 62*16+8)
	}
	if calls := h.dns.Calls(); len(calls) > 10 {
		t.Errorf("%d requests, want at most 10", len(calls))
	}
	before := len(h.dns.Calls())
	h.runFor(time.Hour)
	if n := len(h.dns.Calls()) - before; n > 10 {
		t.Errorf("%d requests in an hour without a change, want at most 10", n)
	}
}

func TestOrphanedRecordsAreLoggedWhenTheyChange(t *testing.T) {
	var logged strings.Builder
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { logged.WriteString(line + "\n") }, funcr.Options{}))
	logOrphans(ctx, nil, nil)
	logOrphans(ctx, nil, []string{"a.example.com"})
	logOrphans(ctx, []string{"a.example.com"}, []string{"a.example.com"})
	logOrphans(ctx, []string{"a.example.com"}, nil)
	if text := logged.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"records"=["a.example.com"]`) {
		t.Errorf("the log has:\n%s", text)
	}
}
