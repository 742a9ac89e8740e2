package settings

import (
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Backends returns the addresses to which Envoy connects. It accepts nil settings, for
// which it returns the default.
func (s *Settings) Backends() v1alpha1.BackendAddresses {
	if s == nil || s.Spec.Connector == nil || s.Spec.Connector.Envoy == nil {
		return v1alpha1.BackendsEndpoints
	}
	return ptr.Deref(s.Spec.Connector.Envoy.Backends, v1alpha1.BackendsEndpoints)
}
