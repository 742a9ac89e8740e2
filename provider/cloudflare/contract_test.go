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
			SetDocument: func(id provider.TunnelID, c provider.Configuration) {
				edge.SetDocument(string(id), wireForm(t, c))
			},
			SetConnected: func(id provider.TunnelID, connected bool) {
				replicas := 0
				if connected {
					replicas = 2
				}
				edge.Connect(string(id), replicas)
			},
			SetLocal: func(id provider.TunnelID, local bool) { edge.SetLocal(string(id), local) },
		}
	})
}

func wireForm(t *testing.T, c provider.Configuration) json.RawMessage {
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
