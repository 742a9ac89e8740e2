package settings

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

func (s *Settings) connector() v1alpha1.Connector {
	return ptr.Deref(s.Spec.Connector, v1alpha1.Connector{})
}

// RunsConnectors reports whether the controller runs the connectors.
func (s *Settings) RunsConnectors() bool { return ptr.Deref(s.connector().Enabled, true) }

// Protocol returns the transport between connectors and Cloudflare.
func (s *Settings) Protocol() v1alpha1.Protocol {
	return ptr.Deref(s.connector().Protocol, v1alpha1.ProtocolAuto)
}

// TokenRotation returns the interval at which the controller rotates the tunnel token, or
// 0 when it rotates the token only on demand.
func (s *Settings) TokenRotation() time.Duration {
	interval := s.connector().TokenRotation
	if interval == nil {
		return 0
	}
	seconds, err := interval.Seconds()
	if err != nil {
		return 0 // Resolve rejects an invalid duration
	}
	return time.Duration(seconds) * time.Second
}
