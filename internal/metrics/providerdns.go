package metrics

import (
	"context"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// MeterDNS returns a DNS that forwards every call to d and records it for the account.
func (m *Metrics) MeterDNS(d provider.DNS, accountID string) provider.DNS {
	m.createAccountCounters(accountID)
	return &meteredDNS{dns: d, metrics: m, account: accountID}
}

// meteredDNS is a DNS whose calls are recorded.
type meteredDNS struct {
	dns     provider.DNS
	metrics *Metrics
	account string
}

func (d *meteredDNS) call(ctx context.Context, operation Operation, method func(context.Context) error) error {
	return d.metrics.call(ctx, d.account, operation, method)
}

// Zones implements [provider.DNS].
func (d *meteredDNS) Zones(ctx context.Context, name string, id provider.ZoneID) (found []provider.Zone, err error) {
	err = d.call(ctx, FindZone, func(ctx context.Context) error {
		found, err = d.dns.Zones(ctx, name, id)
		return err
	})
	return found, err
}

// Records implements [provider.DNS].
func (d *meteredDNS) Records(ctx context.Context, zone provider.ZoneID, names ...string) (found []provider.Record, err error) {
	err = d.call(ctx, ListRecords, func(ctx context.Context) error {
		found, err = d.dns.Records(ctx, zone, names...)
		return err
	})
	return found, err
}

// Apply implements [provider.DNS].
func (d *meteredDNS) Apply(ctx context.Context, zone provider.ZoneID, batch provider.Batch) (changed []provider.Record, err error) {
	err = d.call(ctx, ChangeRecords, func(ctx context.Context) error {
		changed, err = d.dns.Apply(ctx, zone, batch)
		return err
	})
	return changed, err
}

// Usage implements [provider.DNS].
func (d *meteredDNS) Usage(ctx context.Context, zone provider.ZoneID) (usage provider.Usage, err error) {
	err = d.call(ctx, ReadQuota, func(ctx context.Context) error {
		usage, err = d.dns.Usage(ctx, zone)
		return err
	})
	return usage, err
}

// CertificateHosts implements [provider.DNS].
func (d *meteredDNS) CertificateHosts(ctx context.Context, zone provider.ZoneID) (hosts []string, err error) {
	err = d.call(ctx, ListCertificates, func(ctx context.Context) error {
		hosts, err = d.dns.CertificateHosts(ctx, zone)
		return err
	})
	return hosts, err
}
