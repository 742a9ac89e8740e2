package metrics_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// recordZone records every metric about a zone.
func recordZone(m *metrics.Metrics, zone string) {
	m.SetZone(zone, metrics.Zone{
		Verdicts: map[string]int{"Managed": 4, "RecordConflict": 1, "Orphan": 2}, Records: 180, Quota: 200, ReadAt: time.Unix(1900, 0), Forbidden: true,
	})
	m.CountRecordChanges(zone, "create", 3, nil)
	m.CountRecordChanges(zone, "create", 2, nil)
	m.CountRecordChanges(zone, "delete", 7, provider.ErrForbidden)
}

func TestZoneMetricsHaveTheRecordedValues(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	recordZone(m, "example.com")
	want := map[string]float64{
		"tunnel_gateway_dns_records{verdict=Managed,zone=example.com}":                       4,
		"tunnel_gateway_dns_records{verdict=RecordConflict,zone=example.com}":                1,
		"tunnel_gateway_dns_records{verdict=Orphan,zone=example.com}":                        2,
		"tunnel_gateway_dns_zone_records{zone=example.com}":                                  180,
		"tunnel_gateway_dns_zone_quota{zone=example.com}":                                    200,
		"tunnel_gateway_dns_last_read_timestamp_seconds{zone=example.com}":                   1900,
		"tunnel_gateway_dns_forbidden{zone=example.com}":                                     1,
		"tunnel_gateway_dns_changes_total{operation=create,result=success,zone=example.com}": 5,
		"tunnel_gateway_dns_changes_total{operation=delete,result=error,zone=example.com}":   7,
	}
	if diff := cmp.Diff(want, samples(t, registry)); diff != "" {
		t.Errorf("series differ (-want +got):\n%s", diff)
	}
}

// Values that the controller does not know have no series, and verdicts that no longer
// occur have the value zero.
func TestUnknownZoneValuesAreAbsent(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	recordZone(m, "example.com")
	m.SetZone("example.com", metrics.Zone{})
	all := seriesOf(t, registry)
	for _, name := range []string{"zone_records", "zone_quota", "last_read_timestamp_seconds"} {
		if slices.Contains(all, "tunnel_gateway_dns_"+name+"{zone=example.com}") {
			t.Errorf("dns_%s still exists", name)
		}
	}
	for series := range samples(t, registry) {
		if strings.HasPrefix(series, "tunnel_gateway_dns_records") || strings.HasPrefix(series, "tunnel_gateway_dns_forbidden") {
			t.Errorf("%s is not zero", series)
		}
	}
	for _, want := range []string{
		"tunnel_gateway_dns_records{verdict=RecordConflict,zone=example.com}",
		"tunnel_gateway_dns_forbidden{zone=example.com}",
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%s does not exist", want)
		}
	}
}

// Prometheus detects the first change of a record only if the series existed before.
func TestRecordChangesBeginAtZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	m.SetZone("example.com", metrics.Zone{})
	m.CountRecordChanges("example.org", "move", 1, errors.New("failed"))
	all := seriesOf(t, registry)
	for _, want := range []string{
		"tunnel_gateway_dns_changes_total{operation=delete,result=success,zone=example.com}",
		"tunnel_gateway_dns_changes_total{operation=adopt,result=error,zone=example.org}",
	} {
		if !slices.Contains(all, want) {
			t.Errorf("the series %s does not exist", want)
		}
	}
}

// DeleteZone deletes all series of the zone, and no other series.
func TestDeleteZoneDeletesAllItsSeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	recordZone(m, "example.com")
	before := seriesOf(t, registry)
	recordZone(m, "team.example.com")
	m.DeleteZone("team.example.com")
	if diff := cmp.Diff(before, seriesOf(t, registry)); diff != "" {
		t.Errorf("series differ (-before +after):\n%s", diff)
	}
}
