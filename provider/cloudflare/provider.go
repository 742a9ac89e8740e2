// Package cloudflare implements [provider.Provider], [provider.DNS] and [provider.Access] with
// the Cloudflare API.
//
// The typed cloudflare-go client builds the requests and parses the responses. This
// package adds an API request budget for every API token, bounded retries, create calls
// that are never retried, the fields that the client does not support, and errors that
// callers can distinguish and that never contain the token.
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

// maxWait is how long one API call waits in total: for the budget, for a rate limit to
// end, and between retries.
const maxWait = 2 * time.Second

// Provider calls the Cloudflare API for one account's tunnels. It is safe for concurrent
// use.
type Provider struct {
	connection
	accountID string
	tunnels   *zero_trust.TunnelCloudflaredService
}

var _ provider.Provider = (*Provider)(nil)

// Open returns a provider, or an error that names every invalid option. It sends no
// request. All of the Client's providers with the same API token share one API request
// budget.
func (c *Client) Open(o Options) (*Provider, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("cloudflare options: %w", err)
	}
	return &Provider{
		connection: c.connect(o, o.APIToken),
		accountID:  o.AccountID,
		tunnels:    zero_trust.NewTunnelCloudflaredService(o.requestOptions(o.APIToken)...),
	}, nil
}

// connect returns a connection with the API token, whose requests use the budget of the
// options' token.
func (c *Client) connect(o Options, apiToken string) connection {
	transport := o.Transport
	if transport == nil {
		transport = newTransport()
	}
	return connection{
		transport: transport,
		client:    c,
		budgetKey: hashOf(o.APIToken),
		redact:    strings.NewReplacer(apiToken, "[redacted]").Replace,
	}
}

// requestOptions returns the options for requests with the API token.
func (o Options) requestOptions(apiToken string) []option.RequestOption {
	base := option.WithEnvironmentProduction()
	if o.BaseURL != "" {
		base = option.WithBaseURL(o.BaseURL)
	}
	return []option.RequestOption{base, option.WithAPIToken(apiToken), option.WithMaxRetries(0)}
}

// newTransport returns a copy of [http.DefaultTransport] that also pings silent HTTP/2
// connections, so that it detects a dead connection before a call times out.
func newTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: provider.CallTimeout / 4, PingTimeout: provider.CallTimeout / 4}
	return transport
}

// Format writes only the account ID, for all verbs.
func (p *Provider) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "cloudflare.Provider{AccountID:%q}", p.accountID)
}

var errTimeout = errors.New("no response within " + provider.CallTimeout.String())

// run calls method with the timeout [provider.CallTimeout] and wraps its error with the
// action.
func run(ctx context.Context, action string, method func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, provider.CallTimeout, errTimeout)
	defer cancel()
	if err := method(provider.WithReservation(ctx, 1)); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	return nil
}
