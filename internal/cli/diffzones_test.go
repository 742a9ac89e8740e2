package cli_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// dnsManifests are the Gateway changed with a GatewayClass that manages example.com, and
// the Secret with the API token for DNS, in the cluster of its Tunnel.
func (e *edge) dnsManifests(t *testing.T, mode, token string) string {
	t.Helper()
	class := "{controllerName: tunnelgateway.dev/controller, parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: tunnel-gateway, name: dns}}"
	manifests := strings.Replace(e.manifests(t, "changed"), "{controllerName: tunnelgateway.dev/controller}", class, 1) + `
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: b1c5e9a4-5a0f-4a2e-9d4b-0f3f5a0c7c11}}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: dns, namespace: tunnel-gateway}
spec:
  hostnames: {from: NamespaceAnnotation}
  dns: {mode: ` + mode + `, zones: [{name: example.com}], apiToken: {name: dns}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: platform, annotations: {tunnelgateway.dev/hostnames: "*"}}}
`
	if token != "" {
		manifests += "---\n{apiVersion: v1, kind: Secret, metadata: {name: dns, namespace: tunnel-gateway}, stringData: {token: " + token + "}}\n"
	}
	return manifests
}

// addZone adds the zone example.com, where one hostname conflicts, one has a record, and
// one has none.
func (e *edge) addZone(t *testing.T) {
	t.Helper()
	id := e.zones.Add(zones.Zone{Name: "example.com", Account: "main"})
	for _, r := range [][3]string{{"a.example.com", "CNAME", e.ids["changed"] + ".cfargotunnel.com"}, {"b.example.com", "A", "192.0.2.1"}} {
		if _, err := e.zones.Create(id, zones.Fields{Name: &r[0], Type: &r[1], Content: &r[2], Proxied: new(true)}); err != nil {
			t.Fatal(err)
		}
	}
}

const (
	zoneChanges = "the controller would change these records\n+ create c.example.com (Gateway platform/changed)\n" +
		"Gateway platform/changed: b.example.com: RecordConflict: an A record in zone example.com is not managed by this controller. Adopt it, delete it, or exclude the hostname.\n"
	zoneObserved = "Zone example.com: with dns.mode Manage, " + zoneChanges
	zoneManaged  = "Zone example.com: " + zoneChanges
)

func TestDiffReadsTheZones(t *testing.T) {
	for name, test := range map[string]struct {
		mode         string
		permissions  []simulator.Permission // of the token for DNS; nil if its Secret does not exist
		strictStatus int
		want         string
	}{
		"Manage":             {"Manage", []simulator.Permission{simulator.ZoneRead, simulator.DNSRead}, 2, zoneManaged},
		"Observe":            {"Observe", []simulator.Permission{simulator.ZoneRead, simulator.DNSRead}, 2, zoneObserved},
		"without DNS: Read":  {"Manage", []simulator.Permission{simulator.ZoneRead}, 3, "; the API token requires the permissions Zone: Read and DNS: Read for the zone\n"},
		"without the Secret": {"Manage", nil, 3, "; the API token requires the permissions Zone: Read and DNS: Read for the zone\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t)
			e.addZone(t)
			e.Restrict(e.mainToken, simulator.Grant{Permissions: []simulator.Permission{simulator.TunnelEdit}})
			token := ""
			if test.permissions != nil {
				token = rand.Text()
				e.Restrict(token, simulator.Grant{Permissions: test.permissions})
			}
			e.ResetRequests()
			got := run(t, e.dnsManifests(t, test.mode, token), "plan", "-f", "-", "--diff", "--strict")
			if token != "" && strings.Contains(got.stdout+got.stderr, token) {
				t.Error("the output contains the token for DNS")
			}
			e.wantStatus(t, got, test.strictStatus, "")
			if !strings.HasSuffix(got.stdout, test.want) {
				t.Errorf("the output does not end with %q:\n%s", test.want, got.stdout)
			}
			e.wantOnlyReads(t)
		})
	}
}

// Only a cluster tells which records belong to the controller.
func TestDiffOfManifestsReadsNoZone(t *testing.T) {
	e := newEdge(t)
	e.addZone(t)
	manifests := strings.Replace(e.dnsManifests(t, "Manage", ""), "name: kube-system", "name: other", 1)
	got := run(t, manifests, "plan", "-f", "-", "--diff")
	e.wantStatus(t, got, 3, "")
	if want := "Zone example.com: not compared: DNS was not read, "; strings.Count(got.stdout, want) != 1 {
		t.Errorf("the output does not contain %q once:\n%s", want, got.stdout)
	}
	for _, request := range e.Requests() {
		if strings.Contains(request.Path, "/zones") {
			t.Errorf("unexpected request %s", request.Path)
		}
	}
}
