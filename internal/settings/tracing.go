package settings

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// DefaultCollectorPort is the port for OTLP over gRPC.
const DefaultCollectorPort = 4317

// Collector is an OpenTelemetry collector.
type Collector struct {
	Host string
	Port uint16
	TLS  bool
}

// Address returns the host and the port.
func (c Collector) Address() string { return fmt.Sprintf("%s:%d", c.Host, c.Port) }

// ParseCollector parses [v1alpha1.Tracing.Endpoint]. ok is false if it is not valid.
func ParseCollector(endpoint string) (c Collector, ok bool) {
	u, err := url.Parse(endpoint)
	if err != nil || strings.TrimSuffix(endpoint, "/") != u.Scheme+"://"+u.Host {
		return Collector{}, false
	}
	c = Collector{Host: u.Hostname(), Port: DefaultCollectorPort, TLS: u.Scheme == "https"}
	if !c.TLS && u.Scheme != "http" || len(validation.IsDNS1123Subdomain(c.Host)) > 0 {
		return Collector{}, false
	}
	if _, err := netip.ParseAddr(c.Host); err == nil && c.TLS {
		return Collector{}, false // Envoy compares the host with the names in the certificate
	}
	if u.Port() == "" {
		return c, u.Host == c.Host
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	c.Port = uint16(port)
	return c, err == nil && port > 0
}

// checkTracing returns why Envoy would reject the tracing settings, or "".
func checkTracing(spec *v1alpha1.TunnelConfigurationSpec) string {
	const path = "spec.connector.envoy.tracing"
	if spec.Connector == nil || spec.Connector.Envoy == nil || spec.Connector.Envoy.Tracing == nil {
		return ""
	}
	t := spec.Connector.Envoy.Tracing
	if _, ok := ParseCollector(t.Endpoint); !ok {
		return path + ".endpoint must be a URL with the scheme http or https and a host, such as http://collector.observability.svc:4317. The host must not be an IP address with https."
	}
	if p := t.SamplingPercent; p != nil && (*p < 0 || *p > 100) {
		return fmt.Sprintf("%s.samplingPercent is %d. Choose a number from 0 to 100.", path, *p)
	}
	if p := t.Parent; p != nil && *p != v1alpha1.TraceParentIgnored && *p != v1alpha1.TraceParentTrusted {
		return path + ".parent must be Ignored or Trusted."
	}
	return ""
}
