package main

import (
	"context"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// attempts is how often a call to the API is tried.
const attempts = 10

// retry calls the API again after a temporary error. Each change may be repeated.
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
	dns, err := c.dns()
	if err != nil {
		return nil, err
	}
	return retry(ctx, func(ctx context.Context) ([]provider.Record, error) { return dns.Records(ctx, c.zoneID, names...) })
}

// apply changes the zone's records.
func (c *cloud) apply(ctx context.Context, batch provider.Batch) error {
	dns, err := c.dns()
	if err != nil {
		return err
	}
	_, err = retry(ctx, func(ctx context.Context) ([]provider.Record, error) { return dns.Apply(ctx, c.zoneID, batch) })
	return err
}

// zones returns the zones with the account's zone name that the token can read.
func (c *cloud) zones(ctx context.Context) ([]provider.Zone, error) {
	dns, err := c.dns()
	if err != nil {
		return nil, err
	}
	return retry(ctx, func(ctx context.Context) ([]provider.Zone, error) { return dns.Zones(ctx, c.zone, "") })
}

// list returns all tunnels of the account.
func (c *cloud) list(ctx context.Context) ([]provider.Tunnel, error) {
	return retry(ctx, c.tunnels.Tunnels)
}
