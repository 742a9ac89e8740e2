package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// Metrics about applications of Cloudflare Access. They exist only for accounts in which a
// GatewayClass has access.applications: Managed.
var (
	accessHostnames = accessGauge("access_hostnames", "hostnames",
		"Hostnames that must be protected by an application, by the reason of their state.", labelAccessReason)
	accessChanges = counter("access_changes_total", "requests",
		"Changes of applications that the controller sent to the Cloudflare API, including failed ones.",
		labelApplicationOperation, labelChangeResult, labelAccount)
	accessApplications = accessGauge("access_applications", "applications",
		"Applications in the account that the controller manages. Absent until the controller has read the applications.")
	accessAccountApplications = accessGauge("access_account_applications", "applications",
		"All applications in the account, from any source. An account can have at most 500. Absent until the controller has read the applications.")
	accessOrphans = accessGauge("access_orphaned_applications", "applications",
		"Managed applications that nothing demands and whose Gateway has no Tunnel object.")
	accessWaiting = accessGauge("access_waiting_changes", "changes",
		"Changes of applications that wait because a namespace or an application may be changed only so often.")
	accessLastRead = accessGauge("access_last_read_timestamp_seconds", "seconds",
		"Unix time at which the controller last read the account's applications. Absent until then.")
	accessForbidden = accessGauge("access_forbidden", "1 or 0",
		"Whether the API token for Access is missing, invalid or lacks the permission, or the signing key is invalid, while protection is demanded.")
)

// Access contains the gauge values of an account's applications.
type Access struct {
	// Reasons counts hostnames by the reason of their state.
	Reasons map[string]int
	// Managed and Total are how many applications the controller manages, and the account has.
	Managed, Total int
	Orphans        int
	// Waiting counts the changes that a limit delays.
	Waiting int
	// ReadAt is when the applications were last read; zero before the first read.
	ReadAt time.Time
	// Forbidden reports whether the API token cannot be used.
	Forbidden bool
}

// accessVectors are the vectors of the metrics about applications.
type accessVectors struct {
	hostnames, applications, total, orphans, waiting, lastRead, forbidden *prometheus.GaugeVec
	changes                                                               *prometheus.CounterVec
}

func (m *Metrics) newAccessVectors(registry prometheus.Registerer) accessVectors {
	return accessVectors{
		hostnames: gaugeVec(registry, accessHostnames), applications: gaugeVec(registry, accessApplications), total: gaugeVec(registry, accessAccountApplications),
		orphans: gaugeVec(registry, accessOrphans), waiting: gaugeVec(registry, accessWaiting), lastRead: gaugeVec(registry, accessLastRead),
		forbidden: gaugeVec(registry, accessForbidden), changes: m.counter(registry, accessChanges),
	}
}

// SetAccess sets the gauges of the account's applications, and creates its counters. Calls for
// the same account must not overlap.
func (m *Metrics) SetAccess(account string, a Access) {
	m.createAccessCounters(account)
	for _, reason := range labelAccessReason.Values {
		m.access.hostnames.WithLabelValues(account, reason.Name).Set(float64(a.Reasons[reason.Name]))
	}
	m.access.orphans.WithLabelValues(account).Set(float64(a.Orphans))
	m.access.waiting.WithLabelValues(account).Set(float64(a.Waiting))
	m.access.forbidden.WithLabelValues(account).Set(boolValue(a.Forbidden))
	known := !a.ReadAt.IsZero()
	setIf(m.access.applications, account, known, float64(a.Managed))
	setIf(m.access.total, account, known, float64(a.Total))
	setIf(m.access.lastRead, account, known, float64(a.ReadAt.Unix()))
}

// DeleteAccess deletes all series about the applications of an account that no GatewayClass
// manages.
func (m *Metrics) DeleteAccess(account string) {
	labels := prometheus.Labels{labelAccount.Name: account}
	for _, v := range []*prometheus.GaugeVec{
		m.access.hostnames, m.access.applications, m.access.total, m.access.orphans, m.access.waiting, m.access.lastRead, m.access.forbidden,
	} {
		v.DeletePartialMatch(labels)
	}
	m.access.changes.DeletePartialMatch(labels)
}

// CountApplicationChange counts a change of an application, and whether the Cloudflare API has
// made it. operation is an [access.Operation].
func (m *Metrics) CountApplicationChange(account, operation string, err error) {
	m.createAccessCounters(account)
	result := ResultSuccess
	if err != nil {
		result = ResultError
	}
	m.access.changes.WithLabelValues(operation, string(result), account).Inc()
}

// createAccessCounters creates the account's counters with the value zero.
func (m *Metrics) createAccessCounters(account string) {
	for _, operation := range labelApplicationOperation.Values {
		for _, result := range labelChangeResult.Values {
			m.access.changes.WithLabelValues(operation.Name, result.Name, account)
		}
	}
}

// accessGauge defines a gauge that has the account label and additional labels.
func accessGauge(name, unit, help string, labels ...Label) Metric {
	m := accountGauge(name, unit, help)
	m.Labels = append(m.Labels, labels...)
	return m
}

var (
	labelAccessReason = Label{Name: "reason", Help: "the reason, as in the condition AccessReady", Values: []Value{
		{conditions.ReasonProtected.String(), "an application protects the hostname"},
		{conditions.ReasonPending.String(), "the application is outstanding"},
		{conditions.ReasonHostnameNotPermitted.String(), "the hostname may not be protected"},
		{conditions.ReasonPolicyNotFound.String(), "a policy is not in the catalogue or does not exist at Cloudflare"},
		{conditions.ReasonPolicyInvalid.String(), "a policy lets every request pass"},
		{conditions.ReasonTargetNotFound.String(), "an AccessPolicy names a listener that does not exist"},
		{conditions.ReasonApplicationExists.String(), "an application that the controller does not manage covers the hostname"},
		{conditions.ReasonOverridden.String(), "another Gateway demands other policies, and precedes"},
		{conditions.ReasonLimitExceeded.String(), "the number of applications is limited"},
		{conditions.ReasonForbidden.String(), "the API token cannot be used"},
		{conditions.ReasonContested.String(), "the application is changed by others again and again"},
		{conditions.ReasonNoZone.String(), "the account has no zone for the hostname"},
		{conditions.ReasonSettingsConflict.String(), "an older GatewayClass of the account has other settings"},
		{conditions.ReasonDisabled.String(), "the GatewayClass does not manage applications"},
	}}
	labelApplicationOperation = Label{Name: "operation", Help: "what the request does", Values: []Value{
		{string(access.EnsureTag), "make a tag"},
		{string(access.Create), "create an application"},
		{string(access.Update), "change an application, hand it over to another Gateway, or adopt it"},
		{string(access.Revoke), "revoke the tokens of an application"},
		{string(access.Delete), "delete an application"},
	}}
)
