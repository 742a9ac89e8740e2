package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Zone is a DNS zone that a GatewayClass lists, as [Plan.CompareZones] found it.
type Zone struct {
	Name string `json:"name"`
	// Account is the account ID; empty if it is not known.
	Account string `json:"account"`
	// Mode is Observe or Manage.
	Mode v1alpha1.DNSMode `json:"mode"`
	// Problem is why the zone could not be compared; empty if it was.
	Problem string `json:"problem"`
	// Changes are what the controller would change in the zone as it is. With Observe,
	// they are what Manage would change.
	Changes []RecordChange `json:"changes"`
	// Orphans are the names of the controller's records whose tunnels have no Tunnel
	// object.
	Orphans []string `json:"orphans"`
}

// RecordChange is a change to one DNS record.
type RecordChange struct {
	// Operation is, for example, create.
	Operation string `json:"operation"`
	Name      string `json:"name"`
	// Gateway is the namespace/name of the Gateway that the record leads to afterwards, or
	// led to before it is deleted.
	Gateway string `json:"gateway"`
}

// VerdictUnknown is the verdict about a hostname whose zone was not compared.
const VerdictUnknown = "Unknown"

// Record is what DNS has for one hostname of a Gateway.
type Record struct {
	Hostname string `json:"hostname"`
	// Zone is the zone's name; empty if no listed zone contains the hostname.
	Zone string `json:"zone"`
	// Verdict is a [dns.Verdict] or VerdictUnknown.
	Verdict string `json:"verdict"`
	// Reason and Message are as in the condition DNSReady; empty if they are not known.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Certificate is Covered, NotCovered or NotChecked.
	Certificate string `json:"certificate"`

	certificateMessage string
}

// OpenZones returns the DNS interface for the zones of an account. token is the Secret with
// the API token for DNS, or nil for the account's token.
type OpenZones func(ctx context.Context, account credentials.Source, token *credentials.Source) (provider.DNS, error)

// recordGateway is a Gateway as far as DNS is concerned.
type recordGateway struct {
	dns.Gateway
	// class is nil for a Gateway that is gone.
	class    *gatewayv1.GatewayClass
	settings settings.DNS
	source   credentials.Source // of the account
	account  string
	// newTunnel reports whether the tunnel does not exist yet, and its ID is a placeholder.
	newTunnel bool
}

// usesDNS reports whether the GatewayClass observes or manages zones.
func (g *recordGateway) usesDNS() bool {
	return g.class != nil && g.settings.ReadsZones()
}

// newRecordGateways returns the Gateways with all facts that DNS depends on. It returns nil
// if no GatewayClass uses DNS. The plan assumes that requests to Cloudflare succeed, and
// that the connectors connect.
func (p *Plan) newRecordGateways() []recordGateway {
	if !slices.ContainsFunc(p.Gateways, func(g Gateway) bool { return g.result.DNS.ReadsZones() }) {
		return nil
	}
	var all []recordGateway
	planned := map[types.NamespacedName]bool{}
	for i := range p.Gateways {
		g := p.newRecordGateway(&p.Gateways[i])
		planned[g.NamespacedName] = true
		all = append(all, g)
	}
	for i := range p.tunnels.objects {
		if g := p.departedGateway(&p.tunnels.objects[i]); !planned[g.NamespacedName] {
			all = append(all, g)
		}
	}
	return all
}

func (p *Plan) newRecordGateway(g *Gateway) recordGateway {
	r := recordGateway{Gateway: g.decision.DNS(g.facts.Object, g.outcome), class: g.class, settings: g.result.DNS}
	if r.Created, r.Connected = g.created, true; r.Created.IsZero() {
		r.Created = p.tunnels.now
	}
	if g.class != nil {
		r.Class = g.class.Name
	}
	if r.Tunnel == "" { // the controller creates it, so that no record leads there yet
		r.Tunnel, r.newTunnel = provider.TunnelID("new/"+r.String()), true
	}
	if g.facts.Object != nil {
		r.account, r.source = g.facts.Object.Spec.AccountID, p.tunnels.credentialSource(g.facts.Object.Spec)
	}
	return r
}

// departedGateway returns what DNS depends on for a Tunnel without a planned Gateway.
func (p *Plan) departedGateway(t *v1alpha1.Tunnel) recordGateway {
	name := types.NamespacedName{Namespace: t.Spec.Gateway.Namespace, Name: t.Spec.Gateway.Name}
	g := recordGateway{Gateway: dns.Gateway{NamespacedName: name, Tunnel: provider.TunnelID(t.Status.TunnelID), State: ownership.Retiring}, account: t.Spec.AccountID}
	_, exists := p.unserved[name]
	switch {
	case exists && !slices.Contains(p.terminating, name), t.Spec.ControllerName != p.tunnels.options.ControllerName, t.Spec.ClusterUID != p.tunnels.options.ClusterUID:
		g.State = ownership.Unknown
	case t.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain, t.Status.Phase == v1alpha1.TunnelBlocked:
		g.State = ownership.Departed
	}
	return g
}

// zoneKey identifies a zone.
type zoneKey struct{ account, name string }

// zoneFacts returns the facts about each zone before it is read, and the Gateway whose
// GatewayClass determines its credentials: a Gateway of the oldest one.
func (p *Plan) zoneFacts(options dns.Options) (map[zoneKey]dns.Facts, map[zoneKey]*recordGateway) {
	facts, first := map[zoneKey]dns.Facts{}, map[zoneKey]*recordGateway{}
	for i := range p.records {
		g := &p.records[i]
		if !g.usesDNS() {
			continue
		}
		class := dns.Class{Name: g.class.Name, Created: g.class.CreationTimestamp.Time, Settings: g.settings}
		for _, zone := range g.settings.Zones {
			key := zoneKey{g.account, zone.Name}
			f, exists := facts[key]
			if !exists {
				f = dns.Facts{
					Uptime: uptime, Clock: p.tunnels.now, Options: options, Zone: zone.Name, Account: g.account,
					Gateways: p.recordGatewaysIn(g.account), GatewaysKnown: true, TokenVersion: "plan",
				}
			}
			if !slices.ContainsFunc(f.Classes, func(c dns.Class) bool { return c.Name == class.Name }) {
				f.Classes = append(f.Classes, class)
			}
			if facts[key] = f; first[key] == nil || olderClass(class, first[key].class) {
				first[key] = g
			}
		}
	}
	return facts, first
}

func olderClass(a dns.Class, b *gatewayv1.GatewayClass) bool {
	return cmp.Or(a.Created.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// recordGatewaysIn returns the Gateways with a tunnel in the account.
func (p *Plan) recordGatewaysIn(account string) []dns.Gateway {
	var all []dns.Gateway
	for i := range p.records {
		if p.records[i].account == account {
			all = append(all, p.records[i].Gateway)
		}
	}
	return all
}

// tokenSource returns where the API token for DNS comes from; nil for the account's.
func (g *recordGateway) tokenSource(namespace string) *credentials.Source {
	if source, separate := (credentials.Source{Account: g.account}).ForDNS(g.settings, namespace); separate {
		return &source
	}
	return nil
}

// CompareZones sets [Plan.Zones] and [Gateway.Records]. It only reads from Cloudflare.
// objects contain the Secret with the name, whose key signs the controller's records.
// A zone's Problem is what prevents the comparison.
func (p *Plan) CompareZones(ctx context.Context, open OpenZones, objects client.Reader, signingKeySecret string) {
	if len(p.records) == 0 {
		return
	}
	options, problem := p.recordOptions(ctx, objects, signingKeySecret)
	facts, first := p.zoneFacts(options)
	reports := map[zoneKey]dns.Report{}
	p.Zones = []Zone{}
	for key, f := range facts {
		z := Zone{Name: key.name, Account: key.account, Mode: first[key].settings.Mode, Problem: problem, Changes: []RecordChange{}, Orphans: []string{}}
		if key.account == unknownAccount {
			z.Account = ""
		}
		if z.Problem == "" {
			f, z.Problem = p.readZone(ctx, f, first[key], open)
		}
		if z.Problem == "" {
			reports[key] = dns.NewReport(f)
			z.Changes, z.Orphans = p.recordChanges(dns.Plan(f)), append(z.Orphans, reports[key].Orphans...)
		}
		p.Zones = append(p.Zones, z)
	}
	slices.SortFunc(p.Zones, func(a, b Zone) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Account, b.Account)) })
	p.setRecords(reports)
}

// readZone opens and reads the zone. It returns why that is not possible.
func (p *Plan) readZone(ctx context.Context, f dns.Facts, g *recordGateway, open OpenZones) (dns.Facts, string) {
	api, err := open(ctx, g.source, g.tokenSource(p.tunnels.namespace))
	if err != nil {
		return f, err.Error()
	}
	f, err = readZone(ctx, api, f)
	if err != nil {
		return f, describeZoneError(err)
	}
	return f, ""
}

// recordChanges returns the changes that concern the planned Gateways, in their order.
func (p *Plan) recordChanges(changes []dns.Change) []RecordChange {
	all := []RecordChange{}
	for _, c := range changes {
		if !p.selected || p.gateway(c.Gateway) != nil {
			all = append(all, RecordChange{string(c.Operation), c.Name, c.Gateway.String()})
		}
	}
	slices.SortStableFunc(all, func(a, b RecordChange) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// gateway returns the planned Gateway with the name, or nil.
func (p *Plan) gateway(name types.NamespacedName) *Gateway {
	for i := range p.Gateways {
		if g := &p.Gateways[i]; g.Namespace == name.Namespace && g.Name == name.Name {
			return g
		}
	}
	return nil
}

// setRecords sets the records of each planned Gateway whose GatewayClass uses DNS.
func (p *Plan) setRecords(reports map[zoneKey]dns.Report) {
	for i := range p.records {
		g := &p.records[i]
		if planned := p.gateway(g.NamespacedName); planned != nil && g.usesDNS() {
			planned.Records = g.newRecords(reports)
		}
	}
}

// newRecords returns what the zones contain for the Gateway's hostnames, without the
// excluded ones.
func (g *recordGateway) newRecords(reports map[zoneKey]dns.Report) []Record {
	byZone := map[string]dns.Report{}
	for _, zone := range g.settings.Zones {
		if byZone[zone.Name] = reports[zoneKey{g.account, zone.Name}]; byZone[zone.Name].Gateways == nil {
			byZone[zone.Name] = dns.Report{Gateways: map[types.NamespacedName]dns.Findings{}} // it has no findings
		}
	}
	findings, _ := dns.Assemble(g.Gateway, g.settings, byZone)
	records := []Record{}
	for _, h := range g.Hostnames {
		f, found := findings[h.Name]
		if !found && dns.Excludes(g.settings, h.Name) {
			continue
		}
		zone, _ := dns.ZoneOf(g.settings, h.Name)
		r := Record{Hostname: h.Name, Zone: zone, Verdict: VerdictUnknown, Certificate: certificateNames[dns.CertificateUnknown]}
		if found && f.Verdict != dns.VerdictUnread {
			r = Record{h.Name, zone, string(f.Verdict), f.Reason.String(), g.withoutPlaceholder(f.Message), certificateNames[f.Certificate], f.CertificateMessage}
		}
		records = append(records, r)
	}
	return records
}

// withoutPlaceholder replaces the hostname of a tunnel that does not exist yet.
func (g *recordGateway) withoutPlaceholder(message string) string {
	if !g.newTunnel {
		return message
	}
	return strings.ReplaceAll(message, g.Tunnel.Hostname(), provider.TunnelID("<tunnel ID>").Hostname())
}
