package metrics_test

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/provider/providertest"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

func TestMeteredDNSKeepsTheContract(t *testing.T) {
	// A metered DNS forwards all calls and results unchanged.
	providertest.RunDNS(t, func(*testing.T) providertest.DNSFixture {
		database := zones.New(zones.Options{})
		d := fake.NewDNS(database)
		metered := struct {
			provider.DNS
			provider.ZoneSettings // nothing meters it, because the controller reads no settings
		}{metrics.New(prometheus.NewRegistry()).MeterDNS(d, fake.AccountID), d}
		return providertest.DNSFixture{DNS: metered, Database: database, Restrict: d.Restrict}
	})
}

func TestCallsToDNSAreCounted(t *testing.T) {
	for op, test := range map[fake.Op]struct {
		name, result string
		err          error
		call         func(context.Context, provider.DNS) error
	}{
		fake.OpZones: {"find_zone", "success", nil, func(ctx context.Context, d provider.DNS) error {
			_, err := d.Zones(ctx, "example.com", "")
			return err
		}},
		fake.OpRecords: {"list_records", "forbidden", provider.ErrForbidden, func(ctx context.Context, d provider.DNS) error {
			_, err := d.Records(ctx, "zone")
			return err
		}},
		fake.OpApply: {"change_records", "record_exists", provider.ErrRecordExists, func(ctx context.Context, d provider.DNS) error {
			_, err := d.Apply(ctx, "zone", provider.Batch{Deletes: []provider.RecordID{"1"}})
			return err
		}},
		fake.OpUsage: {"read_quota", "deferred", &provider.RateLimitedError{Budget: true}, func(ctx context.Context, d provider.DNS) error {
			_, err := d.Usage(ctx, "zone")
			return err
		}},
		fake.OpCertificateHosts: {"list_certificates", "quota_exceeded", provider.ErrQuotaExceeded, func(ctx context.Context, d provider.DNS) error {
			_, err := d.CertificateHosts(ctx, "zone")
			return err
		}},
	} {
		t.Run(string(op), func(t *testing.T) {
			registry, d := prometheus.NewRegistry(), fake.NewDNS(zones.New(zones.Options{}))
			if test.err != nil {
				d.Fail(op, test.err)
			}
			_ = test.call(t.Context(), metrics.New(registry).MeterDNS(d, fake.AccountID))
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range families {
				for _, m := range family.GetMetric() {
					if family.GetName() == "tunnel_gateway_provider_calls_total" && m.GetCounter().GetValue() > 0 {
						if got := m.GetLabel()[1].GetValue() + " " + m.GetLabel()[2].GetValue(); got != test.name+" "+test.result {
							t.Errorf("counted %s, want %s %s", got, test.name, test.result)
						}
						return
					}
				}
			}
			t.Error("the call was not counted")
		})
	}
}
