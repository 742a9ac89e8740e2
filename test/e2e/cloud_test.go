package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// The prefix that the tests clean up, and another run's prefix.
const (
	ownPrefix   = "e2e-0123abcd"
	otherPrefix = "e2e-0123abce"
)

// newTestPlace returns a simulator in which both runs have left a tunnel and a record.
// Further records only look like the run's.
func newTestPlace(t *testing.T) (*place, *cloud) {
	t.Helper()
	p, err := newSimulator("/none/connector", hooks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	c, err := openCloud(t.Context(), p.account)
	if err != nil {
		t.Fatal(err)
	}
	batch := provider.Batch{}
	for _, prefix := range []string{ownPrefix, otherPrefix} {
		created, err := c.tunnels.CreateTunnel(t.Context(), prefix+"."+prefix+".e2e")
		if err != nil {
			t.Fatal(err)
		}
		p.simulator.Connect(string(created.ID), 2)
		p.simulator.Crash(string(created.ID)) // Cloudflare still lists them
		batch.Creates = append(batch.Creates, provider.CNAME{Name: prefix + "-web.example.com", Target: created.ID.Hostname(), Comment: "tgw " + prefix + " mac"})
	}
	batch.Creates = append(batch.Creates,
		provider.CNAME{Name: ownPrefix + "-mine.example.com", Target: "www.example.net", Comment: "made by hand"},
		provider.CNAME{Name: "www.example.com", Target: "www.example.net", Comment: "tgw " + ownPrefix + " mac"})
	if _, err := c.tunnels.CreateTunnel(t.Context(), ownPrefix+"0.team.web"); err != nil {
		t.Fatal(err)
	}
	if err := c.apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return p, c
}

// kinds returns the first words and the names of what exists, without IDs.
func kinds(p *place) (names []string) {
	for _, name := range existing(p) {
		names = append(names, name[:strings.LastIndex(name, " (")])
	}
	slices.Sort(names)
	return names
}

var (
	// kept is what no removal may touch, and left what the run has left.
	kept = []string{
		"CNAME record e2e-0123abcd-mine.example.com", "CNAME record e2e-0123abce-web.example.com", "CNAME record www.example.com",
		"tunnel e2e-0123abcd0.team.web", "tunnel e2e-0123abce.e2e-0123abce.e2e",
	}
	leftTunnel = "tunnel e2e-0123abcd.e2e-0123abcd.e2e"
	leftRecord = "CNAME record e2e-0123abcd-web.example.com"
)

// cleanUp runs the command with -clean and the place's account.
func cleanUp(t *testing.T, p *place, prefix string) (status int, output string) {
	t.Helper()
	for name, value := range map[string]string{
		"CLOUDFLARE_BASE_URL": p.api, "CLOUDFLARE_ACCOUNT_ID": p.id, "CLOUDFLARE_API_TOKEN": p.token, "CLOUDFLARE_ZONE": p.zone,
	} {
		t.Setenv(name, value)
	}
	o := testOptions(t)
	o.simulator, o.clean = false, prefix
	return runCommand(t.Context(), t, o)
}

func TestCleanRemovesOnlyWhatTheRunHasLeft(t *testing.T) {
	p, _ := newTestPlace(t)
	status, output := cleanUp(t, p, ownPrefix)
	if status != statusOK || !strings.Contains(output, "Nothing of "+ownPrefix+" is left at Cloudflare.") {
		t.Errorf("status %d, want %d", status, statusOK)
	}
	if diff := cmp.Diff(kept, kinds(p)); diff != "" {
		t.Errorf("existing (-want +got):\n%s", diff)
	}
}

// TestRemovalWaitsForConnectors shows that a tunnel is left whose connectors still run, as
// a killed program's connectors can for a moment.
func TestRemovalWaitsForConnectors(t *testing.T) {
	t.Parallel()
	p, c := newTestPlace(t)
	own, err := c.tunnels.FindTunnel(t.Context(), ownPrefix+"."+ownPrefix+".e2e")
	if err != nil {
		t.Fatal(err)
	}
	p.simulator.Connect(string(own.ID), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	time.AfterFunc(3*time.Second, func() { p.simulator.Disconnect(string(own.ID)) })
	if _, left, err := c.remove(ctx, ownPrefix); err != nil || !left.isEmpty() {
		t.Errorf("left are %q, %v", left.names(), err)
	}
	p.simulator.Connect(createTunnel(t, c), 1)
	ended, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, left, err := c.remove(ended, ownPrefix); err == nil || len(left.tunnels) != 1 {
		t.Errorf("left are %q, %v, want the tunnel", left.names(), err)
	}
}

// createTunnel creates the run's tunnel again, and returns its ID.
func createTunnel(t *testing.T, c *cloud) string {
	t.Helper()
	created, err := c.tunnels.CreateTunnel(t.Context(), ownPrefix+"."+ownPrefix+".e2e")
	if err != nil {
		t.Fatal(err)
	}
	return string(created.ID)
}

// TestCleanReportsWhatIsLeft covers what Cloudflare refuses. Everything else is removed.
func TestCleanReportsWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(p *place, tunnel string)
		left  []string
	}{
		"the tunnel has routes": {func(p *place, tunnel string) { p.simulator.SetRoutes(tunnel, true) }, []string{leftTunnel}},
		"the token may not delete records": {func(p *place, _ string) {
			p.simulator.Inject(simulator.Fault{Method: http.MethodPost, Path: "/zones/*/dns_records/batch", Status: http.StatusForbidden})
		}, []string{leftRecord}},
		"the token is revoked": {func(p *place, _ string) {
			p.simulator.Inject(simulator.Fault{Method: http.MethodDelete, Status: http.StatusUnauthorized})
			p.simulator.Inject(simulator.Fault{Method: http.MethodPost, Status: http.StatusUnauthorized})
		}, []string{leftRecord, leftTunnel}},
	} {
		t.Run(name, func(t *testing.T) {
			p, cloud := newTestPlace(t)
			own, err := cloud.tunnels.FindTunnel(t.Context(), ownPrefix+"."+ownPrefix+".e2e")
			if err != nil {
				t.Fatal(err)
			}
			c.fault(p, string(own.ID))
			status, output := cleanUp(t, p, ownPrefix)
			if status != statusLeft || !strings.Contains(output, "ARGS=-clean="+ownPrefix) {
				t.Errorf("status %d, want %d", status, statusLeft)
			}
			for _, name := range []string{leftRecord, leftTunnel} {
				if got, want := strings.Contains(output, "LEFT "+name), slices.Contains(c.left, name); got != want {
					t.Errorf("the output says that %s is left: %t, want %t", name, got, want)
				}
			}
			if diff := cmp.Diff(sorted(slices.Concat(kept, c.left)), kinds(p)); diff != "" {
				t.Errorf("existing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCleanRejectsOtherPrefixes(t *testing.T) {
	p, _ := newTestPlace(t)
	before := kinds(p)
	for _, prefix := range []string{"e2e-", "e2e-0123", "e2e-0123abcd0", "www", "e2e-0123ABCD", "prod"} {
		status, output := cleanUp(t, p, prefix)
		if status != statusError || !strings.Contains(output, "eight hexadecimal digits") {
			t.Errorf("-clean=%s: status %d", prefix, status)
		}
	}
	if diff := cmp.Diff(before, kinds(p)); diff != "" {
		t.Errorf("existing (-before +after):\n%s", diff)
	}
}

// TestTheAccountIsCheckedBeforeTheFirstWrite shows what a user has to change.
func TestTheAccountIsCheckedBeforeTheFirstWrite(t *testing.T) {
	p, _ := newTestPlace(t)
	p.zones.Add(zones.Zone{Name: "pending.example", Account: p.id, Status: zones.Pending})
	p.simulator.Restrict("tunnels", simulator.Grant{Permissions: []simulator.Permission{simulator.TunnelEdit}})
	p.simulator.Restrict("zones", simulator.Grant{Permissions: []simulator.Permission{simulator.ZoneRead, simulator.DNSEdit}})
	p.simulator.Restrict("reader", simulator.Grant{Permissions: []simulator.Permission{simulator.TunnelEdit, simulator.ZoneRead}})
	for name, c := range map[string]struct {
		account account
		want    string
	}{
		"no permission for tunnels": {account{token: "zones", zone: p.zone}, "Cloudflare Tunnel: Edit"},
		"no permission for zones":   {account{token: "tunnels", zone: p.zone}, "example.com"},
		"no permission for records": {account{token: "reader", zone: p.zone}, "DNS: Edit"},
		"another zone":              {account{token: p.token, zone: "example.org"}, "has no active zone example.org"},
		"a pending zone":            {account{token: p.token, zone: "pending.example"}, "has no active zone pending.example"},
	} {
		t.Run(name, func(t *testing.T) {
			c.account.api, c.account.id = p.api, p.id
			if _, err := openCloud(t.Context(), c.account); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to contain %q", err, c.want)
			}
		})
	}
}
