package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// recordAccess records every metric about an account's applications.
func recordAccess(m *metrics.Metrics, account string) {
	m.SetAccess(account, metrics.Access{
		Reasons: map[string]int{"Protected": 40, "Pending": 2}, Managed: 41, Total: 60, Orphans: 1, Waiting: 3, ReadAt: time.Unix(1900, 0), Forbidden: true,
	})
	m.CountApplicationChange(account, "create", nil)
	m.CountApplicationChange(account, "create", nil)
	m.CountApplicationChange(account, "delete", provider.ErrForbidden)
}

func TestAccessMetricsHaveTheRecordedValues(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	recordAccess(m, "a")
	want := map[string]float64{
		"tunnel_gateway_access_hostnames{account=a,reason=Protected}":                    40,
		"tunnel_gateway_access_hostnames{account=a,reason=Pending}":                      2,
		"tunnel_gateway_access_applications{account=a}":                                  41,
		"tunnel_gateway_access_account_applications{account=a}":                          60,
		"tunnel_gateway_access_orphaned_applications{account=a}":                         1,
		"tunnel_gateway_access_waiting_changes{account=a}":                               3,
		"tunnel_gateway_access_last_read_timestamp_seconds{account=a}":                   1900,
		"tunnel_gateway_access_forbidden{account=a}":                                     1,
		"tunnel_gateway_access_changes_total{account=a,operation=create,result=success}": 2,
		"tunnel_gateway_access_changes_total{account=a,operation=delete,result=error}":   1,
	}
	if diff := cmp.Diff(want, samples(t, registry)); diff != "" {
		t.Errorf("series differ (-want +got):\n%s", diff)
	}
}

// Values that the controller does not know have no series.
func TestUnknownAccessValuesAreAbsent(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	recordAccess(m, "a")
	m.SetAccess("a", metrics.Access{})
	all := strings.Join(seriesOf(t, registry), "\n")
	for _, name := range []string{"applications", "account_applications", "last_read_timestamp_seconds"} {
		if strings.Contains(all, "tunnel_gateway_access_"+name+"{") {
			t.Errorf("access_%s still exists", name)
		}
	}
	if !strings.Contains(all, "tunnel_gateway_access_hostnames{account=a,reason=Pending}") {
		t.Error("a reason that no longer occurs has no series")
	}
}

func TestAccessMetricsEndWithTheAccount(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	recordAccess(m, "a")
	recordAccess(m, "b")
	m.DeleteAccess("a")
	for _, series := range seriesOf(t, registry) {
		if strings.Contains(series, "account=a") {
			t.Errorf("%s still exists", series)
		}
	}
	if all := strings.Join(seriesOf(t, registry), "\n"); !strings.Contains(all, "tunnel_gateway_access_changes_total{account=b") {
		t.Error("the series of the other account are gone")
	}
}
