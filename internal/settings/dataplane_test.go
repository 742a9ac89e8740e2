package settings

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Envoy, and not the connector, connects to the backends. A setting that only connectors
// implement must not be ignored.
func TestSettingsWithoutEffectOnEnvoyAreRefused(t *testing.T) {
	origin := func(set func(*v1alpha1.OriginRequest)) spec {
		o := &v1alpha1.OriginRequest{}
		set(o)
		return spec{OriginRequest: o}
	}
	for field, settings := range map[string]spec{
		"spec.originRequest.keepAliveConnections":   origin(func(o *v1alpha1.OriginRequest) { o.KeepAliveConnections = new(int32(5)) }),
		"spec.originRequest.noHappyEyeballs":        origin(func(o *v1alpha1.OriginRequest) { o.NoHappyEyeballs = new(true) }),
		"spec.originRequest.matchSNItoHost":         origin(func(o *v1alpha1.OriginRequest) { o.MatchSNIToHost = new(true) }),
		"spec.originRequest.disableChunkedEncoding": origin(func(o *v1alpha1.OriginRequest) { o.DisableChunkedEncoding = new(true) }),
		"spec.originRequest.caPool":                 origin(func(o *v1alpha1.OriginRequest) { o.CAPool = new("/etc/ca.crt") }),
		"spec.originRequest.proxyType":              origin(func(o *v1alpha1.OriginRequest) { o.ProxyType = new(v1alpha1.ProxyTypeSOCKS) }),
		"spec.listenerConfigurations[HTTP:80].originRequest.caPool": {ListenerConfigurations: []v1alpha1.ListenerConfiguration{{
			ProtocolPort: "HTTP:80", OriginRequest: &v1alpha1.OriginRequest{CAPool: new("/etc/ca.crt")},
		}}},
		"spec.connector.enabled": connector(func(c *v1alpha1.Connector) { c.Enabled = new(false) }),
	} {
		if _, problem := resolve(&settings, spec{}); problem != nil {
			t.Errorf("%s with ingress rules: %s", field, problem.Message)
		}
		settings.DataPlane = new(v1alpha1.DataPlaneEnvoy)
		if _, problem := resolve(&settings, spec{}); problem == nil || !strings.Contains(problem.Message, field) {
			t.Errorf("%s with Envoy: got problem %+v, want a problem that names the field", field, problem)
		}
	}
}

// The originRequest fields that both data planes implement are valid with Envoy, and so
// are the defaults for the other fields.
func TestSettingsThatEnvoyImplementsAreValid(t *testing.T) {
	class := spec{DataPlane: new(v1alpha1.DataPlaneEnvoy), OriginRequest: &v1alpha1.OriginRequest{
		ConnectTimeout: new(v1alpha1.Duration("5s")), TLSTimeout: new(v1alpha1.Duration("5s")), TCPKeepAlive: new(v1alpha1.Duration("5s")),
		KeepAliveTimeout: new(v1alpha1.Duration("5s")), NoTLSVerify: new(true), HTTP2Origin: new(true), HTTPHostHeader: new("a"), OriginServerName: new("a"),
		NoHappyEyeballs: new(false), MatchSNIToHost: new(false), DisableChunkedEncoding: new(false), CAPool: new(""), ProxyType: new(v1alpha1.ProxyTypeNone),
	}}
	s, problem := resolve(&class, spec{})
	if problem != nil {
		t.Fatal(problem.Message)
	}
	if s.DataPlane() != v1alpha1.DataPlaneEnvoy {
		t.Errorf("got data plane %s", s.DataPlane())
	}
}

// The Kubernetes autoscaler considers the CPU requests of all containers in a pod.
func TestAutoscalingRequiresACPURequestOfEnvoy(t *testing.T) {
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	for name, test := range map[string]struct {
		class, gateway v1alpha1.Connector
		valid          bool
	}{
		"no autoscaling":                        {v1alpha1.Connector{}, v1alpha1.Connector{}, true},
		"no settings of Envoy":                  {v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}}, v1alpha1.Connector{}, false},
		"another autoscaler":                    {v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{Autoscaler: new(v1alpha1.AutoscalerExternal)}}, v1alpha1.Connector{}, true},
		"no resources of Envoy":                 {v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}, Envoy: &v1alpha1.EnvoyProxy{}}, v1alpha1.Connector{}, false},
		"a request of the connectors only":      {v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}, Resources: &corev1.ResourceRequirements{Requests: cpu}}, v1alpha1.Connector{}, false},
		"a request of Envoy":                    {v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{}, Envoy: envoyWith(cpu)}, v1alpha1.Connector{}, true},
		"autoscaling of the Gateway":            {v1alpha1.Connector{}, v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: new(int32(4))}}, false},
		"autoscaling of the Gateway, a request": {v1alpha1.Connector{Envoy: envoyWith(cpu)}, v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: new(int32(4))}}, true},
	} {
		class := spec{AllowedGatewayFields: []v1alpha1.GatewayField{"connector.autoscaling"}, Connector: &test.class}
		if _, problem := resolve(&class, spec{Connector: &test.gateway}); problem != nil {
			t.Errorf("%s, with ingress rules: %s", name, problem.Message)
		}
		class.DataPlane = new(v1alpha1.DataPlaneEnvoy)
		_, problem := resolve(&class, spec{Connector: &test.gateway})
		if test.valid {
			if problem != nil {
				t.Errorf("%s: %s", name, problem.Message)
			}
			continue
		}
		wantProblem(t, name, problem, "spec.connector.envoy.resources.requests.cpu")
	}
}

func envoyWith(requests corev1.ResourceList) *v1alpha1.EnvoyProxy {
	return &v1alpha1.EnvoyProxy{Resources: &corev1.ResourceRequirements{Requests: requests}}
}

// Envoy has memory for more rules than a connector.
func TestRulesPerTunnelDependsOnTheDataPlane(t *testing.T) {
	for plane, want := range map[v1alpha1.DataPlane]int{v1alpha1.DataPlaneIngressRules: 1000, v1alpha1.DataPlaneEnvoy: 20_000} {
		s, problem := resolve(&spec{DataPlane: &plane}, spec{})
		if problem != nil {
			t.Fatal(problem.Message)
		}
		if got := s.Limits().RulesPerTunnel; got != want {
			t.Errorf("%s: got %d rules, want %d", plane, got, want)
		}
	}
}

// The annotation needs no CRD of this project. It is a default for the GatewayClass, which
// no Gateway can change.
func TestTheAnnotationIsTheDefaultDataPlaneOfTheClass(t *testing.T) {
	class := func(value string, configuration *spec) Input {
		in := Input{Class: &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{
			Name: "tunnel", Annotations: map[string]string{v1alpha1.DataPlaneAnnotation: value},
		}}, Gateway: &gatewayv1.Gateway{}}
		if configuration != nil {
			in.Class.Spec.ParametersRef = &gatewayv1.ParametersReference{
				Group: v1alpha1.GroupName, Kind: KindTunnelConfiguration, Namespace: new(gatewayv1.Namespace("platform")), Name: "defaults",
			}
			in.ClassConfiguration = &v1alpha1.TunnelConfiguration{Spec: *configuration}
		}
		return in
	}
	withoutConnectors := connector(func(c *v1alpha1.Connector) { c.Enabled = new(false) })
	for name, test := range map[string]struct {
		in      Input
		want    v1alpha1.DataPlane
		problem string
	}{
		"no TunnelConfiguration":                 {class("Envoy", nil), v1alpha1.DataPlaneEnvoy, ""},
		"a TunnelConfiguration without a value":  {class("Envoy", &spec{}), v1alpha1.DataPlaneEnvoy, ""},
		"a TunnelConfiguration with a value":     {class("Envoy", &spec{DataPlane: new(v1alpha1.DataPlaneIngressRules)}), v1alpha1.DataPlaneIngressRules, ""},
		"an unknown value":                       {class("envoy", nil), "", "annotation tunnelgateway.dev/data-plane"},
		"an empty value":                         {class("", &spec{}), "", "annotation tunnelgateway.dev/data-plane"},
		"an unknown value that has no effect":    {class("envoy", &spec{DataPlane: new(v1alpha1.DataPlaneEnvoy)}), v1alpha1.DataPlaneEnvoy, ""},
		"a setting that is not valid with Envoy": {class("Envoy", &withoutConnectors), "", "spec.connector.enabled"},
		"a setting that ingress rules can have":  {class("IngressRules", &withoutConnectors), v1alpha1.DataPlaneIngressRules, ""},
		"a lost TunnelConfiguration":             {Input{Class: class("Envoy", &spec{}).Class, Gateway: &gatewayv1.Gateway{}}, "", "does not exist"},
	} {
		s, problem := Resolve(test.in)
		if test.problem != "" {
			wantProblem(t, name, problem, test.problem)
			continue
		}
		if problem != nil {
			t.Errorf("%s: %s", name, problem.Message)
			continue
		}
		if got := s.DataPlane(); got != test.want {
			t.Errorf("%s: got data plane %s, want %s", name, got, test.want)
		}
		if got := s.Limits().RulesPerTunnel; (got > 1000) != (test.want == v1alpha1.DataPlaneEnvoy) {
			t.Errorf("%s: got %d rules", name, got)
		}
	}
}
