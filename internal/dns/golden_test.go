package dns_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// goldenCase is one rule of docs/guides/dns.md.
type goldenCase struct {
	name string
	zone zones.Zone // example.com in the account, if it has no name
	// setup prepares the zone and the facts. Nothing was read yet.
	setup func(*scenario)
	// wait is how much time passes.
	wait time.Duration
	// changes are what the controller has changed.
	changes []string
	// findings are by Gateway and hostname: verdict, reason and message.
	findings map[string]string
	// unused has the numbers of unused records.
	unused map[dns.Verdict]int
}

func TestGolden(t *testing.T) {
	for _, c := range slices.Concat(verdictCases, ownershipCases, permissionCases, stateCases, zoneCases, settingsCases, quotaCases) {
		t.Run(c.name, func(t *testing.T) {
			if c.zone.Name == "" {
				c.zone.Name, c.zone.Account = zone, account
			}
			s := newScenarioIn(t, c.zone)
			c.setup(s)
			s.runFor(c.wait)
			s.check(c)
		})
	}
}

// check compares the changes and the report with the case.
func (s *scenario) check(c goldenCase) {
	s.t.Helper()
	if diff := cmp.Diff(c.changes, s.takeLog()); diff != "" {
		s.t.Errorf("changes differ (-want +got):\n%s", diff)
	}
	report := s.report()
	findings := map[string]string{}
	for g, all := range report.Gateways {
		for hostname, f := range all {
			findings[g.Name+" "+hostname] = strings.TrimSuffix(string(f.Verdict)+" "+f.Reason.String()+": "+f.Message, ": ")
		}
	}
	if diff := cmp.Diff(c.findings, findings); diff != "" {
		s.t.Errorf("findings differ (-want +got):\n%s", diff)
	}
	unused := report.Unused
	if len(unused) == 0 {
		unused = nil
	}
	if diff := cmp.Diff(c.unused, unused); diff != "" {
		s.t.Errorf("unused records differ (-want +got):\n%s", diff)
	}
}

const (
	www     = "www.example.com"
	star    = "*.example.com"
	alphaAt = "tunnel-of-alpha.cfargotunnel.com"
	betaAt  = "tunnel-of-beta.cfargotunnel.com"
)

// managed adds a record with this installation's mark.
func managed(s *scenario, name, target string, change ...func(*zones.Fields)) {
	s.add(name, "CNAME", target, append(change, comment(dns.MarkForTest(signed, provider.ZoneID(s.id), name, target)))...)
}

// alphaServes sets the Gateway alpha that serves the hostnames.
func alphaServes(hostnames ...string) func(*scenario) {
	return func(s *scenario) { s.set(gateway(alpha, hostnames...)) }
}

var verdictCases = []goldenCase{
	{
		name: "a hostname without a record gets one", setup: alphaServes(www),
		changes:  []string{"create www.example.com alpha"},
		findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
	{
		name: "the apex, a hostname and a wildcard get records", setup: alphaServes(zone, www, star),
		changes: []string{"create example.com alpha", "create www.example.com alpha", "create *.example.com alpha"},
		findings: map[string]string{
			"alpha example.com": "Managed Published", "alpha www.example.com": "Managed Published", "alpha *.example.com": "Managed Published",
		},
	},
	{
		name: "a managed record remains",
		setup: func(s *scenario) {
			managed(s, www, alphaAt)
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
	{
		name: "a managed record becomes proxied again",
		setup: func(s *scenario) {
			managed(s, www, alphaAt, unproxied)
			s.set(gateway(alpha, www))
		},
		changes:  []string{"repair www.example.com alpha"},
		findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
	{
		name: "a record by hand that leads here is external",
		setup: func(s *scenario) {
			s.add(www, "CNAME", alphaAt)
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "External Published"},
	},
	{
		name: "a wildcard by hand publishes its hostnames",
		setup: func(s *scenario) {
			s.add(star, "CNAME", alphaAt)
			s.set(gateway(alpha, www, "a.b.example.com", star))
		},
		findings: map[string]string{
			"alpha www.example.com": "External Published", "alpha a.b.example.com": "External Published", "alpha *.example.com": "External Published",
		},
	},
	{
		name: "a managed wildcard publishes its hostnames",
		setup: func(s *scenario) {
			managed(s, star, alphaAt)
			s.set(gateway(alpha, www, star))
		},
		findings: map[string]string{"alpha www.example.com": "External Published", "alpha *.example.com": "Managed Published"},
	},
	{
		name: "a chain of CNAME records inside the zone leads here",
		setup: func(s *scenario) {
			s.add(www, "CNAME", "entry.example.com")
			s.add("entry.example.com", "CNAME", alphaAt)
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "External Published"},
	},
	{
		name: "a chain is proxied if one of its records is",
		setup: func(s *scenario) {
			s.add(www, "CNAME", "entry.example.com", unproxied)
			s.add("entry.example.com", "CNAME", alphaAt)
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "External Published"},
	},
	{
		name: "a loop of CNAME records leads nowhere",
		setup: func(s *scenario) {
			s.add(www, "CNAME", "entry.example.com")
			s.add("entry.example.com", "CNAME", www)
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "RecordConflict RecordConflict: a CNAME record in zone example.com is not managed by this controller. Adopt it, delete it, or exclude the hostname."},
	},
	{
		name: "a record that leads here without the proxy does not work",
		setup: func(s *scenario) {
			s.add(www, "CNAME", alphaAt, unproxied)
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "NotProxied NotProxied: a record leads to the tunnel, but Cloudflare does not proxy it, so requests do not arrive. Turn on the proxy for the record."},
	},
	{
		name: "another A record is a conflict, and its content remains secret",
		setup: func(s *scenario) {
			s.add(www, "A", "192.0.2.1")
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "RecordConflict RecordConflict: an A record in zone example.com is not managed by this controller. Adopt it, delete it, or exclude the hostname."},
	},
	{
		name: "a wildcard that leads elsewhere is a conflict without permissions",
		setup: func(s *scenario) {
			s.add(star, "A", "192.0.2.1")
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "RecordConflict RecordConflict: an A record for *.example.com in zone example.com is not managed by this controller. Adopt it, delete it, or exclude the hostname."},
	},
	{
		name: "a record beside a TXT record is possible",
		setup: func(s *scenario) {
			s.add(www, "TXT", `"v=spf1 -all"`)
			s.set(gateway(alpha, www))
		},
		changes:  []string{"create www.example.com alpha"},
		findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
	{
		name: "a TXT record ends the wildcard, so the hostname gets its own record",
		setup: func(s *scenario) {
			s.add(star, "CNAME", alphaAt)
			s.add(www, "TXT", `"v=spf1 -all"`)
			s.set(gateway(alpha, www))
		},
		changes:  []string{"create www.example.com alpha"},
		findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
	{
		name: "a wildcard route does not hold a hostname",
		setup: func(s *scenario) {
			managed(s, star, alphaAt)
			s.set(gateway(alpha, star))
			s.set(gateway(beta, www))
		},
		changes:  []string{"create www.example.com beta"},
		findings: map[string]string{"alpha *.example.com": "Managed Published", "beta www.example.com": "Managed Published"},
	},
	{
		name: "a Gateway holds the hostnames that it serves through a wildcard",
		setup: func(s *scenario) {
			managed(s, star, betaAt)
			s.set(gateway(beta, star, www))
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{
			"beta *.example.com": "Managed Published", "beta www.example.com": "External Published",
			"alpha www.example.com": "HeldByAnotherGateway HeldByAnotherGateway: another Gateway also serves the hostname, and the record leads to that Gateway. Remove the hostname from one of the Gateways.",
		},
	},
}

var ownershipCases = []goldenCase{
	{
		name: "the holder keeps the record, also from an older Gateway",
		setup: func(s *scenario) {
			managed(s, www, betaAt)
			s.set(gateway(alpha, www))
			s.set(gateway(beta, www))
		},
		wait: time.Hour,
		findings: map[string]string{
			"alpha www.example.com": "Stale HeldByAnotherGateway: another Gateway also serves the hostname, and the record leads to that Gateway. Remove the hostname from one of the Gateways.",
			"beta www.example.com":  "Managed Published",
		},
	},
	{
		name: "the older Gateway gets a free hostname",
		setup: func(s *scenario) {
			s.set(gateway(beta, www))
			s.set(gateway(alpha, www))
		},
		changes: []string{"create www.example.com alpha"},
		findings: map[string]string{
			"alpha www.example.com": "Managed Published",
			"beta www.example.com":  "Stale HeldByAnotherGateway: another Gateway also serves the hostname, and the record leads to that Gateway. Remove the hostname from one of the Gateways.",
		},
	},
	{
		name: "after a restart, a record moves after the deletion delay",
		setup: func(s *scenario) {
			managed(s, www, betaAt)
			s.set(gateway(alpha, www))
			s.set(gateway(beta))
		},
		wait:    9 * time.Minute,
		changes: nil,
		findings: map[string]string{"alpha www.example.com": "Stale Pending: the record leads to another Gateway that no longer serves the hostname. " +
			"The controller moves it after dns.deletionDelay."},
	},
	{
		name: "a record of a tunnel without a Tunnel object moves after the deletion delay",
		setup: func(s *scenario) {
			managed(s, www, betaAt)
			s.set(gateway(alpha, www))
		},
		wait:     11 * time.Minute,
		changes:  []string{"move www.example.com alpha"},
		findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
	{
		name: "an unwanted record is deleted after the deletion delay",
		setup: func(s *scenario) {
			managed(s, www, alphaAt)
			s.set(gateway(alpha))
		},
		wait:    11 * time.Minute,
		changes: []string{"delete www.example.com alpha"}, findings: map[string]string{},
	},
	{
		name: "an unwanted record remains until the deletion delay has passed",
		setup: func(s *scenario) {
			managed(s, www, alphaAt)
			s.set(gateway(alpha))
		},
		wait:     9 * time.Minute,
		findings: map[string]string{}, unused: map[dns.Verdict]int{dns.VerdictUnwanted: 1},
	},
	{
		name:  "an orphan is reported and remains",
		setup: func(s *scenario) { managed(s, www, alphaAt) },
		wait:  time.Hour, findings: map[string]string{}, unused: map[dns.Verdict]int{dns.VerdictOrphan: 1},
	},
	{
		name: "a copied mark does not verify under another name",
		setup: func(s *scenario) {
			s.add(www, "CNAME", betaAt, comment(dns.MarkForTest(signed, provider.ZoneID(s.id), "other.example.com", betaAt)))
			s.set(gateway(alpha, www))
			s.set(gateway(beta))
		},
		wait:     time.Hour,
		findings: map[string]string{"alpha www.example.com": "RecordConflict RecordConflict: a CNAME record in zone example.com is not managed by this controller. Adopt it, delete it, or exclude the hostname."},
	},
	{
		name: "editing a target by hand takes the record over",
		setup: func(s *scenario) {
			s.add(www, "CNAME", "elsewhere.example.net", comment(dns.MarkForTest(signed, provider.ZoneID(s.id), www, alphaAt)))
			s.set(gateway(alpha, www))
		},
		wait:     time.Hour,
		findings: map[string]string{"alpha www.example.com": "RecordConflict RecordConflict: a CNAME record in zone example.com is not managed by this controller. Adopt it, delete it, or exclude the hostname."},
	},
	{
		name: "the mark of a cluster with another UID does not verify",
		setup: func(s *scenario) {
			other := signed
			other.ClusterUID = "77aa"
			s.add(www, "CNAME", alphaAt, comment(dns.MarkForTest(other, provider.ZoneID(s.id), www, alphaAt)))
			s.set(gateway(alpha))
		},
		wait: time.Hour, findings: map[string]string{},
	},
	{
		name: "a conflict names the installation in the mark",
		setup: func(s *scenario) {
			other := signed
			other.ClusterID = "staging"
			s.add(www, "CNAME", betaAt, comment(dns.MarkForTest(other, provider.ZoneID(s.id), www, betaAt)))
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "RecordConflict RecordConflict: a CNAME record in zone example.com has the mark of installation staging. Adopt it, delete it, or exclude the hostname."},
	},
}

var permissionCases = []goldenCase{
	{
		name: "no record without permission",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.RequiresPermission = true })
			s.set(unpermitted(gateway(alpha, www)))
		},
		findings: map[string]string{"alpha www.example.com": "Missing HostnameNotPermitted: the annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname, so no record is created for it."},
	},
	{
		name: "the permission permits a hostname below a wildcard that leads elsewhere",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.RequiresPermission = true })
			s.add(star, "A", "192.0.2.1")
			s.set(gateway(alpha, www))
		},
		changes:  []string{"create www.example.com alpha"},
		findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
	{
		name: "the record goes when the permission has gone",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.RequiresPermission = true })
			managed(s, www, alphaAt)
			s.set(unpermitted(gateway(alpha, www)))
		},
		wait:     11 * time.Minute,
		changes:  []string{"delete www.example.com alpha"},
		findings: map[string]string{"alpha www.example.com": "Missing HostnameNotPermitted: the annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname, so no record is created for it."},
		unused:   nil,
	},
	{
		name: "a missing permission counts for a Gateway that is not accepted",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.RequiresPermission = true })
			managed(s, www, alphaAt)
			managed(s, "kept.example.com", alphaAt)
			g := unpermitted(gateway(alpha, www))
			g.State = ownership.Rejected
			s.set(g)
		},
		wait:     11 * time.Minute,
		changes:  []string{"delete www.example.com alpha"},
		findings: map[string]string{"alpha www.example.com": "Missing HostnameNotPermitted: the annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname, so no record is created for it."},
		unused:   map[dns.Verdict]int{dns.VerdictUnwanted: 1},
	},
	{
		name: "a missing permission waits for a paused Gateway, and the message says so",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.RequiresPermission = true })
			managed(s, www, alphaAt)
			g := unpermitted(gateway(alpha, www))
			g.State = ownership.Frozen
			s.set(g)
		},
		wait: time.Hour,
		findings: map[string]string{"alpha www.example.com": "Managed HostnameNotPermitted: the annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname. " +
			"The controller deletes its record when the Gateway is no longer paused or blocked."},
		unused: map[dns.Verdict]int{dns.VerdictUnwanted: 1},
	},
}

// unpermitted returns the Gateway without permission for its hostnames.
func unpermitted(g dns.Gateway) dns.Gateway {
	for i := range g.Hostnames {
		g.Hostnames[i].Permitted = false
	}
	return g
}

var stateCases = slices.Concat(
	inState("an unknown Gateway", ownership.Unknown, "Pending: the controller has not processed the Gateway yet."),
	inState("a paused Gateway", ownership.Frozen, "Pending: the controller changes no record while the Gateway is paused or its Tunnel is blocked."),
	inState("a Gateway that is not accepted", ownership.Rejected, "Pending: the controller creates no record until the Gateway is accepted."),
	[]goldenCase{
		{
			name: "no record before a connector has connected",
			setup: func(s *scenario) {
				g := gateway(alpha, www)
				g.Connected = false
				s.set(g)
			},
			findings: map[string]string{"alpha www.example.com": "Missing Pending: the controller creates the record after a connector has connected to the tunnel."},
		},
		{
			name: "no record before the tunnel serves a route, and an existing one remains",
			setup: func(s *scenario) {
				managed(s, "kept.example.com", alphaAt)
				g := gateway(alpha, www, "kept.example.com")
				g.Hostnames[0].Served, g.Hostnames[1].Served = false, false
				s.set(g)
			},
			wait: time.Hour,
			findings: map[string]string{
				"alpha kept.example.com": "Managed Published",
				"alpha www.example.com":  "Missing Pending: the controller creates the record when the tunnel serves a route for the hostname.",
			},
		},
		{
			name: "nothing is deleted or moved until every Gateway is known",
			setup: func(s *scenario) {
				s.facts.GatewaysKnown = false
				managed(s, www, betaAt)
				managed(s, "old.example.com", alphaAt)
				s.set(gateway(alpha, www))
			},
			wait:     time.Hour,
			findings: map[string]string{"alpha www.example.com": "Stale Pending: the record leads to another tunnel. The controller moves it."},
			unused:   map[dns.Verdict]int{dns.VerdictUnwanted: 1},
		},
		{
			name: "the record of a retained tunnel remains",
			setup: func(s *scenario) {
				managed(s, www, alphaAt)
				g := gateway(alpha)
				g.Class, g.State = "", ownership.Departed
				s.set(g)
			},
			wait: time.Hour, findings: map[string]string{}, unused: map[dns.Verdict]int{dns.VerdictUnwanted: 1},
		},
		{
			name: "the record of a retained tunnel moves after the deletion delay",
			setup: func(s *scenario) {
				managed(s, www, alphaAt)
				g := gateway(alpha)
				g.Class, g.State = "", ownership.Departed
				s.set(g)
				s.set(gateway(beta, www))
			},
			wait:     11 * time.Minute,
			changes:  []string{"move www.example.com beta"},
			findings: map[string]string{"beta www.example.com": "Managed Published"},
		},
	})

// inState returns the cases in which nothing happens for a Gateway in the state.
func inState(gatewayIs string, state ownership.State, missing string) []goldenCase {
	unused := map[dns.Verdict]int{dns.VerdictUnwanted: 1}
	if state == ownership.Unknown {
		unused = nil
	}
	return []goldenCase{{
		name: "nothing happens for " + gatewayIs,
		setup: func(s *scenario) {
			managed(s, "unwanted.example.com", alphaAt)
			managed(s, "repair.example.com", alphaAt, unproxied)
			managed(s, "moved.example.com", alphaAt)
			g := gateway(alpha, www, "repair.example.com")
			g.State = state
			s.set(g)
			s.set(gateway(beta, "moved.example.com"))
		},
		wait: time.Hour,
		findings: map[string]string{
			"alpha www.example.com":    "Missing " + missing,
			"alpha repair.example.com": "Managed NotProxied: a record leads to the tunnel, but Cloudflare does not proxy it, so requests do not arrive. Turn on the proxy for the record.",
			"beta moved.example.com": "Stale HeldByAnotherGateway: the record leads to another Gateway, which the controller has not processed yet, or which is not accepted, paused or blocked. " +
				"The controller moves the record when that Gateway no longer serves the hostname.",
		},
		unused: unused,
	}}
}

var zoneCases = []goldenCase{
	{
		name: "the zone of another account", zone: zones.Zone{Name: zone, Account: "other"}, setup: alphaServes(www),
		findings: map[string]string{"alpha www.example.com": "NoZone NoZone: zone example.com and the tunnel belong to different Cloudflare accounts. Use a hostname in a zone of the tunnel's account."},
	},
	{
		name: "a zone that is not active", zone: zones.Zone{Name: zone, Account: account, Status: zones.Pending}, setup: alphaServes(www),
		findings: map[string]string{"alpha www.example.com": "NoZone NoZone: zone example.com is not active. Complete its setup in the Cloudflare dashboard."},
	},
	{
		name: "a partial zone", zone: zones.Zone{Name: zone, Account: account, Type: zones.Partial}, setup: alphaServes(www),
		changes: []string{"create www.example.com alpha"}, findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
	{
		name: "no zone", zone: zones.Zone{Name: "example.net", Account: account}, setup: alphaServes(www),
		findings: map[string]string{"alpha www.example.com": "NoZone NoZone: the API token for DNS cannot read zone example.com. Add the zone to the Cloudflare account, or give the token access to it."},
	},
	{
		name: "several zones with the name",
		setup: func(s *scenario) {
			s.database.Add(zones.Zone{Name: zone, Account: "other"})
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "NoZone NoZone: the API token for DNS can read several zones named example.com. Set the zone's id in dns.zones."},
	},
	{
		name: "several zones with the name and an ID",
		setup: func(s *scenario) {
			s.database.Add(zones.Zone{Name: zone, Account: "other"})
			s.settings(func(d *settings.DNS) { d.Zones = []v1alpha1.DNSZone{{Name: zone, ID: s.id}} })
			s.set(gateway(alpha, www))
		},
		changes: []string{"create www.example.com alpha"}, findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
	{
		name: "a delegated name",
		setup: func(s *scenario) {
			s.add("team.example.com", "NS", "ns1.example.net")
			s.set(gateway(alpha, "team.example.com", "a.team.example.com", "*.team.example.com", "myteam.example.com"))
		},
		changes: []string{"create myteam.example.com alpha"},
		findings: map[string]string{
			"alpha team.example.com":   "NoZone NoZone: NS records delegate the name to other nameservers. Use a hostname that zone example.com does not delegate.",
			"alpha a.team.example.com": "NoZone NoZone: NS records delegate the name to other nameservers. Use a hostname that zone example.com does not delegate.",
			"alpha *.team.example.com": "NoZone NoZone: NS records delegate the name to other nameservers. Use a hostname that zone example.com does not delegate.",
			"alpha myteam.example.com": "Managed Published",
		},
	},
	{
		name: "an old record of a hostname in a listed child zone remains",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.Zones = []v1alpha1.DNSZone{{Name: zone}, {Name: "team.example.com"}} })
			managed(s, "a.team.example.com", alphaAt)
			s.set(gateway(alpha, "a.team.example.com", "b.team.example.com", www))
		},
		wait: time.Hour, changes: []string{"create www.example.com alpha"},
		findings: map[string]string{"alpha www.example.com": "Managed Published"},
	},
}

var settingsCases = []goldenCase{
	{
		name: "Observe changes nothing, and says how to get a record",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.Mode = v1alpha1.DNSObserve })
			managed(s, "old.example.com", alphaAt)
			managed(s, "stale.example.com", betaAt)
			s.set(gateway(alpha, www, "stale.example.com"))
		},
		wait: time.Hour,
		findings: map[string]string{
			"alpha www.example.com":   "Missing Pending: no record leads to the Gateway. Create a proxied CNAME record with the target tunnel-of-alpha.cfargotunnel.com, or set dns.mode to Manage.",
			"alpha stale.example.com": "Stale Pending: the record leads to another tunnel of this installation. Set dns.mode to Manage, or change the record.",
		},
		unused: map[dns.Verdict]int{dns.VerdictUnwanted: 1},
	},
	{
		name: "Observe promises no change of records that other Gateways no longer want",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.Mode = v1alpha1.DNSObserve })
			managed(s, www, betaAt)
			s.set(gateway(alpha, www))
			s.set(gateway(beta))
		},
		wait: time.Hour,
		findings: map[string]string{
			"alpha www.example.com": "Stale Pending: the record leads to another tunnel of this installation. Set dns.mode to Manage, or change the record.",
		},
	},
	{
		name: "Observe promises no record for a hostname that another Gateway had through a wildcard",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.Mode = v1alpha1.DNSObserve })
			managed(s, star, betaAt)
			s.set(gateway(beta, star, www))
			s.run()
			s.set(gateway(beta, star))
			s.set(gateway(alpha, www))
		},
		wait: time.Hour,
		findings: map[string]string{
			"alpha www.example.com": "Missing Pending: no record leads to the Gateway. Create a proxied CNAME record with the target tunnel-of-alpha.cfargotunnel.com, or set dns.mode to Manage.",
			"beta *.example.com":    "Managed Published",
		},
	},
	{
		name: "Observe promises no change of a record without a permission",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.Mode, d.RequiresPermission = v1alpha1.DNSObserve, true })
			managed(s, www, alphaAt)
			s.set(unpermitted(gateway(alpha, www, "new.example.com")))
		},
		wait: time.Hour,
		findings: map[string]string{
			"alpha www.example.com": "Managed HostnameNotPermitted: the annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname. " +
				"Its record remains: delete it, or permit the hostname.",
			"alpha new.example.com": "Missing HostnameNotPermitted: the annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname, so no record is created for it.",
		},
		unused: map[dns.Verdict]int{dns.VerdictUnwanted: 1},
	},
	{
		name: "Off changes nothing",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.Mode = v1alpha1.DNSOff })
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{},
	},
	{
		name: "exclude removes the mark and keeps the record",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.Exclude = []string{"*.internal.example.com", www} })
			managed(s, www, alphaAt)
			managed(s, "a.internal.example.com", alphaAt)
			s.set(gateway(alpha, www, "b.internal.example.com"))
		},
		wait: time.Hour, changes: []string{"release a.internal.example.com alpha", "release www.example.com alpha"}, findings: map[string]string{},
	},
	{
		name: "a younger class with other settings changes nothing",
		setup: func(s *scenario) {
			younger := s.facts.Classes[0]
			younger.Name, younger.Created = "young", epoch.Add(time.Hour)
			younger.Settings.DeletionDelay = time.Minute
			s.facts.Classes = append(s.facts.Classes, younger)
			managed(s, "old.example.com", alphaAt)
			g := gateway(alpha, www)
			g.Class = "young"
			s.set(g)
			s.set(gateway(beta, "b.example.com"))
		},
		wait: time.Hour, changes: []string{"create b.example.com beta"},
		findings: map[string]string{
			"alpha www.example.com": "Missing ZoneSettingsConflict: GatewayClass tunnel is older and lists zone example.com with other settings. Give both GatewayClasses the same settings in spec.dns and spec.hostnames.",
			"beta b.example.com":    "Managed Published",
		},
		unused: map[dns.Verdict]int{dns.VerdictUnwanted: 1},
	},
	{
		name: "two classes may exclude different hostnames",
		setup: func(s *scenario) {
			younger := s.facts.Classes[0]
			younger.Name, younger.Created = "young", epoch.Add(time.Hour)
			younger.Settings.Exclude = []string{www}
			s.facts.Classes = append(s.facts.Classes, younger)
			g := gateway(alpha, www)
			g.Class = "young"
			s.set(g)
			s.set(gateway(beta, www))
		},
		changes: []string{"create www.example.com beta"}, findings: map[string]string{"beta www.example.com": "Managed Published"},
	},
	{
		name: "the Gateway of a class that does not list the zone keeps its records",
		setup: func(s *scenario) {
			managed(s, www, alphaAt)
			g := gateway(alpha)
			g.Class = "other"
			s.set(g)
			s.set(gateway(beta, www))
		},
		wait: time.Hour,
		findings: map[string]string{"beta www.example.com": "Stale HeldByAnotherGateway: the record leads to another Gateway, which the controller has not processed yet, or which is not accepted, paused or blocked. " +
			"The controller moves the record when that Gateway no longer serves the hostname."},
	},
	{
		name: "without a token",
		setup: func(s *scenario) {
			s.facts.TokenVersion, s.facts.TokenMessage = "", "Secret dns-token not found."
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "Unread Forbidden: Secret dns-token not found."},
	},
	{
		name: "a token that can only read",
		setup: func(s *scenario) {
			s.cloud.Restrict("Zone Read", "DNS Read")
			s.add("ext.example.com", "CNAME", alphaAt)
			s.set(gateway(alpha, www, "ext.example.com"))
		},
		changes: []string{"failed: the API token lacks a permission for the zone or account, or the zone does not exist"},
		findings: map[string]string{
			"alpha www.example.com": "Missing Forbidden: the API token for DNS lacks the permission DNS: Edit for the zone. Give the token the permission, or replace it.",
			"alpha ext.example.com": "External Published",
		},
	},
	{
		name: "a token that can read no record",
		setup: func(s *scenario) {
			s.cloud.Restrict("Zone Read")
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "Unread Forbidden: the API token for DNS lacks the permission DNS: Read for the zone. Give the token the permission, or replace it."},
	},
	{
		name: "a token that Cloudflare rejects",
		setup: func(s *scenario) {
			s.cloud.Fail("Zones", provider.ErrUnauthorized)
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "Unread Forbidden: Cloudflare rejects the API token for DNS. Replace the token."},
	},
	{
		name: "without a key, records are only reported",
		setup: func(s *scenario) {
			s.facts.Options.Key = nil
			s.set(gateway(alpha, www))
		},
		findings: map[string]string{"alpha www.example.com": "Missing Pending: the controller has no key to sign records with. Fix the Secret with the signing key."},
	},
}

var quotaCases = []goldenCase{
	{
		name: "the youngest hostnames of a namespace exceed its limit",
		setup: func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.MaxRecordsPerNamespace = 2 })
			s.set(gateway(alpha, "c.example.com", "b.example.com", "a.example.com"))
			s.set(gateway(beta, "d.example.com"))
		},
		changes: []string{"create c.example.com alpha", "create d.example.com beta", "create b.example.com alpha"},
		findings: map[string]string{
			"alpha a.example.com": "Missing QuotaExceeded: the listeners of namespace team-a have 2 records in zone example.com, and dns.maxRecordsPerNamespace is 2. " +
				"Remove other hostnames, or ask the platform team to raise the limit.",
			"alpha b.example.com": "Managed Published", "alpha c.example.com": "Managed Published", "beta d.example.com": "Managed Published",
		},
	},
	{
		name: "the last tenth of the zone's quota remains free", zone: zones.Zone{Name: zone, Account: account, RecordQuota: 10},
		setup: func(s *scenario) {
			for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
				s.add(name+".example.com", "A", "192.0.2.1")
			}
			s.set(gateway(alpha, "a.example.com", "b.example.com"))
		},
		changes: []string{"create a.example.com alpha"},
		findings: map[string]string{
			"alpha a.example.com": "Managed Published",
			"alpha b.example.com": "Missing QuotaExceeded: the zone's record quota is used up, apart from the tenth that the controller leaves free. Delete records, or raise the quota of zone example.com.",
		},
	},
	{
		name: "without a known quota, Cloudflare's error counts", zone: zones.Zone{Name: zone, Account: account, RecordQuota: 1},
		setup: func(s *scenario) {
			s.cloud.Fail("Usage", errors503)
			s.set(gateway(alpha, "a.example.com", "b.example.com"))
		},
		wait: 2 * time.Minute,
		changes: []string{
			"failed: the Cloudflare quota of DNS records or of applications is exceeded", "create a.example.com alpha", "failed: the Cloudflare quota of DNS records or of applications is exceeded",
		},
		findings: map[string]string{
			"alpha a.example.com": "Managed Published",
			"alpha b.example.com": "Missing QuotaExceeded: the zone's record quota is used up, apart from the tenth that the controller leaves free. Delete records, or raise the quota of zone example.com.",
		},
	},
}

// EdgeCertificateReady is NotCovered for a hostname without an edge certificate, NotChecked
// where that is unknown, and otherwise Covered.
func TestCertificates(t *testing.T) {
	const (
		deep    = "a.b.example.com"
		covered = "Covered"
		unknown = "NotChecked"
	)
	notCovered := func(host string) string {
		return "NotCovered: no edge certificate covers it. Order one for " + host + "."
	}
	for name, c := range map[string]struct {
		hosts     []string // nil: the Universal certificate
		forbidden bool
		want      map[string]string
	}{
		"Universal SSL": {want: map[string]string{
			zone: covered, www: covered, star: covered, deep: notCovered("*.b.example.com"), "*.b.example.com": notCovered("*.b.example.com"),
		}},
		"a certificate for a wildcard": {hosts: []string{"*.b.example.com"}, want: map[string]string{
			zone: notCovered(zone), www: notCovered(star), star: notCovered(star), deep: covered, "*.b.example.com": covered,
		}},
		"a certificate for one name": {hosts: []string{deep}, want: map[string]string{
			zone: notCovered(zone), www: notCovered(star), star: notCovered(star), deep: covered, "*.b.example.com": notCovered("*.b.example.com"),
		}},
		"certificates that cannot be read": {forbidden: true, want: map[string]string{
			zone: covered, www: covered, star: covered, deep: unknown, "*.b.example.com": unknown,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			z := zones.Zone{Name: zone, Account: account}
			if c.hosts != nil {
				z.CertificatePacks = []zones.CertificatePack{{Hosts: c.hosts, Status: "active"}}
			}
			s := newScenarioIn(t, z)
			if c.forbidden {
				s.cloud.Restrict("Zone Read", "DNS Edit")
			}
			s.set(gateway(alpha, zone, www, star, deep, "*.b.example.com"))
			s.run()
			got := map[string]string{}
			for hostname, f := range s.report().Gateways[alpha] {
				got[hostname] = map[dns.Certificate]string{
					dns.CertificateCovers: covered, dns.CertificateUnknown: unknown, dns.CertificateMissing: "NotCovered: " + f.CertificateMessage,
				}[f.Certificate]
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("certificates differ (-want +got):\n%s", diff)
			}
		})
	}
}
