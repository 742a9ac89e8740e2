package cloudflare

import (
	"crypto/rand"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/providertest"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func TestContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		token := rand.Text()
		edge := simulator.New(simulator.Options{AccountID: account, Token: token})
		server := httptest.NewServer(edge.API())
		t.Cleanup(server.Close)
		return providertest.Fixture{
			Provider:  newProvider(t, Options{AccountID: account, APIToken: token, BaseURL: server.URL + "/client/v4"}),
			AccountID: account,
			Cloud:     cloud{t, edge},
		}
	})
}

// cloud adapts the simulator to the types in package provider.
type cloud struct {
	t    *testing.T
	edge *simulator.Server
}

func (c cloud) SetConfiguration(id provider.TunnelID, configuration provider.Configuration) {
	c.edge.SetConfiguration(string(id), encoded(c.t, configuration))
}

func (c cloud) SetConnected(id provider.TunnelID, connected bool) {
	replicas := 0
	if connected {
		replicas = 2
	}
	c.edge.Connect(string(id), replicas)
}

func (c cloud) SetLocal(id provider.TunnelID, local bool)   { c.edge.SetLocal(string(id), local) }
func (c cloud) SetRoutes(id provider.TunnelID, routes bool) { c.edge.SetRoutes(string(id), routes) }

func (c cloud) StartConnector(token provider.Token) (provider.ConnectorID, error) {
	connector, err := c.edge.StartConnector(string(token))
	return provider.ConnectorID(connector), err
}

func (c cloud) StopConnector(id provider.TunnelID, connector provider.ConnectorID) {
	c.edge.StopConnector(string(id), string(connector))
}

func (c cloud) Crash(id provider.TunnelID, connectors ...provider.ConnectorID) {
	var ids []string
	for _, connector := range connectors {
		ids = append(ids, string(connector))
	}
	c.edge.Crash(string(id), ids...)
}

func encoded(t *testing.T, c provider.Configuration) json.RawMessage {
	t.Helper()
	body, err := encode(c)
	if err != nil {
		t.Fatal(err)
	}
	var request struct {
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	return request.Config
}
