package main

import (
	"context"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// attempts is how often a call to the API is tried.
const attempts = 10

// retry calls the API again after a temporary error. Calls for DNS also fail for a second or
// two while the API request budget of this process is used up.
func retry[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		result, err := call(ctx)
		if err == nil || attempt == attempts || !provider.IsTransient(err) {
			return result, err
		}
		delay, ok := provider.RetryAfter(err)
		if !ok {
			delay = time.Second
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-time.After(delay):
		}
	}
}

// records returns the zone's records with the names, or all of them.
func (c *cloud) records(ctx context.Context, names ...string) ([]provider.Record, error) {
	return retry(ctx, func(ctx context.Context) ([]provider.Record, error) { return c.dns.Records(ctx, c.zoneID, names...) })
}

// list returns all tunnels of the account.
func (c *cloud) list(ctx context.Context) ([]provider.Tunnel, error) {
	return retry(ctx, c.tunnels.Tunnels)
}
