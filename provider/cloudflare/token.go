package cloudflare

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/shared"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

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
	var text *string
	err := p.call(ctx, idempotent, func(options ...option.RequestOption) (err error) {
		text, err = p.tunnels.Token.Get(ctx, string(id), params, options...)
		return err
	})
	if err != nil {
		return "", err
	}
	token := provider.Token(*text)
	// The client converts any JSON value to a string.
	switch account, tunnel, err := token.Credentials(); {
	case err != nil:
		return "", unexpected("no valid token")
	case account != p.accountID || tunnel != id:
		return "", unexpected("the token of another tunnel")
	}
	return token, nil
}

// RotateToken is documented at [provider.Provider].
func (p *Provider) RotateToken(ctx context.Context, id provider.TunnelID) error {
	return run(ctx, fmt.Sprintf("rotate the token of tunnel %q", id), func(ctx context.Context) error {
		return p.rotate(ctx, id)
	})
}

// secretLength is how many bytes a tunnel's secret has: the minimum that the API accepts.
const secretLength = 32

func (p *Provider) rotate(ctx context.Context, id provider.TunnelID) error {
	if err := checkID(id); err != nil {
		return err
	}
	secret := make([]byte, secretLength)
	_, _ = rand.Read(secret) // never fails
	var params zero_trust.TunnelCloudflaredEditParams
	params.AccountID.Value = p.accountID
	params.TunnelSecret.Value = base64.StdEncoding.EncodeToString(secret)
	params.TunnelSecret.Present = true
	var tunnel *shared.CloudflareTunnel
	err := p.call(ctx, idempotent, func(options ...option.RequestOption) (err error) {
		tunnel, err = p.tunnels.Edit(ctx, string(id), params, options...)
		return err
	})
	if err != nil {
		return err
	}
	return checkLive(tunnel)
}
