package cloudflare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// configurationResponse is the API's response with a configuration. The cloudflare-go
// type is not used because it drops unknown fields.
type configurationResponse struct {
	Result *struct {
		Version provider.Version `json:"version"`
		Config  json.RawMessage  `json:"config"`
		// Source is "cloudflare" or "local"; empty means "cloudflare".
		Source string `json:"source"`
	} `json:"result"`
}

// check returns the error for a success response that has no result or belongs to a
// locally managed tunnel.
func (r *configurationResponse) check() error {
	switch {
	case r.Result == nil:
		return unexpected("no result")
	case r.Result.Source == string(zero_trust.TunnelCloudflaredConfigurationGetResponseSourceLocal):
		return provider.ErrLocallyManaged
	}
	return nil
}

// Configuration is documented at [provider.Provider].
func (p *Provider) Configuration(
	ctx context.Context, id provider.TunnelID,
) (c provider.Configuration, version provider.Version, err error) {
	err = run(ctx, fmt.Sprintf("read the configuration of tunnel %q", id), func(ctx context.Context) error {
		c, version, err = p.read(ctx, id)
		return err
	})
	return c, version, err
}

func (p *Provider) read(
	ctx context.Context, id provider.TunnelID,
) (provider.Configuration, provider.Version, error) {
	encoded, version, err := p.readRaw(ctx, id)
	if err != nil {
		return provider.Configuration{}, 0, err
	}
	c, err := decode(encoded)
	return c, version, err
}

// RawConfiguration returns the tunnel's configuration as the API returns it, with the
// fields that [provider.OriginRequest] does not have. It is empty or null for a tunnel that
// was never configured. The errors are those of [Provider.Configuration].
func (p *Provider) RawConfiguration(ctx context.Context, id provider.TunnelID) (encoded json.RawMessage, err error) {
	err = run(ctx, fmt.Sprintf("read the configuration of tunnel %q", id), func(ctx context.Context) error {
		encoded, _, err = p.readRaw(ctx, id)
		return err
	})
	return encoded, err
}

func (p *Provider) readRaw(ctx context.Context, id provider.TunnelID) (json.RawMessage, provider.Version, error) {
	if err := checkID(id); err != nil {
		return nil, 0, err
	}
	var params zero_trust.TunnelCloudflaredConfigurationGetParams
	params.AccountID.Value = p.accountID
	var response configurationResponse
	err := p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		options = append(options, option.WithResponseBodyInto(&response))
		_, err := p.tunnels.Configurations.Get(ctx, string(id), params, options...)
		return err
	})
	if err == nil {
		err = response.check()
	}
	if err != nil {
		return nil, 0, err
	}
	return response.Result.Config, response.Result.Version, nil
}

// Configure is documented at [provider.Provider].
func (p *Provider) Configure(
	ctx context.Context, id provider.TunnelID, c provider.Configuration,
) (version provider.Version, err error) {
	err = run(ctx, fmt.Sprintf("configure tunnel %q", id), func(ctx context.Context) error {
		version, err = p.write(ctx, id, c)
		return err
	})
	return version, err
}

func (p *Provider) write(
	ctx context.Context, id provider.TunnelID, c provider.Configuration,
) (provider.Version, error) {
	if err := provider.Validate(c); err != nil {
		return 0, err
	}
	if err := checkID(id); err != nil {
		return 0, err
	}
	body, err := encode(c)
	if err != nil {
		return 0, err
	}
	var params zero_trust.TunnelCloudflaredConfigurationUpdateParams
	params.AccountID.Value = p.accountID
	var response configurationResponse
	err = p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		var encoded []byte // the client's decoder would copy it several times
		options = append(options,
			option.WithRequestBody("application/json", body), option.WithResponseBodyInto(&encoded))
		_, err := p.tunnels.Configurations.Update(ctx, string(id), params, options...)
		if err != nil {
			return err
		}
		return json.Unmarshal(encoded, &response)
	})
	if e, ok := errors.AsType[*responseError](err); ok && e.status == http.StatusBadRequest {
		return 0, &provider.InvalidError{Rule: -1, Message: e.message}
	}
	if err == nil {
		err = response.check()
	}
	if err != nil {
		return 0, err
	}
	return response.Result.Version, nil
}

// knownFields are the top-level fields that [provider.Configuration] has fields for.
var knownFields = []string{"ingress", "originRequest"}

// decode parses a configuration. The API returns null for a tunnel that was never
// configured.
func decode(encoded json.RawMessage) (provider.Configuration, error) {
	var c provider.Configuration
	if len(encoded) == 0 {
		return c, nil
	}
	err := json.Unmarshal(encoded, &c)
	if err == nil {
		err = json.Unmarshal(encoded, &c.UnknownFields)
	}
	if err != nil {
		return provider.Configuration{}, fmt.Errorf(
			"cannot parse the remote configuration; fix or clear it in the Cloudflare dashboard: %w", err)
	}
	for _, field := range knownFields {
		delete(c.UnknownFields, field)
	}
	return c, nil
}

// encode returns the request body for a configuration, including its unknown fields.
func encode(c provider.Configuration) ([]byte, error) {
	if c.Ingress == nil {
		c.Ingress = []provider.IngressRule{}
	}
	fields := map[string]any{}
	for name, value := range c.UnknownFields {
		fields[name] = value
	}
	fields["ingress"] = c.Ingress
	if c.OriginRequest != (provider.OriginRequest{}) {
		fields["originRequest"] = c.OriginRequest
	}
	body, err := json.Marshal(map[string]any{"config": fields})
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return body, nil
}
