package routing

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Telemetry determines what the data plane reports about requests. Nil fields mean the defaults.
// Ingress rules ignore it.
type Telemetry struct {
	Metrics   *v1alpha1.EnvoyMetrics `json:"metrics,omitempty"`
	AccessLog *v1alpha1.AccessLog    `json:"accessLog,omitempty"`
	Tracing   *v1alpha1.Tracing      `json:"tracing,omitempty"`
	// ProxyStatus is empty for the default.
	ProxyStatus v1alpha1.ProxyStatus `json:"proxyStatus,omitempty"`
}

// SendsProxyStatus reports whether Envoy marks its own responses with the header Proxy-Status.
func (t Telemetry) SendsProxyStatus() bool { return t.ProxyStatus != v1alpha1.ProxyStatusDisabled }

// CountsRoutes reports whether the data plane counts the requests of each route.
func (t Telemetry) CountsRoutes() bool {
	return t.Metrics != nil && slices.Contains(t.Metrics.By, v1alpha1.MetricsByRoute)
}

// CountsBackends reports whether the data plane counts the requests of each route for
// each backend.
func (t Telemetry) CountsBackends() bool {
	return t.CountsRoutes() && slices.Contains(t.Metrics.By, v1alpha1.MetricsByBackend)
}

// NewTelemetry returns the telemetry settings of an Envoy. p can be nil.
func NewTelemetry(p *v1alpha1.EnvoyProxy) Telemetry {
	if p == nil {
		return Telemetry{}
	}
	return Telemetry{Metrics: p.Metrics, AccessLog: p.AccessLog, Tracing: p.Tracing, ProxyStatus: ptr.Deref(p.ProxyStatus, "")}
}

// BackendName identifies a backend of a rule in metrics. It is empty for requests without a
// backend.
type BackendName struct {
	Import  bool
	Service types.NamespacedName
	Port    int32
}

// Name returns the name of the backend.
func (b Backend) Name() BackendName {
	return BackendName{Import: b.Import, Service: b.Service, Port: b.ServicePort}
}

// String names the backend like a label: shop/web:80, or ServiceImport shop/web:80.
func (n BackendName) String() string {
	name := fmt.Sprintf("%s:%d", n.Service, n.Port)
	if n.Import {
		name = "ServiceImport " + name
	}
	return name
}

// BackendNames returns the name of each backend, which can be empty. Names can repeat.
func (a *Action) BackendNames() []BackendName {
	if a.Forward == nil {
		return []BackendName{{}}
	}
	names := make([]BackendName, len(a.Forward.Backends))
	for i := range a.Forward.Backends {
		if b := &a.Forward.Backends[i]; b.Status == 0 {
			names[i] = b.Backend.Name()
		}
	}
	return names
}
