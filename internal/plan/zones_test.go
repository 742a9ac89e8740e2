package plan_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const (
	tunnelID   = provider.TunnelID("f70ff985-a4ef-4643-bbbc-4a0ed4fc8415")
	signingKey = "0123456789abcdef0123456789abcdef"
	keySecret  = "dns-key"
)

// zoneBed is the zone example.com in the account of the tests.
type zoneBed struct {
	*fake.DNS
	database *zones.Database
	zone     string
	// opened describes how the zones were opened.
	opened string
}

func newZoneBed(z zones.Zone) *zoneBed {
	z.Name, z.Account = "example.com", fake.AccountID
	database := zones.New(zones.Options{})
	return &zoneBed{DNS: fake.NewDNS(database), database: database, zone: database.Add(z)}
}

// add adds a record for new.example.com.
func (b *zoneBed) add(t *testing.T, recordType, content string, proxied bool) {
	t.Helper()
	name := "new.example.com"
	if _, err := b.database.Create(b.zone, zones.Fields{Name: &name, Type: &recordType, Content: &content, Proxied: &proxied}); err != nil {
		t.Fatal(err)
	}
}

// open implements [plan.OpenZones].
func (b *zoneBed) open(_ context.Context, account credentials.Source, token *credentials.Source) (provider.DNS, error) {
	b.opened = account.Account + " " + account.Token
	if token != nil {
		b.opened += " " + token.Secret.String() + " " + token.Key
	}
	return b.DNS, nil
}

// manage creates the records that the controller would create for the hostnames of a
// Gateway with the tunnel.
func (b *zoneBed) manage(t *testing.T, gateway string, tunnel provider.TunnelID, hostnames ...string) {
	t.Helper()
	g := dns.Gateway{NamespacedName: types.NamespacedName{Namespace: "infra", Name: gateway}, Class: "c", State: ownership.Accepted, Tunnel: tunnel, Connected: true}
	for _, name := range hostnames {
		g.Hostnames = append(g.Hostnames, dns.Hostname{Name: name, Namespace: "infra", Served: true, Permitted: true})
	}
	f := dns.Facts{
		Options: dns.Options{ClusterID: "c", ClusterUID: "cluster", Key: []byte(signingKey)}, Zone: "example.com", Account: fake.AccountID,
		Classes: []dns.Class{{Name: "c", Settings: settings.DNS{
			Mode: v1alpha1.DNSManage, Zones: []v1alpha1.DNSZone{{Name: "example.com"}}, DeletionDelay: time.Hour, MaxRecordsPerNamespace: 100,
		}}},
		Gateways: []dns.Gateway{g}, GatewaysKnown: true, TokenVersion: "1",
	}
	for {
		f.Uptime += time.Second
		f.Memory = dns.Observe(f)
		step := dns.Decide(f)
		r := dns.Result{Sent: f.Uptime, Uptime: f.Uptime}
		switch step.Action {
		case dns.ReadZone:
			r.Zones, r.Err = b.Zones(t.Context(), f.Zone, "")
		case dns.ReadRecords:
			r.Records, r.Err = b.Records(t.Context(), step.ID)
		case dns.ReadUsage:
			r.Usage, r.Err = b.Usage(t.Context(), step.ID)
		case dns.ReadCertificates:
			r.Hosts, r.Err = b.CertificateHosts(t.Context(), step.ID)
		case dns.Apply:
			r.Records, r.Err = b.Apply(t.Context(), step.ID, step.Batch)
		case dns.None, dns.Wait, dns.ConcludeAdoptions:
			if got := len(b.database.Records(b.zone)); got < len(hostnames) {
				t.Fatalf("the zone has %d records, want at least %d", got, len(hostnames))
			}
			return
		}
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		f.Memory = dns.Conclude(f.Memory, step, r)
	}
}

// withDNS returns manifests whose GatewayClass has the DNS settings, with the Secret that
// contains the signing key.
func withDNS(manifests, dnsSettings string) string {
	return strings.Replace(manifests, "spec: {}", "spec: {dns: {zones: [{name: example.com}], "+dnsSettings+"}}", 1) +
		"\n---\n{apiVersion: v1, kind: Secret, metadata: {name: " + keySecret + ", namespace: tunnel-gateway}, data: {key: " +
		base64.StdEncoding.EncodeToString([]byte(signingKey)) + "}}\n"
}

// compareZones builds the plan and compares the zones.
func (b *zoneBed) compareZones(t *testing.T, manifests string) *plan.Plan {
	t.Helper()
	source := read(t, manifests, "-")
	p := buildPlan(t, source, now)
	before := len(b.Calls(fake.OpApply))
	p.CompareZones(t.Context(), b.open, source, keySecret)
	if after := b.Calls(fake.OpApply); len(after) > before {
		t.Errorf("the plan changes records: %+v", after[before:])
	}
	return p
}

// zoneOutput returns what WriteDiff prints about DNS.
func zoneOutput(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var out strings.Builder
	if err := p.WriteDiff(&out, false); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), note("not compared"), "")
}

func TestCompareZones(t *testing.T) {
	const (
		noDifference = "Zone example.com: no difference\n"
		changes      = "Zone example.com: the controller would change these records\n"
		create       = "+ create new.example.com (Gateway infra/g)\n"
	)
	managed := tunnelObject("tunnelID: " + string(tunnelID))
	elsewhere := zones.CertificatePack{Hosts: []string{"example.com", "*.example.com"}, Status: "active"}
	for name, test := range map[string]struct {
		hostname, dns, tunnel string // the defaults are new.example.com, Manage and a tunnel
		prepare               func(*testing.T, *zoneBed)
		want                  string
		unhealthy, changes    bool
	}{
		"a missing record":           {want: changes + create, changes: true},
		"a missing record, observed": {dns: "mode: Observe", want: "Zone example.com: with dns.mode Manage, the controller would change these records\n" + create},
		"a new Gateway":              {tunnel: kubeSystem, want: changes + create, changes: true},
		"a record of another writer": {prepare: func(t *testing.T, b *zoneBed) {
			b.add(t, "CNAME", tunnelID.Hostname(), true)
		}, want: noDifference},
		"a record that is not proxied": {prepare: func(t *testing.T, b *zoneBed) {
			b.add(t, "CNAME", tunnelID.Hostname(), false)
		}, want: noDifference + note("new.example.com: NotProxied: a record leads to the tunnel, but Cloudflare does not proxy it, so requests do not arrive. Turn on the proxy for the record.")},
		"a conflict": {prepare: func(t *testing.T, b *zoneBed) { b.add(t, "A", "192.0.2.1", true) },
			want:      noDifference + note("new.example.com: RecordConflict: an A record in zone example.com is not managed by this controller. Adopt it, delete it, or exclude the hostname."),
			unhealthy: true},
		"an excluded conflict": {dns: "mode: Manage, exclude: [new.example.com]", prepare: func(t *testing.T, b *zoneBed) { b.add(t, "A", "192.0.2.1", true) },
			want: noDifference},
		"no zone": {hostname: "new.example.org", want: noDifference +
			note("new.example.org: NoZone: no zone in dns.zones contains the hostname. List its zone, or exclude the hostname."), unhealthy: true},
		"no certificate": {hostname: "a.b.example.com", want: changes + "+ create a.b.example.com (Gateway infra/g)\n" +
			note("a.b.example.com: NotCovered: no edge certificate covers it. Order one for *.b.example.com."), unhealthy: true, changes: true},
		"certificates that cannot be read": {hostname: "a.b.example.com", prepare: func(_ *testing.T, b *zoneBed) { b.Restrict("Zone Read", "DNS Read") },
			want: changes + "+ create a.b.example.com (Gateway infra/g)\n", changes: true},
		"a token without a permission": {prepare: func(_ *testing.T, b *zoneBed) { b.Restrict("Zone Read") },
			want: "Zone example.com: not compared: Records \"ID\": the API token lacks a permission for the zone or account, or the zone does not exist; the API token requires the permissions Zone: Read and DNS: Read for the zone\n"},
		"a request that waits for the budget": {prepare: func(_ *testing.T, b *zoneBed) {
			b.Fail(fake.OpRecords, &provider.RateLimitedError{RetryAfter: time.Millisecond, Budget: true})
		}, want: changes + create, changes: true},
		"an outage": {prepare: func(_ *testing.T, b *zoneBed) { b.Fail(fake.OpZones, errors.New("no connection")) },
			want: "Zone example.com: not compared: Zones \"\": no connection\n"},
		"a record of the controller": {prepare: func(t *testing.T, b *zoneBed) { b.manage(t, "g", tunnelID, "new.example.com") }, want: noDifference},
		"a record that leads to an old tunnel": {prepare: func(t *testing.T, b *zoneBed) { b.manage(t, "g", otherTunnel, "new.example.com") },
			want: changes + "~ move new.example.com (Gateway infra/g)\n", changes: true},
		"a record that no route wants": {prepare: func(t *testing.T, b *zoneBed) {
			b.manage(t, "g", tunnelID, "new.example.com", "old.example.com")
		}, want: changes + "- delete old.example.com (Gateway infra/g)\n", changes: true},
		"an orphaned record": {prepare: func(t *testing.T, b *zoneBed) { b.manage(t, "gone", otherTunnel, "gone.example.com") },
			want: changes + create + "Zone example.com: records of the controller without a Tunnel object: gone.example.com\n", changes: true},
		"a record of a Gateway that is gone": {tunnel: otherTunnelObject(otherTunnel) + managed, prepare: func(t *testing.T, b *zoneBed) { b.manage(t, "other", otherTunnel, "gone.example.com") },
			want: changes + create, changes: true}, // its tunnel is retained
		"manifests without a cluster": {tunnel: "\n", want: "Zone example.com: not compared: DNS was not read, because only a cluster shows which records belong to the controller. Add --context to compare with a cluster's records.\n"},
		"off":                         {dns: "mode: 'Off'", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newZoneBed(zones.Zone{CertificatePacks: []zones.CertificatePack{elsewhere}})
			if test.prepare != nil {
				test.prepare(t, b)
			}
			orElse := func(value, otherwise string) string {
				if value == "" {
					return otherwise
				}
				return value
			}
			p := b.compareZones(t, withDNS(gatewayFor(orElse(test.hostname, "new.example.com"), ""), orElse(test.dns, "mode: Manage"))+orElse(test.tunnel, managed))
			if diff := cmp.Diff(test.want, strings.ReplaceAll(zoneOutput(t, p), b.zone, "ID")); diff != "" {
				t.Errorf("the output differs (-want +got):\n%s", diff)
			}
			if p.Healthy() == test.unhealthy || p.HasChanges() != test.changes {
				t.Errorf("Healthy = %t, HasChanges = %t", p.Healthy(), p.HasChanges())
			}
		})
	}
}

func TestZonesInJSON(t *testing.T) {
	b := newZoneBed(zones.Zone{})
	manifests := withDNS(gatewayFor("new.example.com", ""), "mode: Manage, apiToken: {name: dns-token}") + tunnelObject("tunnelID: "+string(tunnelID))
	if got := decoded(t, planOf(t, manifests)); got["zones"] != nil || got["gateways"].([]any)[0].(map[string]any)["records"] != nil {
		t.Error("the plan has zones or records before they were compared")
	}
	got := decoded(t, b.compareZones(t, manifests))
	want := map[string]any{
		"zones": []any{map[string]any{
			"name": "example.com", "account": fake.AccountID, "mode": "Manage", "problem": "", "orphans": []any{},
			"changes": []any{map[string]any{"operation": "create", "name": "new.example.com", "gateway": "infra/g"}},
		}},
		"records": []any{map[string]any{
			"hostname": "new.example.com", "zone": "example.com", "verdict": "Missing", "reason": "Pending", "certificate": "Covered",
			"message": "the controller creates the record.",
		}},
	}
	if diff := cmp.Diff(want, map[string]any{"zones": got["zones"], "records": got["gateways"].([]any)[0].(map[string]any)["records"]}); diff != "" {
		t.Errorf("JSON differs (-want +got):\n%s", diff)
	}
	if want := fake.AccountID + " token tunnel-gateway/dns-token token"; b.opened != want {
		t.Errorf("the zones were opened with %q, want %q", b.opened, want)
	}
}

// The ID of a tunnel that does not exist yet is not known.
func TestMessagesNameNoPlaceholder(t *testing.T) {
	p := newZoneBed(zones.Zone{}).compareZones(t, withDNS(gatewayFor("new.example.com", ""), "mode: Observe")+kubeSystem)
	want := "no record leads to the Gateway. Create a proxied CNAME record with the target <tunnel ID>.cfargotunnel.com, or set dns.mode to Manage."
	if got := p.Gateways[0].Records[0].Message; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}

// forbidding is a reader that may not get Secrets.
type forbidding struct{ client.Reader }

func (f forbidding) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if _, ok := o.(*corev1.Secret); ok {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("not permitted"))
	}
	return f.Reader.Get(ctx, key, o, options...)
}

// Without the key, a record of the controller looks like a record of another writer.
func TestVerdictsAreUnknownWithoutTheSigningKey(t *testing.T) {
	b := newZoneBed(zones.Zone{})
	b.manage(t, "g", otherTunnel, "new.example.com")
	source := read(t, withDNS(gatewayFor("new.example.com", ""), "mode: Manage")+tunnelObject("tunnelID: "+string(tunnelID)), "-")
	p := buildPlan(t, source, now)
	p.CompareZones(t.Context(), b.open, forbidding{source}, keySecret)
	want := "Zone example.com: not compared: no permission to get Secret tunnel-gateway/dns-key, with which the controller recognizes its records\n"
	if got := zoneOutput(t, p); got != want || !p.Healthy() || p.Gateways[0].Records[0].Verdict != plan.VerdictUnknown {
		t.Errorf("got %q and the verdict %s", got, p.Gateways[0].Records[0].Verdict)
	}
}

// The controller does not use a key that is too short.
func TestVerdictsAreUnknownWithAShortSigningKey(t *testing.T) {
	manifests := withDNS(gatewayFor("new.example.com", ""), "mode: Manage") + tunnelObject("tunnelID: "+string(tunnelID))
	short := strings.Replace(manifests, base64.StdEncoding.EncodeToString([]byte(signingKey)), base64.StdEncoding.EncodeToString([]byte("short")), 1)
	want := "Zone example.com: not compared: Secret tunnel-gateway/dns-key has no valid key, with which the controller recognizes its records: its field \"key\" has 5 bytes, and at least 32 are required\n"
	if got := zoneOutput(t, newZoneBed(zones.Zone{}).compareZones(t, short)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A selected Gateway shows only its own changes, but the others still hold their hostnames.
func TestSelectedGatewaysShowTheirOwnChanges(t *testing.T) {
	b := newZoneBed(zones.Zone{})
	second := strings.NewReplacer("  name: g\n", "  name: h\n", "new.example.com", "more.example.com").Replace(strings.SplitN(gatewayFor("new.example.com", ""), "---", 2)[0]) +
		"---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: more, namespace: infra}\nspec: {parentRefs: [{name: h}], rules: [{backendRefs: [{name: web, port: 80}]}]}\n---"
	source := read(t, second+withDNS(gatewayFor("new.example.com", ""), "mode: Manage")+tunnelObject("tunnelID: "+string(tunnelID)), "-")
	for selected, want := range map[string]string{"": "create more.example.com, create new.example.com", "g": "create new.example.com", "h": "create more.example.com"} {
		p := buildPlan(t, source, now)
		if selected != "" {
			if err := p.Select(types.NamespacedName{Namespace: "infra", Name: selected}); err != nil {
				t.Fatal(err)
			}
		}
		p.CompareZones(t.Context(), b.open, source, keySecret)
		var got []string
		for _, c := range p.Zones[0].Changes {
			got = append(got, c.Operation+" "+c.Name)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("with --gateway %q, the changes are %v, want %s", selected, got, want)
		}
	}
}

// The younger of two GatewayClasses that do not agree about a zone gets no records.
func TestConflictingSettingsOfAZoneAreUnhealthy(t *testing.T) {
	const older = `
---
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: a}, spec: {controllerName: tunnelgateway.dev/controller,
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: tunnel-gateway, name: a}}}
---
{apiVersion: tunnelgateway.dev/v1alpha1, kind: TunnelConfiguration, metadata: {name: a, namespace: tunnel-gateway},
  spec: {dns: {mode: Manage, zones: [{name: example.com}], deletionDelay: DELAY}}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: h, namespace: infra},
  spec: {gatewayClassName: a, listeners: [{name: a, hostname: more.example.com, port: 80, protocol: HTTP}]}}
`
	for delay, healthy := range map[string]bool{"10m": true, "1h": false} {
		manifests := withDNS(gatewayFor("new.example.com", ""), "mode: Manage") + strings.Replace(older, "DELAY", delay, 1) + tunnelObject("tunnelID: "+string(tunnelID))
		p := newZoneBed(zones.Zone{}).compareZones(t, manifests)
		if p.Healthy() != healthy {
			t.Errorf("Healthy = %t with the delay %s:\n%s", p.Healthy(), delay, zoneOutput(t, p))
		}
	}
}

func TestWarningsOfRecordsWithoutPermissions(t *testing.T) {
	for dnsSettings, warned := range map[string]bool{"mode: Manage": true, "mode: Observe": false} {
		var out strings.Builder
		planOf(t, withDNS(gatewayFor("new.example.com", ""), dnsSettings)).WriteDNSWarnings(&out)
		if got := strings.HasPrefix(out.String(), "warning: GatewayClass cloudflare-tunnel: With dns.mode Manage and hostnames.from All, "); got != warned {
			t.Errorf("%s: the warnings are %q", dnsSettings, out.String())
		}
	}
}
