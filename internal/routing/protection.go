package routing

import "github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"

// Protection protects visitors from pods that fail, and backends from too many requests.
// The zero value has the defaults. Ingress rules ignore it.
type Protection struct {
	// OutlierDetection determines whether pods that do not accept connections are left
	// out, or is nil for the default.
	OutlierDetection *v1alpha1.OutlierDetection `json:"outlierDetection,omitempty"`
	// CircuitBreakers limits the requests to each backend, or is nil for the default.
	CircuitBreakers *v1alpha1.CircuitBreakers `json:"circuitBreakers,omitempty"`
}

// NewProtection returns the settings for an Envoy, which can be nil.
func NewProtection(p *v1alpha1.EnvoyProxy) Protection {
	if p == nil {
		return Protection{}
	}
	return Protection{OutlierDetection: p.OutlierDetection, CircuitBreakers: p.CircuitBreakers}
}
