package metrics

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The values of the label of certificates.
const (
	certificateEnvoy     = "envoy"
	certificateAuthority = "authority"
)

// SetConnectedEnvoys sets the number of Envoys of the Gateway that have a stream.
func (m *Metrics) SetConnectedEnvoys(name types.NamespacedName, count int) {
	m.ensureGateway(name)
	m.connectedEnvoys.WithLabelValues(name.Namespace, name.Name).Set(float64(count))
}

// DeleteConnectedEnvoys deletes the number of Envoys of a Gateway whose Tunnel is gone.
func (m *Metrics) DeleteConnectedEnvoys(name types.NamespacedName) {
	m.connectedEnvoys.DeleteLabelValues(name.Namespace, name.Name)
}

// RecordXDSPush counts a response with changed or removed resources that was sent to an
// Envoy of the Gateway.
func (m *Metrics) RecordXDSPush(name types.NamespacedName, resources XDSResources) {
	m.ensureGateway(name)
	m.xdsPushes.WithLabelValues(name.Namespace, name.Name, string(resources)).Inc()
}

// RecordXDSRejection counts a response that an Envoy of the Gateway rejected.
func (m *Metrics) RecordXDSRejection(name types.NamespacedName, resources XDSResources) {
	m.ensureGateway(name)
	m.xdsRejections.WithLabelValues(name.Namespace, name.Name, string(resources)).Inc()
}

// ObserveAcknowledgement observes the time from sending resources to their
// acknowledgement.
func (m *Metrics) ObserveAcknowledgement(resources XDSResources, duration time.Duration) {
	m.xdsAcknowledgement.WithLabelValues(string(resources)).Observe(duration.Seconds())
}

// SetCertificateExpiry sets the times at which the certificate of an Envoy that expires
// first and the certificate authority expire. The zero time means that there is no such
// certificate.
func (m *Metrics) SetCertificateExpiry(envoy, authority time.Time) {
	for certificate, expiry := range map[string]time.Time{certificateEnvoy: envoy, certificateAuthority: authority} {
		if expiry.IsZero() {
			m.certificateExpiry.DeleteLabelValues(certificate)
			continue
		}
		m.certificateExpiry.WithLabelValues(certificate).Set(float64(expiry.Unix()))
	}
}
