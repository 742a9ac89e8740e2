package cloudflare

import (
	"crypto/rand"
	"net/http/httptest"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/provider/providertest"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

func TestDNSContract(t *testing.T) {
	providertest.RunDNS(t, func(t *testing.T) providertest.DNSFixture {
		token := rand.Text()
		database := zones.New(zones.Options{})
		edge := simulator.New(simulator.Options{AccountID: account, Token: "another", Zones: database})
		edge.Restrict(token, everyPermission)
		server := httptest.NewServer(edge.API())
		t.Cleanup(server.Close)
		o := Options{AccountID: account, APIToken: "another", BaseURL: server.URL + "/client/v4"}
		d, err := new(Client).OpenDNS(o, token)
		if err != nil {
			t.Fatal(err)
		}
		return providertest.DNSFixture{DNS: d, Database: database, Restrict: func(permissions ...string) {
			var grant simulator.Grant
			for _, p := range permissions {
				grant.Permissions = append(grant.Permissions, simulator.Permission(p))
			}
			edge.Restrict(token, grant)
		}}
	})
}

// everyPermission grants all permissions for DNS, and none for tunnels.
var everyPermission = simulator.Grant{Permissions: []simulator.Permission{
	simulator.ZoneRead, simulator.DNSEdit, simulator.SSLRead, simulator.SettingsRead,
}}
