package metrics

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Values for the label "certificate".
const (
	certificateEnvoy     = "envoy"
	certificateAuthority = "authority"
)

// SetConnectedEnvoys sets how many Envoys beside the Gateway's connectors have a stream.
func (m *Metrics) SetConnectedEnvoys(name types.NamespacedName, count int) {
	m.ensureGateway(name)
	m.connectedEnvoys.WithLabelValues(name.Namespace, name.Name).Set(float64(count))
}

// DeleteConnectedEnvoys deletes the gauge for a Gateway whose Tunnel is gone.
func (m *Metrics) DeleteConnectedEnvoys(name types.NamespacedName) {
	m.connectedEnvoys.DeleteLabelValues(name.Namespace, name.Name)
}

// RecordXDSPush counts a response with changed or removed resources that the controller
// sent to one of the Gateway's Envoys.
func (m *Metrics) RecordXDSPush(name types.NamespacedName, resources XDSResources) {
	m.ensureGateway(name)
	m.xdsPushes.WithLabelValues(name.Namespace, name.Name, string(resources)).Inc()
}

// RecordXDSRejection counts a response that one of the Gateway's Envoys rejected.
func (m *Metrics) RecordXDSRejection(name types.NamespacedName, resources XDSResources) {
	m.ensureGateway(name)
	m.xdsRejections.WithLabelValues(name.Namespace, name.Name, string(resources)).Inc()
}

// ObserveAcknowledgement observes the time from sending resources to their
// acknowledgement.
func (m *Metrics) ObserveAcknowledgement(resources XDSResources, duration time.Duration) {
	m.xdsAcknowledgement.WithLabelValues(string(resources)).Observe(duration.Seconds())
}

// SetCertificateExpiry sets when the certificate authority expires, and when the first
// Envoy certificate does. The zero time means that the certificate does not exist.
func (m *Metrics) SetCertificateExpiry(envoy, authority time.Time) {
	for certificate, expiry := range map[string]time.Time{certificateEnvoy: envoy, certificateAuthority: authority} {
		if expiry.IsZero() {
			m.certificateExpiry.DeleteLabelValues(certificate)
			continue
		}
		m.certificateExpiry.WithLabelValues(certificate).Set(float64(expiry.Unix()))
	}
}
