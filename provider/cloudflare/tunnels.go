package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
		tunnel = asTunnel(found)
		return err
	})
	return tunnel, err
}

// Tunnel is documented at [provider.Provider].
func (p *Provider) Tunnel(ctx context.Context, id provider.TunnelID) (tunnel provider.Tunnel, err error) {
	err = run(ctx, fmt.Sprintf("read tunnel %q", id), func(ctx context.Context) error {
		tunnel, err = p.get(ctx, id)
		return err
	})
	return tunnel, err
}

func (p *Provider) get(ctx context.Context, id provider.TunnelID) (provider.Tunnel, error) {
	if err := checkID(id); err != nil {
		return provider.Tunnel{}, err
	}
	var params zero_trust.TunnelCloudflaredGetParams
	params.AccountID.Value = p.accountID
	var tunnel *shared.CloudflareTunnel
	err := p.call(ctx, idempotent, func(options ...option.RequestOption) (err error) {
		tunnel, err = p.tunnels.Get(ctx, string(id), params, options...)
		return err
	})
	switch {
	case err == nil:
		err = checkLive(tunnel)
	case errors.Is(err, provider.ErrNotFound):
		err = p.confirmAbsence(ctx, id, err)
	}
	if err != nil {
		return provider.Tunnel{}, err
	}
	return asTunnel(tunnel), nil
}

// confirmAbsence returns the error of a read that did not find the tunnel, when
// a list does not contain the tunnel either. One answer alone must not pass for
// the loss of a tunnel that serves.
func (p *Provider) confirmAbsence(ctx context.Context, id provider.TunnelID, notFound error) error {
	var params zero_trust.TunnelCloudflaredListParams
	params.UUID.Value, params.UUID.Present = string(id), true
	page, err := p.listBy(ctx, params)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(page.Result, func(t shared.CloudflareTunnel) bool { return t.ID == string(id) }):
		return unexpected("no tunnel, and its list has one")
	}
	return notFound
}

// checkLive returns what is wrong with the tunnel that the API answered. The API
// answers deleted tunnels too, with the time of their deletion.
func checkLive(tunnel *shared.CloudflareTunnel) error {
	switch {
	case tunnel.ID == "":
		return unexpected("no tunnel ID")
	case !tunnel.DeletedAt.IsZero():
		return provider.ErrNotFound
	}
	return nil
}

// Tunnels is documented at [provider.Provider].
func (p *Provider) Tunnels(ctx context.Context) (tunnels []provider.Tunnel, err error) {
	seen := map[string]bool{}
	err = run(ctx, "list the tunnels", func(ctx context.Context) error {
		return p.each(ctx, "", func(t shared.CloudflareTunnel) bool {
			if !seen[t.ID] {
				seen[t.ID] = true
				tunnels = append(tunnels, asTunnel(&t))
			}
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	return tunnels, nil
}

// CreateTunnel is documented at [provider.Provider].
func (p *Provider) CreateTunnel(ctx context.Context, name string) (tunnel provider.Tunnel, err error) {
	err = run(ctx, fmt.Sprintf("create tunnel %q", name), func(ctx context.Context) error {
		tunnel, err = p.create(ctx, name)
		return err
	})
	return tunnel, err
}

func (p *Provider) create(ctx context.Context, name string) (provider.Tunnel, error) {
	var params zero_trust.TunnelCloudflaredNewParams
	params.AccountID.Value = p.accountID
	params.Name.Value, params.Name.Present = name, true
	// The connector ignores the remote configuration of any other source.
	params.ConfigSrc.Value = zero_trust.TunnelCloudflaredNewParamsConfigSrcCloudflare
	params.ConfigSrc.Present = true
	var created *shared.CloudflareTunnel
	err := p.call(ctx, once, func(options ...option.RequestOption) (err error) {
		created, err = p.tunnels.New(ctx, params, options...)
		return err
	})
	switch {
	case isRefusal(err, codeNameExists):
		return provider.Tunnel{}, fmt.Errorf("%w: %w", provider.ErrNameExists, err)
	case err != nil:
		return provider.Tunnel{}, err
	case created.ID == "":
		return provider.Tunnel{}, unexpected("no tunnel ID")
	}
	return asTunnel(created), nil
}

// asTunnel returns the zero tunnel for nil. A source that the API does not tell
// is taken for remote management.
func asTunnel(t *shared.CloudflareTunnel) provider.Tunnel {
	if t == nil {
		return provider.Tunnel{}
	}
	return provider.Tunnel{
		ID: provider.TunnelID(t.ID), Name: t.Name, Status: provider.TunnelStatus(t.Status),
		Local: t.ConfigSrc == shared.CloudflareTunnelConfigSrcLocal,
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
// empty, page by page until visit returns false. The API ignores the case of a
// name, and repeats a tunnel when others are created meanwhile.
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
	params.Name.Value, params.Name.Present = name, name != ""
	params.Page.Value, params.Page.Present = float64(number), true
	params.PerPage.Value, params.PerPage.Present = pageSize, true
	return p.listBy(ctx, params)
}

// listBy returns the live tunnels that the parameters select.
func (p *Provider) listBy(
	ctx context.Context, params zero_trust.TunnelCloudflaredListParams,
) (page *pagination.V4PagePaginationArray[shared.CloudflareTunnel], err error) {
	params.AccountID.Value = p.accountID
	params.IsDeleted.Value, params.IsDeleted.Present = false, true
	err = p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		page, err = p.tunnels.List(ctx, params, options...)
		return err
	})
	if err == nil && (page == nil || page.Result == nil) {
		err = unexpected("no list")
	}
	return page, err
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
		case isRefusal(err, codeRouted):
			return fmt.Errorf("%w: %w", provider.ErrRoutes, err)
		}
		return err
	})
}

func (p *Provider) remove(ctx context.Context, id provider.TunnelID) error {
	if err := checkID(id); err != nil {
		return err
	}
	var params zero_trust.TunnelCloudflaredDeleteParams
	params.AccountID.Value = p.accountID
	return p.call(ctx, idempotent, func(options ...option.RequestOption) error {
		_, err := p.tunnels.Delete(ctx, string(id), params, options...)
		return err
	})
}

// checkID refuses an ID that would change the path of the API's URL.
func checkID(id provider.TunnelID) error {
	if !isPathSegment(string(id)) {
		return fmt.Errorf("%w: %q is no tunnel ID", provider.ErrNotFound, id)
	}
	return nil
}
