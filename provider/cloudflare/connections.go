package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// connectionsResponse is the API's response with a tunnel's connectors. The cloudflare-go
// type lacks is_pending_reconnect.
type connectionsResponse struct {
	Result *[]struct {
		ID            provider.ConnectorID `json:"id"`
		RunAt         time.Time            `json:"run_at"`
		ConfigVersion provider.Version     `json:"config_version"`
		Conns         []struct {
			IsPendingReconnect bool `json:"is_pending_reconnect"`
		} `json:"conns"`
	} `json:"result"`
}

// connectors returns the listed connectors, or an error if the response is unexpected.
func (r *connectionsResponse) connectors() ([]provider.Connector, error) {
	if r.Result == nil {
		return nil, unexpected("no list of connectors")
	}
	var all []provider.Connector
	for _, listed := range *r.Result {
		if listed.ID == "" {
			return nil, unexpected("a connector without an ID")
		}
		connector := provider.Connector{
			ID: listed.ID, ConnectedAt: listed.RunAt, ConfigVersion: listed.ConfigVersion,
		}
		for _, connection := range listed.Conns {
			connector.Connected = connector.Connected || !connection.IsPendingReconnect
		}
		all = append(all, connector)
	}
	return all, nil
}

// Connections is documented at [provider.Provider].
func (p *Provider) Connections(ctx context.Context, id provider.TunnelID) (connectors []provider.Connector, err error) {
	err = run(ctx, fmt.Sprintf("list the connections of tunnel %q", id), func(ctx context.Context) error {
		connectors, err = p.connections(ctx, id)
		return err
	})
	return connectors, err
}

func (p *Provider) connections(ctx context.Context, id provider.TunnelID) ([]provider.Connector, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	var params zero_trust.TunnelCloudflaredConnectionGetParams
	params.AccountID.Value = p.accountID
	var response connectionsResponse
	err := p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		options = append(options, option.WithResponseBodyInto(&response))
		_, err := p.tunnels.Connections.Get(ctx, string(id), params, options...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return response.connectors()
}

// Disconnect is documented at [provider.Provider].
func (p *Provider) Disconnect(ctx context.Context, id provider.TunnelID, connector provider.ConnectorID) error {
	return run(ctx, fmt.Sprintf("disconnect connector %q of tunnel %q", connector, id), func(ctx context.Context) error {
		err := p.disconnect(ctx, id, connector)
		if errors.Is(err, provider.ErrNotFound) {
			return nil
		}
		return err
	})
}

func (p *Provider) disconnect(ctx context.Context, id provider.TunnelID, connector provider.ConnectorID) error {
	if connector == "" {
		return errors.New("the connector ID is empty")
	}
	if err := checkID(id); err != nil {
		return err
	}
	var params zero_trust.TunnelCloudflaredConnectionDeleteParams
	params.AccountID.Value = p.accountID
	params.ClientID.Value, params.ClientID.Present = string(connector), true
	return p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		_, err := p.tunnels.Connections.Delete(ctx, string(id), params, options...)
		return err
	})
}
