package cloudflare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// configurationAnswer is the API's envelope around a document. The client's
// own type drops what it does not model.
type configurationAnswer struct {
	Result *struct {
		Version provider.Version `json:"version"`
		Config  json.RawMessage  `json:"config"`
		// Source is "cloudflare" or "local"; empty is taken for the former.
		Source string `json:"source"`
	} `json:"result"`
}

// check returns what is wrong with the answer to a request that succeeded.
func (a *configurationAnswer) check() error {
	switch {
	case a.Result == nil:
		return unexpected("no result")
	case a.Result.Source == string(zero_trust.TunnelCloudflaredConfigurationGetResponseSourceLocal):
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
	if err := checkID(id); err != nil {
		return provider.Configuration{}, 0, err
	}
	var params zero_trust.TunnelCloudflaredConfigurationGetParams
	params.AccountID.Value = p.accountID
	var answer configurationAnswer
	err := p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		options = append(options, option.WithResponseBodyInto(&answer))
		_, err := p.tunnels.Configurations.Get(ctx, string(id), params, options...)
		return err
	})
	if err == nil {
		err = answer.check()
	}
	if err != nil {
		return provider.Configuration{}, 0, err
	}
	c, err := decode(answer.Result.Config)
	return c, answer.Result.Version, err
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
	var answer configurationAnswer
	err = p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		options = append(options,
			option.WithRequestBody("application/json", body), option.WithResponseBodyInto(&answer))
		_, err := p.tunnels.Configurations.Update(ctx, string(id), params, options...)
		return err
	})
	if r, ok := errors.AsType[*refusal](err); ok && r.status == http.StatusBadRequest {
		return 0, &provider.InvalidError{Rule: -1, Message: r.message}
	}
	if err == nil {
		err = answer.check()
	}
	if err != nil {
		return 0, err
	}
	return answer.Result.Version, nil
}

// modelled are the top-level fields of a document that have one of their own
// in [provider.Configuration].
var modelled = []string{"ingress", "originRequest"}

// decode reads a document; a tunnel that never had one has null.
func decode(document json.RawMessage) (provider.Configuration, error) {
	var c provider.Configuration
	if len(document) == 0 {
		return c, nil
	}
	err := json.Unmarshal(document, &c)
	if err == nil {
		err = json.Unmarshal(document, &c.UnknownFields)
	}
	if err != nil {
		return provider.Configuration{}, fmt.Errorf(
			"the remote document is not as expected, correct or empty it in the dashboard: %w", err)
	}
	for _, field := range modelled {
		delete(c.UnknownFields, field)
	}
	return c, nil
}

// encode writes a document as the API takes it.
func encode(c provider.Configuration) ([]byte, error) {
	if c.Ingress == nil {
		c.Ingress = []provider.IngressRule{}
	}
	own, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	document := maps.Clone(c.UnknownFields)
	if err := json.Unmarshal(own, &document); err != nil { // adds to the map
		return nil, fmt.Errorf("write the document: %w", err)
	}
	body, err := json.Marshal(map[string]any{"config": document})
	if err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	return body, nil
}
