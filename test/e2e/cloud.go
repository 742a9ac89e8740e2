package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
)

// prefixPattern is what a run's prefix looks like. A prefix that can be the start of another
// name must never select what is removed.
var prefixPattern = regexp.MustCompile(`^e2e-[0-9a-f]{8}$`)

// checkPrefix returns an error unless the text is a run's prefix.
func checkPrefix(prefix string) error {
	if !prefixPattern.MatchString(prefix) {
		return fmt.Errorf("a run's prefix is e2e- and eight hexadecimal digits, got %q", prefix)
	}
	return nil
}

// retryDelay is the time between two attempts to remove a tunnel.
const retryDelay = time.Second

// account is the account and the zone at Cloudflare that a run uses.
type account struct {
	// api is the API's URL with its version, or empty for the public API.
	api string
	// id is the account's ID.
	id    string
	token string
	// zone names a zone in the account.
	zone string
}

// cloud reads and removes what runs create, without the controller.
type cloud struct {
	account
	tunnels provider.Provider
	zoneID  provider.ZoneID
}

// options returns the options for an API client.
func (a account) options() cloudflare.Options {
	return cloudflare.Options{AccountID: a.id, APIToken: a.token, BaseURL: a.api}
}

// dns returns a client with its own API request budget. A run sends few requests about
// records, and one budget would delay each by more than a second.
func (a account) dns() (provider.DNS, error) { return (&cloudflare.Client{}).OpenDNS(a.options(), "") }

// openCloud returns the cloud for the account. It returns an error that says what to
// change if the token cannot read the account's tunnels and the zone.
func openCloud(ctx context.Context, a account) (*cloud, error) {
	tunnels, err := (&cloudflare.Client{}).Open(a.options())
	if err != nil {
		return nil, err
	}
	c := &cloud{account: a, tunnels: tunnels}
	if _, err := c.list(ctx); err != nil {
		return nil, fmt.Errorf("list the tunnels of account %s: %w; the token needs the permission Cloudflare Tunnel: Edit for the account", a.id, err)
	}
	found, err := c.zones(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up the zone %s: %w; the token needs the permissions Zone: Read and DNS: Edit for the zone", a.zone, err)
	}
	for _, z := range found {
		if z.AccountID != a.id || z.Status != "active" {
			continue
		}
		c.zoneID = z.ID
		if _, err := c.records(ctx, a.zone); err != nil {
			return nil, fmt.Errorf("read the records of zone %s: %w; the token needs the permission DNS: Edit for the zone", a.zone, err)
		}
		return c, nil
	}
	return nil, fmt.Errorf("account %s has no active zone %s that the token can read", a.id, a.zone)
}

// remains are a run's tunnels and records.
type remains struct {
	tunnels []provider.Tunnel
	records []provider.Record
}

func (r remains) isEmpty() bool { return len(r.tunnels)+len(r.records) == 0 }

// names returns one line for each tunnel and record.
func (r remains) names() []string {
	var names []string
	for _, t := range r.tunnels {
		names = append(names, fmt.Sprintf("tunnel %s (%s)", t.Name, t.ID))
	}
	for _, record := range r.records {
		names = append(names, fmt.Sprintf("%s record %s (%s)", record.Type, record.Name, record.ID))
	}
	return names
}

// find lists the account and the zone, and returns what belongs to the run with the prefix:
// the tunnels whose names begin with it, and the records whose names begin with it and
// whose comments name it as the installation (see package internal/dns).
func (c *cloud) find(ctx context.Context, prefix string) (r remains, err error) {
	if err := checkPrefix(prefix); err != nil {
		return r, err
	}
	tunnels, err := c.list(ctx)
	if err != nil {
		return r, fmt.Errorf("list the tunnels: %w", err)
	}
	for _, t := range tunnels {
		if strings.HasPrefix(t.Name, prefix+".") {
			r.tunnels = append(r.tunnels, t)
		}
	}
	records, err := c.records(ctx)
	if err != nil {
		return r, fmt.Errorf("list the records of zone %s: %w", c.zone, err)
	}
	for _, record := range records {
		if strings.HasPrefix(record.Name, prefix+"-") && strings.HasPrefix(record.Comment, "tgw "+prefix+" ") {
			r.records = append(r.records, record)
		}
	}
	return r, nil
}

// remove removes what belongs to the run with the prefix, until a listing shows nothing or
// the context ends. It returns what it has found at first and what is left. The
// run's controller and connectors must have ended.
func (c *cloud) remove(ctx context.Context, prefix string) (found, left remains, err error) {
	if found, err = c.find(ctx, prefix); err != nil {
		return found, found, err
	}
	for left = found; !left.isEmpty(); {
		failed := c.removeOnce(ctx, left)
		now, err := c.find(ctx, prefix)
		if err != nil {
			return found, left, errors.Join(failed, err)
		}
		if left = now; left.isEmpty() {
			break
		}
		select {
		case <-ctx.Done():
			return found, left, errors.Join(failed, ctx.Err())
		case <-time.After(retryDelay):
		}
		if failed != nil && !isTemporary(failed) {
			return found, left, failed
		}
	}
	return found, left, nil
}

// isTemporary reports whether another attempt can succeed.
func isTemporary(err error) bool {
	return errors.Is(err, provider.ErrConnected) || provider.IsTransient(err)
}

// removeOnce tries to remove each tunnel and record once.
func (c *cloud) removeOnce(ctx context.Context, r remains) error {
	var errs []error
	for len(r.records) > 0 {
		n := min(len(r.records), provider.MaxBatch)
		batch := provider.Batch{}
		for _, record := range r.records[:n] {
			batch.Deletes = append(batch.Deletes, record.ID)
		}
		r.records = r.records[n:]
		if err := c.apply(ctx, batch); err != nil {
			errs = append(errs, fmt.Errorf("delete %d records: %w", n, err))
		}
	}
	for _, t := range r.tunnels {
		if err := c.removeTunnel(ctx, t.ID); err != nil {
			errs = append(errs, fmt.Errorf("delete tunnel %s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// removeTunnel removes the connections that ended connectors have left, and the tunnel.
func (c *cloud) removeTunnel(ctx context.Context, id provider.TunnelID) error {
	connectors, err := c.tunnels.Connections(ctx, id)
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, connector := range connectors {
		if err := c.tunnels.Disconnect(ctx, id, connector.ID); err != nil {
			return err
		}
	}
	return c.tunnels.DeleteTunnel(ctx, id)
}
