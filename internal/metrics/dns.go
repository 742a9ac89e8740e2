package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
)

// Metrics about DNS zones. They exist only for zones that a GatewayClass lists, with
// dns.mode Observe or Manage.
var (
	dnsRecords = zoneGauge("dns_records", "names",
		"Hostnames of Gateways in the zone, and managed records that no Gateway uses, by verdict.", labelVerdict)
	dnsChanges = counter("dns_changes_total", "operations",
		"Operations on records that the controller sent to the Cloudflare API, including failed ones.",
		labelZone, labelRecordOperation, labelChangeResult)
	dnsZoneRecords = zoneGauge("dns_zone_records", "records",
		"All records in the zone, of any type and from any source. Absent until the controller has read the zone.")
	dnsZoneQuota = zoneGauge("dns_zone_quota", "records",
		"Maximum number of records in the zone. Absent if the Cloudflare API reports no quota for the zone.")
	dnsLastRead = zoneGauge("dns_last_read_timestamp_seconds", "seconds",
		"Unix time at which the controller last read all records in the zone. Absent until then.")
	dnsForbidden = zoneGauge("dns_forbidden", "1 or 0",
		"Whether the API token for DNS is missing, invalid or lacks a permission for the zone, or the signing key is invalid.")
)

// Zone contains a zone's gauge values.
type Zone struct {
	// Verdicts counts hostnames and unused records by verdict.
	Verdicts map[string]int
	// Records and Quota are how many records the zone has and can have. Quota is 0 if it
	// is unknown.
	Records, Quota int
	// ReadAt is when all records were last read; zero before the first read.
	ReadAt time.Time
	// Forbidden reports whether the API token cannot be used for the zone.
	Forbidden bool
}

// dnsVectors are the vectors of the metrics about DNS zones.
type dnsVectors struct {
	records, zoneRecords, zoneQuota, lastRead, forbidden *prometheus.GaugeVec
	changes                                              *prometheus.CounterVec
}

func (m *Metrics) newDNSVectors(registry prometheus.Registerer) dnsVectors {
	return dnsVectors{
		records: gaugeVec(registry, dnsRecords), zoneRecords: gaugeVec(registry, dnsZoneRecords), zoneQuota: gaugeVec(registry, dnsZoneQuota),
		lastRead: gaugeVec(registry, dnsLastRead), forbidden: gaugeVec(registry, dnsForbidden),
		changes: m.counter(registry, dnsChanges),
	}
}

// SetZone sets the gauges of the zone, and creates its counters. Calls for the same zone
// must not overlap.
func (m *Metrics) SetZone(zone string, z Zone) {
	m.createZoneCounters(zone)
	for _, verdict := range labelVerdict.Values {
		m.dns.records.WithLabelValues(zone, verdict.Name).Set(float64(z.Verdicts[verdict.Name]))
	}
	m.dns.forbidden.WithLabelValues(zone).Set(boolValue(z.Forbidden))
	setIf(m.dns.zoneRecords, zone, !z.ReadAt.IsZero(), float64(z.Records))
	setIf(m.dns.zoneQuota, zone, z.Quota > 0, float64(z.Quota))
	setIf(m.dns.lastRead, zone, !z.ReadAt.IsZero(), float64(z.ReadAt.Unix()))
}

// DeleteZone deletes all series of a zone that no GatewayClass lists.
func (m *Metrics) DeleteZone(zone string) {
	labels := prometheus.Labels{labelZone.Name: zone}
	for _, v := range []*prometheus.GaugeVec{m.dns.records, m.dns.zoneRecords, m.dns.zoneQuota, m.dns.lastRead, m.dns.forbidden} {
		v.DeletePartialMatch(labels)
	}
	m.dns.changes.DeletePartialMatch(labels)
}

// CountRecordChanges counts operations of one kind on the zone's records, and whether the
// Cloudflare API has made them. operation is a [dns.Operation].
func (m *Metrics) CountRecordChanges(zone, operation string, count int, err error) {
	m.createZoneCounters(zone)
	result := ResultSuccess
	if err != nil {
		result = ResultError
	}
	m.dns.changes.WithLabelValues(zone, operation, string(result)).Add(float64(count))
}

// createZoneCounters creates the zone's counters with the value zero.
func (m *Metrics) createZoneCounters(zone string) {
	for _, c := range m.vectors {
		if c.hasFirstLabel(labelZone) {
			c.createAll(zone)
		}
	}
}

// setIf sets the zone's gauge if the value is known, and deletes it otherwise.
func setIf(v *prometheus.GaugeVec, zone string, known bool, value float64) {
	if !known {
		v.DeleteLabelValues(zone)
		return
	}
	v.WithLabelValues(zone).Set(value)
}

// zoneGauge defines a gauge that has the zone label and additional labels.
func zoneGauge(name, unit, help string, labels ...Label) Metric {
	m := counter(name, unit, help, append([]Label{labelZone}, labels...)...)
	m.Type = Gauge
	return m
}

var (
	labelZone    = Label{Name: "zone", Help: "the zone name"}
	labelVerdict = Label{Name: "verdict", Help: "what the zone contains for the name", Values: []Value{
		{string(dns.VerdictUnread), "a hostname in a zone whose records cannot be read"},
		{string(dns.VerdictNoZone), "a hostname in a zone that does not exist, is not active, belongs to another account, or delegates the name"},
		{string(dns.VerdictManaged), "a managed record leads to the hostname's Gateway"},
		{string(dns.VerdictStale), "a managed record leads to another or a former tunnel"},
		{string(dns.VerdictExternal), "a record that the controller does not manage leads to the hostname's Gateway"},
		{string(dns.VerdictNotProxied), "a record that the controller does not manage leads to the hostname's Gateway, but is not proxied, so requests do not arrive"},
		{string(dns.VerdictRecordConflict), "a record that the controller does not manage leads elsewhere"},
		{string(dns.VerdictHeldByAnotherGateway), "a wildcard leads to another Gateway with this hostname"},
		{string(dns.VerdictMissing), "the hostname has no record"},
		{string(dns.VerdictOrphan), "a managed record leads to a tunnel without a Tunnel object"},
		{string(dns.VerdictUnwanted), "a managed record that no Gateway uses"},
	}}
	labelRecordOperation = Label{Name: "operation", Help: "what the operation does", Values: []Value{
		{string(dns.Create), "create a record"},
		{string(dns.Repair), "restore the proxy and the TTL of a record"},
		{string(dns.Move), "point a record to another Gateway's tunnel"},
		{string(dns.Adopt), "mark or replace a record at an administrator's request"},
		{string(dns.Release), "remove the mark from an excluded record"},
		{string(dns.Delete), "delete a record"},
	}}
	labelChangeResult = Label{Name: "result", Help: "how the operation ended", Values: []Value{
		{string(ResultSuccess), "the Cloudflare API made the change"},
		{string(ResultError), "the Cloudflare API rejected the change, or its result is unknown"},
	}}
)
