package controller

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	edgezones "github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// dnsHarness is a harness whose GatewayClass manages the zone example.com. It runs the
// queues of Gateways and zones.
type dnsHarness struct {
	*harness
	database *edgezones.Database
	dns      *fakeprovider.DNS
	zone     string
	// apis are the DNS APIs by API token; tokens are those with which one was opened.
	apis   map[string]provider.DNS
	tokens []string
	// dueGateways and dueZones are the uptimes of the next reconciles.
	dueGateways map[state.Key]time.Duration
	dueZones    map[zoneKey]time.Duration
	// stuck is a zone that another goroutine processes.
	stuck zoneKey
}

func newDNSHarness(t testing.TB, objects ...client.Object) *dnsHarness {
	t.Helper()
	h := &dnsHarness{harness: newHarness(t, objects...), database: edgezones.New(edgezones.Options{}), apis: map[string]provider.DNS{}}
	h.dns = fakeprovider.NewDNS(h.database)
	h.apis["token"] = h.dns
	h.zone = h.addZone("example.com")
	h.openDNS = func(_, apiToken, dnsToken string) (provider.DNS, error) {
		token := apiToken
		if dnsToken != "" {
			token = dnsToken
		}
		h.tokens = append(h.tokens, token)
		return h.apis[token], nil
	}
	h.setDNS(v1alpha1.DNSManage, "example.com")
	h.restart()
	return h
}

// addZone adds a zone with room for 3,500 records, and returns its ID.
func (h *dnsHarness) addZone(name string) string {
	return h.database.Add(edgezones.Zone{Name: name, Account: fakeprovider.AccountID, RecordQuota: 3500})
}

// setDNS changes the settings of the class.
func (h *dnsHarness) setDNS(mode v1alpha1.DNSMode, names ...string) {
	h.t.Helper()
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		set := &v1alpha1.DNS{Mode: &mode}
		if s.DNS != nil {
			set.APIToken = s.DNS.APIToken
		}
		for _, name := range names {
			set.Zones = append(set.Zones, v1alpha1.DNSZone{Name: name})
		}
		s.DNS = set
	})
}

// restart starts a new process, which first reconciles every Gateway and zone.
func (h *dnsHarness) restart() {
	h.harness.restart()
	h.dueGateways, h.dueZones = map[state.Key]time.Duration{h.key: 0}, map[zoneKey]time.Duration{}
}

// changeClass tells the controller about a changed GatewayClass or TunnelConfiguration.
func (h *dnsHarness) changeClass() {
	h.t.Helper()
	keys, err := h.zones.fromClass(h.t.Context(), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.dueGateways[h.key] = h.uptime
	for _, key := range keys {
		h.dueZones[key] = h.uptime
	}
}

// changed tells the controller that the Gateway or its Tunnel has changed.
func (h *dnsHarness) changed(names ...string) {
	for _, name := range names {
		h.dueGateways[state.GatewayKey("infra", name)] = h.uptime
	}
}

// runFor processes both queues for the duration.
func (h *dnsHarness) runFor(d time.Duration) {
	h.t.Helper()
	for end := h.uptime + d; ; {
		h.collect()
		next, found := h.next()
		if !found || next > end {
			h.advance(end - h.uptime)
			return
		}
		h.advance(max(next-h.uptime, 0))
		h.processDue()
	}
}

// collect adds the requeued keys to the queues.
func (h *dnsHarness) collect() {
	for _, name := range h.requeued {
		h.dueGateways[state.GatewayKey("infra", name)] = h.uptime
	}
	h.requeued = nil
	delete(h.queued, h.stuck)
	for key := range h.queued {
		if due, ok := h.dueZones[key]; !ok || due > h.uptime+executorDelay {
			h.dueZones[key] = h.uptime + executorDelay
		}
	}
	clear(h.queued)
}

// next returns the uptime of the next reconcile.
func (h *dnsHarness) next() (time.Duration, bool) {
	all := slices.Concat(slices.Collect(maps.Values(h.dueGateways)), slices.Collect(maps.Values(h.dueZones)))
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}

// processDue reconciles what is due.
func (h *dnsHarness) processDue() {
	h.t.Helper()
	for _, key := range slices.Collect(maps.Keys(h.dueGateways)) {
		if h.dueGateways[key] > h.uptime {
			continue
		}
		delete(h.dueGateways, key)
		result, err := h.Reconcile(h.t.Context(), key)
		if err != nil {
			h.t.Fatal(err)
		}
		if result.RequeueAfter > 0 {
			h.dueGateways[key] = h.uptime + result.RequeueAfter
		}
	}
	for _, key := range slices.Collect(maps.Keys(h.dueZones)) {
		if h.dueZones[key] > h.uptime {
			continue
		}
		delete(h.dueZones, key)
		h.reconcileZone(key)
	}
}

// reconcileZone reconciles a zone, as the queue does: an error is retried.
func (h *dnsHarness) reconcileZone(key zoneKey) {
	h.t.Helper()
	switch result, err := h.zones.Reconcile(h.t.Context(), key); {
	case err != nil:
		h.t.Logf("%s: %v", h.uptime, err)
		h.dueZones[key] = h.uptime + time.Second
	case result.RequeueAfter > 0:
		h.dueZones[key] = h.uptime + result.RequeueAfter
	}
}

// connect connects a connector to the Gateway's tunnel, and lets the controller notice.
func (h *dnsHarness) connect() {
	h.t.Helper()
	for _, tunnel := range h.cloud.LiveTunnels() {
		h.cloud.SetConnected(tunnel.ID, true)
	}
	h.checkConnections()
}

// checkConnections runs the periodic check of connections.
func (h *dnsHarness) checkConnections() {
	h.t.Helper()
	c := &connections{book: h.process.dns, accounts: h.accounts, clock: h.clock}
	if err := c.check(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

// publish runs the controller until the Gateway's records can exist.
func (h *dnsHarness) publish() {
	h.t.Helper()
	h.runFor(10 * time.Second)
	h.connect()
	h.runFor(10 * time.Second)
}

// records returns the zone's records as "name type target", sorted. The target of a CNAME
// to a tunnel is the name of its tunnel.
func (h *dnsHarness) records(zone string) []string {
	names := map[string]string{}
	for _, tunnel := range h.cloud.LiveTunnels() {
		names[string(tunnel.ID)+".cfargotunnel.com"] = tunnel.Name
	}
	var all []string
	for _, r := range h.database.Records(zone) {
		target := r.Content
		if name, ok := names[target]; ok {
			target = name
		}
		all = append(all, strings.Join([]string{r.Name, r.Type, target}, " "))
	}
	slices.Sort(all)
	return all
}

// wantRecords compares the records in the zone.
func (h *dnsHarness) wantRecords(want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.records(h.zone)); diff != "" {
		h.t.Errorf("records differ (-want +got):\n%s", diff)
	}
}

// addRecord adds a record for a.example.com as another writer does, and returns its ID.
func (h *dnsHarness) addRecord(kind, content string) string {
	h.t.Helper()
	name := "a.example.com"
	proxied := true
	r, err := h.database.Create(h.zone, edgezones.Fields{Name: &name, Type: &kind, Content: &content, Proxied: &proxied})
	if err != nil {
		h.t.Fatal(err)
	}
	return r.ID
}

// target returns the target of records that lead to the Gateway's tunnel.
func (h *dnsHarness) target() string { return string(h.tunnelID()) + ".cfargotunnel.com" }

// condition returns the status and the reason of the Gateway's condition.
func (h *dnsHarness) condition(kind string) string {
	h.t.Helper()
	for _, c := range h.gateway().Status.Conditions {
		if c.Type == "tunnelgateway.dev/"+kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// addGateway adds the Gateway "other" with a route for the hostname.
func (h *dnsHarness) addGateway(hostname string) {
	h.t.Helper()
	const name = "other"
	route := newRoute()
	route.Name, route.Spec.ParentRefs[0].Name = name, gatewayv1.ObjectName(name)
	h.create(newGateway(name, hostname))
	h.create(route)
	h.changed(name)
}

// errIf returns an error if the condition holds.
func errIf(fails bool) error {
	if fails {
		return errors.New("the process has crashed")
	}
	return nil
}
