package simulator_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/cloudflare/cloudflare-go/v7"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/shared"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"
	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	account = "0123456789abcdef0123456789abcdef"
	token   = "secret-token"
)

var discard = log.New(io.Discard, "", 0)

// client is the official client for the Cloudflare API, for one account.
type client struct {
	*cloudflare.Client
}

func newClient(url string, options ...option.RequestOption) client {
	return client{cloudflare.NewClient(append([]option.RequestOption{
		option.WithBaseURL(url + "/client/v4/"), option.WithAPIToken(token), option.WithMaxRetries(0),
	}, options...)...)}
}

// newAPI returns a server, and a client for its API.
func newAPI(t *testing.T, o simulator.Options) (*simulator.Server, client) {
	t.Helper()
	s := simulator.New(o)
	server := httptest.NewServer(s.API())
	t.Cleanup(server.Close)
	return s, newClient(server.URL)
}

func (c client) new(ctx context.Context, name string) (*shared.CloudflareTunnel, error) {
	return c.ZeroTrust.Tunnels.Cloudflared.New(ctx, zero_trust.TunnelCloudflaredNewParams{
		AccountID: cloudflare.F(account),
		Name:      cloudflare.F(name),
		ConfigSrc: cloudflare.F(zero_trust.TunnelCloudflaredNewParamsConfigSrcCloudflare),
	})
}

func (c client) create(t *testing.T, name string) *shared.CloudflareTunnel {
	t.Helper()
	tunnel, err := c.new(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return tunnel
}

func (c client) delete(ctx context.Context, id string) (*shared.CloudflareTunnel, error) {
	return c.ZeroTrust.Tunnels.Cloudflared.Delete(ctx, id,
		zero_trust.TunnelCloudflaredDeleteParams{AccountID: cloudflare.F(account)})
}

func (c client) get(ctx context.Context, id string) (*shared.CloudflareTunnel, error) {
	return c.ZeroTrust.Tunnels.Cloudflared.Get(ctx, id,
		zero_trust.TunnelCloudflaredGetParams{AccountID: cloudflare.F(account)})
}

func (c client) configuration(
	ctx context.Context, id string,
) (*zero_trust.TunnelCloudflaredConfigurationGetResponse, error) {
	return c.ZeroTrust.Tunnels.Cloudflared.Configurations.Get(ctx, id,
		zero_trust.TunnelCloudflaredConfigurationGetParams{AccountID: cloudflare.F(account)})
}

// configure sends a configuration unchanged.
func (c client) configure(
	ctx context.Context, id, configuration string,
) (*zero_trust.TunnelCloudflaredConfigurationUpdateResponse, error) {
	return c.ZeroTrust.Tunnels.Cloudflared.Configurations.Update(ctx, id,
		zero_trust.TunnelCloudflaredConfigurationUpdateParams{AccountID: cloudflare.F(account)},
		option.WithRequestBody("application/json", []byte(`{"config":`+configuration+`}`)))
}

func (c client) names(t *testing.T, filter func(*zero_trust.TunnelCloudflaredListParams)) []string {
	t.Helper()
	params := zero_trust.TunnelCloudflaredListParams{AccountID: cloudflare.F(account)}
	filter(&params)
	names := []string{}
	pages := c.ZeroTrust.Tunnels.Cloudflared.ListAutoPaging(t.Context(), params)
	for pages.Next() {
		names = append(names, pages.Current().Name)
	}
	if err := pages.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// wantError checks an API error's status and code.
func wantError(t *testing.T, err error, status int, code int64) {
	t.Helper()
	var failed *cloudflare.Error
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want an API error", err)
	}
	if failed.StatusCode != status || len(failed.Errors) != 1 || failed.Errors[0].Code != code {
		t.Errorf("status %d, errors %v, want %d and code %d", failed.StatusCode, failed.Errors, status, code)
	}
}

// tunnelToken returns the token with which the tunnel's connectors are started.
func (c client) tunnelToken(t *testing.T, id string) string {
	t.Helper()
	encoded, err := c.ZeroTrust.Tunnels.Cloudflared.Token.Get(t.Context(), id,
		zero_trust.TunnelCloudflaredTokenGetParams{AccountID: cloudflare.F(account)})
	if err != nil {
		t.Fatal(err)
	}
	return *encoded
}

func (c client) connectors(t *testing.T, id string) []zero_trust.Client {
	t.Helper()
	page, err := c.ZeroTrust.Tunnels.Cloudflared.Connections.Get(t.Context(), id,
		zero_trust.TunnelCloudflaredConnectionGetParams{AccountID: cloudflare.F(account)})
	if err != nil {
		t.Fatal(err)
	}
	return page.Result
}

// pending returns is_pending_reconnect for each listed connector. The client does
// not support this field.
func (c client) pending(t *testing.T, id string) []bool {
	t.Helper()
	all := []bool{}
	for _, connector := range c.connectors(t, id) {
		for i, conn := range connector.Conns {
			raw := conn.JSON.ExtraFields["is_pending_reconnect"].Raw()
			if pending := raw == "true"; i == 0 {
				all = append(all, pending)
			} else if pending != all[len(all)-1] || raw == "" {
				t.Errorf("connections of one connector differ: %s", connector.JSON.RawJSON())
			}
		}
	}
	return all
}

// edit changes a tunnel. It sends the body unchanged.
func (c client) edit(t *testing.T, id, body string) {
	t.Helper()
	if err := c.tryEdit(t.Context(), id, body); err != nil {
		t.Fatal(err)
	}
}

func (c client) tryEdit(ctx context.Context, id, body string) error {
	_, err := c.ZeroTrust.Tunnels.Cloudflared.Edit(ctx, id,
		zero_trust.TunnelCloudflaredEditParams{AccountID: cloudflare.F(account)},
		option.WithRequestBody("application/json", []byte(body)))
	return err
}

// newSecret returns a valid tunnel secret.
func newSecret() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	return base64.StdEncoding.EncodeToString(secret)
}

// disconnectAll deletes the connections of all connectors.
func (c client) disconnectAll(t *testing.T, id string) {
	t.Helper()
	c.deleteConnections(t, id, zero_trust.TunnelCloudflaredConnectionDeleteParams{AccountID: cloudflare.F(account)})
}

// disconnect deletes the connections of one connector.
func (c client) disconnect(t *testing.T, id, connector string) {
	t.Helper()
	c.deleteConnections(t, id, zero_trust.TunnelCloudflaredConnectionDeleteParams{
		AccountID: cloudflare.F(account), ClientID: cloudflare.F(connector),
	})
}

func (c client) deleteConnections(t *testing.T, id string, params zero_trust.TunnelCloudflaredConnectionDeleteParams) {
	t.Helper()
	if _, err := c.ZeroTrust.Tunnels.Cloudflared.Connections.Delete(t.Context(), id, params); err != nil {
		t.Fatal(err)
	}
}

func wantJSON(t *testing.T, got json.RawMessage, want string) {
	t.Helper()
	var gotValue, wantValue any
	if err := errors.Join(json.Unmarshal(got, &gotValue), json.Unmarshal([]byte(want), &wantValue)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantValue, gotValue); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}
