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

// confirmAbsence returns notFound, the error from a read that did not find the tunnel, if
// a list does not contain the tunnel either. A single response is not enough to treat a
// tunnel that carries traffic as lost.
func (p *Provider) confirmAbsence(ctx context.Context, id provider.TunnelID, notFound error) error {
	var params zero_trust.TunnelCloudflaredListParams
	params.UUID.Value, params.UUID.Present = string(id), true
	page, err := p.listBy(ctx, params)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(page.Result, func(t shared.CloudflareTunnel) bool { return t.ID == string(id) }):
		return unexpected("the tunnel was not found, but the list of tunnels contains it")
	}
	return notFound
}

// checkLive returns an error if the response contains no tunnel or a deleted tunnel. The
// API also returns deleted tunnels, with the time when they were deleted.
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
		return p.forEach(ctx, "", func(t shared.CloudflareTunnel) bool {
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
	// With any other source, connectors ignore the remote configuration.
	params.ConfigSrc.Value = zero_trust.TunnelCloudflaredNewParamsConfigSrcCloudflare
	params.ConfigSrc.Present = true
	var created *shared.CloudflareTunnel
	err := p.call(ctx, sendOnce, func(options ...option.RequestOption) (err error) {
		created, err = p.tunnels.New(ctx, params, options...)
		return err
	})
	switch {
	case hasCode(err, codeNameExists):
		return provider.Tunnel{}, fmt.Errorf("%w: %w", provider.ErrNameExists, err)
	case err != nil:
		return provider.Tunnel{}, err
	case created.ID == "":
		return provider.Tunnel{}, unexpected("no tunnel ID")
	}
	return asTunnel(created), nil
}

// asTunnel converts the client's type; nil becomes the zero Tunnel. A tunnel without a
// source is remotely managed.
func asTunnel(t *shared.CloudflareTunnel) provider.Tunnel {
	if t == nil {
		return provider.Tunnel{}
	}
	return provider.Tunnel{
		ID: provider.TunnelID(t.ID), Name: t.Name, Status: provider.TunnelStatus(t.Status),
		Local: t.ConfigSrc == shared.CloudflareTunnelConfigSrcLocal,
	}
}

// pageSize is the API's maximum page size. It is also the default limit on tunnels in an
// account, so one page is usually enough.
const pageSize = 1000

// find returns the live tunnel with exactly this name, or nil.
func (p *Provider) find(ctx context.Context, name string) (found *shared.CloudflareTunnel, err error) {
	err = p.forEach(ctx, name, func(t shared.CloudflareTunnel) bool {
		if t.Name == name {
			found = &t
		}
		return found == nil
	})
	return found, err
}

// forEach calls visit for the live tunnels with the name, or for all live tunnels if name
// is empty, until visit returns false. The API ignores the case of name, and can return a
// tunnel twice when other tunnels are created at the same time.
func (p *Provider) forEach(ctx context.Context, name string, visit func(shared.CloudflareTunnel) bool) error {
	// The client's paging would ignore ctx after the first page.
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
	// The fields are set directly because the client's helper function is in its root
	// package, which imports the APIs of all Cloudflare products.
	var params zero_trust.TunnelCloudflaredListParams
	params.Name.Value, params.Name.Present = name, name != ""
	params.Page.Value, params.Page.Present = float64(number), true
	params.PerPage.Value, params.PerPage.Present = pageSize, true
	return p.listBy(ctx, params)
}

// listBy returns one page of the live tunnels that the parameters select.
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
		err = unexpected("no list of tunnels")
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
		case hasCode(err, codeConnected):
			return fmt.Errorf("%w: %w", provider.ErrConnected, err)
		case hasCode(err, codeRoutes):
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
	var tunnel *shared.CloudflareTunnel
	err := p.call(ctx, idempotent, func(options ...option.RequestOption) (err error) {
		tunnel, err = p.tunnels.Delete(ctx, string(id), params, options...)
		return err
	})
	if err == nil && tunnel.ID != string(id) {
		return unexpected("no deleted tunnel")
	}
	return err
}

// checkID returns an error for an ID that would change the request path.
func checkID(id provider.TunnelID) error {
	if !isPathSegment(string(id)) {
		return fmt.Errorf("%w: %q is not a tunnel ID", provider.ErrNotFound, id)
	}
	return nil
}
