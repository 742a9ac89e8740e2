package settings

import (
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

func TestCollectorOfAnEndpoint(t *testing.T) {
	for endpoint, want := range map[string]Collector{
		"http://collector.observability.svc:4317":  {Host: "collector.observability.svc", Port: 4317},
		"http://collector.observability.svc:4317/": {Host: "collector.observability.svc", Port: 4317},
		"http://collector":                         {Host: "collector", Port: 4317},
		"http://192.0.2.1:65535":                   {Host: "192.0.2.1", Port: 65535},
		"https://otlp.example.com:443":             {Host: "otlp.example.com", Port: 443, TLS: true},
	} {
		if got, ok := ParseCollector(endpoint); !ok || got != want {
			t.Errorf("%s: got %+v, %t, want %+v", endpoint, got, ok, want)
		}
	}
	for _, endpoint := range []string{
		"", "collector:4317", "grpc://collector:4317", "http://", "http://:4317", "http://collector:", "http://collector:0", "http://collector:65536",
		"http://collector:4317/v1/traces", "http://collector:4317?a=b", "http://collector:4317?", "http://collector:4317#a", "http://user@collector:4317",
		"http://Collector:4317", "http://collector_1:4317", "http://collector..svc:4317", "http://-collector:4317", "http://[::1]:4317",
		"http://%2f:4317", "http://a b:4317", "https://192.0.2.1:4317", "http://" + strings.Repeat("a.", 127) + "a:4317",
	} {
		if got, ok := ParseCollector(endpoint); ok {
			t.Errorf("%q: got %+v, want an error", endpoint, got)
		}
	}
}

// Settings can arrive without the check by the CustomResourceDefinition.
func TestTracingIsCheckedAgain(t *testing.T) {
	settings := func(change func(*v1alpha1.Tracing)) spec {
		tracing := &v1alpha1.Tracing{Endpoint: "http://collector.observability.svc:4317"}
		change(tracing)
		return connector(func(c *v1alpha1.Connector) { c.Envoy = &v1alpha1.EnvoyProxy{Tracing: tracing} })
	}
	for want, change := range map[string]func(*v1alpha1.Tracing){
		"spec.connector.envoy.tracing.endpoint must be a URL":          func(v *v1alpha1.Tracing) { v.Endpoint = "http://collector:99999" },
		"spec.connector.envoy.tracing.samplingPercent is 101. ":        func(v *v1alpha1.Tracing) { v.SamplingPercent = new(int32(101)) },
		"spec.connector.envoy.tracing.samplingPercent is -1. ":         func(v *v1alpha1.Tracing) { v.SamplingPercent = new(int32(-1)) },
		"spec.connector.envoy.tracing.parent must be Ignored or Trust": func(v *v1alpha1.Tracing) { v.Parent = new(v1alpha1.TraceParent("Maybe")) },
	} {
		class := settings(change)
		_, problem := resolve(&class, spec{})
		wantProblem(t, want, problem, want)
	}
}
