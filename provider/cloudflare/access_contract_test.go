package cloudflare

import (
	"crypto/rand"
	"net/http/httptest"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/provider/providertest"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func TestAccessContract(t *testing.T) {
	providertest.RunAccess(t, func(t *testing.T) providertest.AccessFixture {
		token := rand.Text()
		database := access.New(providertest.AccessOptions())
		edge := simulator.New(simulator.Options{AccountID: account, Token: "another", Access: database})
		edge.Restrict(token, simulator.Grant{Permissions: []simulator.Permission{simulator.AccessEdit}})
		server := httptest.NewServer(edge.API())
		t.Cleanup(server.Close)
		o := Options{AccountID: account, APIToken: "another", BaseURL: server.URL + "/client/v4"}
		return providertest.AccessFixture{
			Access: openAccess(t, new(Client), o, token), Other: openAccess(t, new(Client), o, ""),
			Database: database, Account: account,
			Restrict: func(permissions ...string) {
				var grant simulator.Grant
				for _, p := range permissions {
					grant.Permissions = append(grant.Permissions, simulator.Permission(p))
				}
				edge.Restrict(token, grant)
			},
		}
	})
}

func openAccess(t *testing.T, c *Client, o Options, token string) *Access {
	t.Helper()
	a, err := c.OpenAccess(o, token)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
