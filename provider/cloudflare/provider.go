// Package cloudflare is the provider that works on real tunnels through the
// Cloudflare API.
//
// The typed client of cloudflare-go builds requests and reads answers. This
// package adds a budget of requests for every API token, retries that end soon,
// creation that is never repeated, the fields that the client does not model, and
// errors that callers can tell apart and that never show the token.
//
// Other packages decide which calls to make.
package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// patience is how long one API call may wait: for its turn in the budget, for
// a limit to pass, and between retries, all together.
const patience = 2 * time.Second

// Provider works on the tunnels of one account. It may be used from several
// goroutines at once.
type Provider struct {
	accountID string
	tunnels   *zero_trust.TunnelCloudflaredService
	transport http.RoundTripper
	budget    *budget
	// redact takes the token out of what others say. It is a function because
	// fmt looks into everything else, however deep.
	redact func(string) string
}

var _ provider.Provider = (*Provider)(nil)

// New returns a provider, or an error that names every option that is wrong.
// It makes no request. All providers with the same token share one budget of
// requests.
func New(o Options) (*Provider, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("cloudflare options: %w", err)
	}
	base := option.WithEnvironmentProduction()
	if o.BaseURL != "" {
		base = option.WithBaseURL(o.BaseURL)
	}
	transport := o.Transport
	if transport == nil {
		transport = newTransport()
	}
	return &Provider{
		accountID: o.AccountID,
		tunnels: zero_trust.NewTunnelCloudflaredService(
			base, option.WithAPIToken(o.APIToken), option.WithMaxRetries(0)),
		transport: transport,
		budget:    budgetOf(o.APIToken),
		redact:    strings.NewReplacer(o.APIToken, "[redacted]").Replace,
	}, nil
}

// newTransport returns the default one, but for HTTP/2 connections that died
// without a word: those are noticed before a call runs out of time.
func newTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: provider.CallTimeout / 4, PingTimeout: provider.CallTimeout / 4}
	return transport
}

// Format writes which account the provider works on, and nothing else of it.
func (p *Provider) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "cloudflare.Provider{AccountID:%q}", p.accountID)
}

var errNoAnswer = errors.New("no answer within " + provider.CallTimeout.String())

// run limits the time of a method, and wraps its error with the action.
func run(ctx context.Context, action string, method func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, provider.CallTimeout, errNoAnswer)
	defer cancel()
	if err := method(provider.WithReservation(ctx, 1)); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	return nil
}
