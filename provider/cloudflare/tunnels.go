package cloudflare

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/packages/pagination"
	"github.com/cloudflare/cloudflare-go/v7/shared"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// FindTunnel is documented at [provider.Provider].
func (p *Provider) FindTunnel(ctx context.Context, name string) (tunnel provider.Tunnel, err error) {
	err = run(ctx, fmt.Sprintf("find tunnel %q", name), func(ctx context.Context) error {
		found, err := p.find(ctx, name)
		if err == nil && found == nil {
			err = provider.ErrNotFound
		}
		tunnel = asTunnel(found, false)
		return err
	})
	return tunnel, err
}

// Tunnels is documented at [provider.Provider].
func (p *Provider) Tunnels(ctx context.Context) (tunnels []provider.Tunnel, err error) {
	seen := map[string]bool{}
	err = run(ctx, "list the tunnels", func(ctx context.Context) error {
		return p.each(ctx, "", func(t shared.CloudflareTunnel) bool {
			if !seen[t.ID] {
				seen[t.ID] = true
				tunnels = append(tunnels, asTunnel(&t, false))
			}
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	return tunnels, nil
}

// EnsureTunnel is documented at [provider.Provider].
//
// When the answer to a create is lost and the tunnel is there afterwards, it
// counts as created by this call: its name was free just before.
func (p *Provider) EnsureTunnel(ctx context.Context, want provider.TunnelSpec) (tunnel provider.Tunnel, err error) {
	err = run(ctx, fmt.Sprintf("ensure tunnel %q", want.Name), func(ctx context.Context) error {
		tunnel, err = p.ensure(ctx, want.Name)
		return err
	})
	if err != nil {
		return provider.Tunnel{}, err
	}
	return tunnel, nil
}

func (p *Provider) ensure(ctx context.Context, name string) (provider.Tunnel, error) {
	found, err := p.find(ctx, name)
	if err != nil {
		return provider.Tunnel{}, err
	}
	if found != nil {
		return asTunnel(found, false), checkRemote(found)
	}
	created, err := p.create(ctx, name)
	if err == nil {
		return asTunnel(created, true), nil
	}
	_, outcomeUnknown := errors.AsType[*provider.UnavailableError](err)
	if !outcomeUnknown && !isRefusal(err, codeNameExists) {
		return provider.Tunnel{}, err
	}
	found, lookErr := p.find(ctx, name)
	if lookErr != nil || found == nil {
		return provider.Tunnel{}, err
	}
	return asTunnel(found, outcomeUnknown), checkRemote(found)
}

// checkRemote returns ErrLocallyManaged for a tunnel that is; a source that is
// not told is taken for Cloudflare.
func checkRemote(t *shared.CloudflareTunnel) error {
	if t.ConfigSrc == shared.CloudflareTunnelConfigSrcLocal {
		return provider.ErrLocallyManaged
	}
	return nil
}

func asTunnel(t *shared.CloudflareTunnel, created bool) provider.Tunnel {
	if t == nil {
		return provider.Tunnel{}
	}
	return provider.Tunnel{
		ID: provider.TunnelID(t.ID), Name: t.Name, Created: created, Status: provider.TunnelStatus(t.Status),
	}
}

// pageSize is the largest page that the API gives of a list. An account has no
// more tunnels than that, unless Cloudflare granted it more.
const pageSize = 1000

// find returns the live tunnel of exactly that name, or nil.
func (p *Provider) find(ctx context.Context, name string) (found *shared.CloudflareTunnel, err error) {
	err = p.each(ctx, name, func(t shared.CloudflareTunnel) bool {
		if t.Name == name {
			found = &t
		}
		return found == nil
	})
	return found, err
}

// each calls visit for the live tunnels of that name, or for all when it is
// empty, page by page until visit returns false. The API takes a name for the
// same in other case, and a tunnel may come again when others are made
// meanwhile.
func (p *Provider) each(ctx context.Context, name string, visit func(shared.CloudflareTunnel) bool) error {
	// The client's own paging would leave ctx behind after the first page.
	for number := 1; ; number++ {
		page, err := p.list(ctx, name, number)
		if err != nil {
			return err
		}
		for _, t := range page.Result {
			if t.DeletedAt.IsZero() && t.ID != "" && !visit(t) {
				return nil
			}
		}
		if len(page.Result) == 0 || int64(len(page.Result)) < page.ResultInfo.PerPage {
			return nil
		}
	}
}

func (p *Provider) list(
	ctx context.Context, name string, number int,
) (page *pagination.V4PagePaginationArray[shared.CloudflareTunnel], err error) {
	// Fields are set by hand because the function for it is in the client's
	// root package, which imports the API of every Cloudflare product.
	var params zero_trust.TunnelCloudflaredListParams
	params.AccountID.Value = p.accountID
	params.Name.Value, params.Name.Present = name, name != ""
	params.IsDeleted.Value, params.IsDeleted.Present = false, true
	params.Page.Value, params.Page.Present = float64(number), true
	params.PerPage.Value, params.PerPage.Present = pageSize, true
	err = p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		page, err = p.tunnels.List(ctx, params, options...)
		return err
	})
	if err == nil && (page == nil || page.Result == nil) {
		err = unexpected("no list")
	}
	return page, err
}

func (p *Provider) create(ctx context.Context, name string) (created *shared.CloudflareTunnel, err error) {
	var params zero_trust.TunnelCloudflaredNewParams
	params.AccountID.Value = p.accountID
	params.Name.Value, params.Name.Present = name, true
	// The connector ignores the remote configuration of any other source.
	params.ConfigSrc.Value = zero_trust.TunnelCloudflaredNewParamsConfigSrcCloudflare
	params.ConfigSrc.Present = true
	err = p.call(ctx, once, func(options ...option.RequestOption) error {
		created, err = p.tunnels.New(ctx, params, options...)
		return err
	})
	if err == nil && created.ID == "" {
		return nil, unexpected("no tunnel ID")
	}
	return created, err
}

// Token is documented at [provider.Provider].
func (p *Provider) Token(ctx context.Context, id provider.TunnelID) (token provider.Token, err error) {
	err = run(ctx, fmt.Sprintf("read the token of tunnel %q", id), func(ctx context.Context) error {
		token, err = p.token(ctx, id)
		return err
	})
	return token, err
}

func (p *Provider) token(ctx context.Context, id provider.TunnelID) (provider.Token, error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	var params zero_trust.TunnelCloudflaredTokenGetParams
	params.AccountID.Value = p.accountID
	var answer *string
	err := p.call(ctx, idempotent, func(options ...option.RequestOption) (err error) {
		answer, err = p.tunnels.Token.Get(ctx, string(id), params, options...)
		return err
	})
	if err != nil {
		return "", err
	}
	token := provider.Token(*answer)
	// The client makes a string of any JSON.
	if _, _, err := token.Credentials(); err != nil {
		return "", unexpected("no token")
	}
	return token, nil
}

// DeleteTunnel is documented at [provider.Provider].
func (p *Provider) DeleteTunnel(ctx context.Context, id provider.TunnelID) error {
	return run(ctx, fmt.Sprintf("delete tunnel %q", id), func(ctx context.Context) error {
		err := p.remove(ctx, id)
		switch {
		case errors.Is(err, provider.ErrNotFound):
			return nil
		case isRefusal(err, codeConnected):
			return fmt.Errorf("%w: %w", provider.ErrConnected, err)
		}
		return err
	})
}

// remove deletes a live tunnel; one that is gone is ErrNotFound, and one that is
// locally managed is not touched. Connections are
// cleaned up only when they are in the way: that ends those of running
// connectors too.
func (p *Provider) remove(ctx context.Context, id provider.TunnelID) error {
	if err := p.checkDeletable(ctx, id); err != nil {
		return err
	}
	err := p.drop(ctx, id)
	if !isRefusal(err, codeConnected) {
		return err
	}
	if err := p.cleanUpConnections(ctx, id); err != nil {
		return err
	}
	return p.drop(ctx, id)
}

func (p *Provider) drop(ctx context.Context, id provider.TunnelID) error {
	var params zero_trust.TunnelCloudflaredDeleteParams
	params.AccountID.Value = p.accountID
	return p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		_, err := p.tunnels.Delete(ctx, string(id), params, options...)
		return err
	})
}

// checkDeletable returns ErrNotFound for a tunnel that is gone, and
// ErrLocallyManaged for one that is. The API goes on to answer for deleted ones,
// with the time of their deletion.
func (p *Provider) checkDeletable(ctx context.Context, id provider.TunnelID) error {
	if err := checkID(id); err != nil {
		return err
	}
	var params zero_trust.TunnelCloudflaredGetParams
	params.AccountID.Value = p.accountID
	var tunnel *shared.CloudflareTunnel
	err := p.call(ctx, idempotent, func(options ...option.RequestOption) (err error) {
		tunnel, err = p.tunnels.Get(ctx, string(id), params, options...)
		return err
	})
	switch {
	case err != nil:
		return err
	case !tunnel.DeletedAt.IsZero():
		return provider.ErrNotFound
	}
	return checkRemote(tunnel)
}

func (p *Provider) cleanUpConnections(ctx context.Context, id provider.TunnelID) error {
	var params zero_trust.TunnelCloudflaredConnectionDeleteParams
	params.AccountID.Value = p.accountID
	return p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		_, err := p.tunnels.Connections.Delete(ctx, string(id), params, options...)
		return err
	})
}

// checkID refuses what would make another path of the API's URL.
func checkID(id provider.TunnelID) error {
	if !isPathSegment(string(id)) {
		return fmt.Errorf("%w: %q is no tunnel ID", provider.ErrNotFound, id)
	}
	return nil
}
