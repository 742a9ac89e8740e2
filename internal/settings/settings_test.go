package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

type specOf = v1alpha1.TunnelConfigurationSpec

func configuration(namespace, name string, spec specOf) *v1alpha1.TunnelConfiguration {
	return &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

// inputOf returns a GatewayClass and a Gateway that refer to the two objects. A nil
// object does not exist.
func inputOf(class, gateway *v1alpha1.TunnelConfiguration) settings.Input {
	return settings.Input{
		Class: &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}, Spec: gatewayv1.GatewayClassSpec{
			ParametersRef: &gatewayv1.ParametersReference{
				Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: "defaults", Namespace: new(gatewayv1.Namespace("platform")),
			},
		}},
		Gateway: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared"}, Spec: gatewayv1.GatewaySpec{
			Infrastructure: &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
				Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: "own",
			}},
		}},
		ClassConfiguration: class, GatewayConfiguration: gateway, ControllerNamespace: "platform",
	}
}

// gatewayFields are all fields that a GatewayClass can permit for its Gateways.
var gatewayFields = []v1alpha1.GatewayField{
	"originRequest", "listenerConfigurations", "tunnel.deletionPolicy", "tunnel.existing",
	"connector.enabled", "connector.replicas", "connector.autoscaling", "connector.protocol", "connector.edgeIPVersion", "connector.logLevel", "connector.resources",
	"connector.nodeSelector", "connector.tolerations", "connector.affinity", "connector.topologySpreadConstraints",
	"connector.podAnnotations", "connector.podLabels", "connector.readyDelay", "connector.gracePeriod", "connector.podDisruptionBudget", "connector.tokenRotation",
}

func TestResolveMergesBothLevels(t *testing.T) {
	account := &v1alpha1.Account{APITokenSecretRef: &v1alpha1.SecretKeyReference{Name: "token"}}
	class := configuration("platform", "defaults", specOf{Account: account, Connector: &v1alpha1.Connector{Image: new("i")}})
	gateway := configuration("infra", "own", specOf{Connector: &v1alpha1.Connector{Replicas: new(int32(3))}})
	for name, test := range map[string]struct {
		in   settings.Input
		want settings.Settings
	}{
		"no parametersRef": {settings.Input{Gateway: &gatewayv1.Gateway{}}, settings.Settings{}},
		"both levels": {inputOf(class, gateway), settings.Settings{
			Spec:             specOf{Account: account, Connector: &v1alpha1.Connector{Image: new("i"), Replicas: new(int32(3))}},
			AccountNamespace: "platform",
		}},
		"no account": {inputOf(configuration("platform", "defaults", specOf{}), gateway), settings.Settings{Spec: gateway.Spec}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problem := settings.Resolve(test.in)
			if diff := cmp.Diff(&test.want, got); diff != "" || problem != nil {
				t.Errorf("got problem %+v, and the settings differ (-want +got):\n%s", problem, diff)
			}
		})
	}
}

func TestInvalidValuesAreRejectedAtBothLevels(t *testing.T) {
	// An invalid value is rejected on both the GatewayClass and the Gateway.
	connector := func(c v1alpha1.Connector) specOf { return specOf{Connector: &c} }
	origin := func(o v1alpha1.OriginRequest) specOf { return specOf{OriginRequest: &o} }
	entry := func(l v1alpha1.ListenerConfiguration) specOf {
		l.ProtocolPort = "HTTPS:443"
		return specOf{ListenerConfigurations: []v1alpha1.ListenerConfiguration{l}}
	}
	access := func(a v1alpha1.Access) specOf { return entry(v1alpha1.ListenerConfiguration{Access: &a}) }
	amount := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	one := intstr.FromInt32(1)
	for name, test := range map[string]struct {
		spec    specOf
		message string // part of the message; empty when the spec is valid
	}{
		"replicas with autoscaling":                    {connector(v1alpha1.Connector{Replicas: new(int32(2)), Autoscaling: &v1alpha1.Autoscaling{}}), "spec.connector "},
		"minReplicas above maxReplicas":                {connector(v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: new(int32(3)), MaxReplicas: new(int32(2))}}), "autoscaling"},
		"minReplicas above the default of maxReplicas": {connector(v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: new(int32(26))}}), "autoscaling"},
		"minReplicas equal to maxReplicas":             {connector(v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: new(int32(2)), MaxReplicas: new(int32(2))}}), ""},
		"resource claims":                              {connector(v1alpha1.Connector{Resources: &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "a"}}}}), "claims"},
		"a request above the limit":                    {connector(v1alpha1.Connector{Resources: &corev1.ResourceRequirements{Requests: amount(2), Limits: amount(1)}}), "more cpu"},
		"a request at the limit":                       {connector(v1alpha1.Connector{Resources: &corev1.ResourceRequirements{Requests: amount(1), Limits: amount(1)}}), ""},
		"an empty podDisruptionBudget":                 {connector(v1alpha1.Connector{PodDisruptionBudget: &v1alpha1.PodDisruptionBudget{}}), "podDisruptionBudget"},
		"a podDisruptionBudget with both fields":       {connector(v1alpha1.Connector{PodDisruptionBudget: &v1alpha1.PodDisruptionBudget{MinAvailable: &one, MaxUnavailable: &one}}), "podDisruptionBudget"},
		"a podDisruptionBudget with one field":         {connector(v1alpha1.Connector{PodDisruptionBudget: &v1alpha1.PodDisruptionBudget{MinAvailable: &one}}), ""},
		"a readyDelay above the maximum":               {connector(v1alpha1.Connector{ReadyDelay: new(v1alpha1.Delay("2m1s"))}), "readyDelay"},
		"a negative readyDelay":                        {connector(v1alpha1.Connector{ReadyDelay: new(v1alpha1.Delay("-1s"))}), "readyDelay"},
		"a readyDelay of zero":                         {connector(v1alpha1.Connector{ReadyDelay: new(v1alpha1.Delay("0s"))}), ""},
		"a gracePeriod above the maximum":              {connector(v1alpha1.Connector{GracePeriod: new(v1alpha1.Duration("3m1s"))}), "gracePeriod"},
		"the maximum gracePeriod":                      {connector(v1alpha1.Connector{GracePeriod: new(v1alpha1.Duration("3m"))}), ""},
		"an empty entry in metricsFrom":                {connector(v1alpha1.Connector{MetricsFrom: []v1alpha1.MetricsPeer{{}}}), "metricsFrom"},
		"an invalid selector in metricsFrom":           {connector(v1alpha1.Connector{MetricsFrom: []v1alpha1.MetricsPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}}}), "metricsFrom"},
		"a connectTimeout with milliseconds":           {origin(v1alpha1.OriginRequest{ConnectTimeout: new(v1alpha1.Duration("1500ms"))}), "spec.originRequest.connectTimeout"},
		"a tlsTimeout of zero":                         {origin(v1alpha1.OriginRequest{TLSTimeout: new(v1alpha1.Duration("0s"))}), "tlsTimeout"},
		"a negative tcpKeepAlive":                      {origin(v1alpha1.OriginRequest{TCPKeepAlive: new(v1alpha1.Duration("-1s"))}), "tcpKeepAlive"},
		"a keepAliveTimeout that is not a duration":    {origin(v1alpha1.OriginRequest{KeepAliveTimeout: new(v1alpha1.Duration("long"))}), "keepAliveTimeout"},
		"matchSNItoHost with http2Origin":              {origin(v1alpha1.OriginRequest{MatchSNIToHost: new(true), HTTP2Origin: new(true)}), "spec.originRequest sets both"},
		"matchSNItoHost with a false http2Origin":      {origin(v1alpha1.OriginRequest{MatchSNIToHost: new(true), HTTP2Origin: new(false)}), ""},
		"matchSNItoHost with http2Origin in listenerConfigurations": {entry(v1alpha1.ListenerConfiguration{OriginRequest: &v1alpha1.OriginRequest{MatchSNIToHost: new(true), HTTP2Origin: new(true)}}),
			"spec.listenerConfigurations[HTTPS:443].originRequest sets both"},
		"required access without a teamName":             {access(v1alpha1.Access{Required: true, AUDTags: []v1alpha1.AUDTag{"a"}}), "teamName"},
		"required access with an empty teamName":         {access(v1alpha1.Access{Required: true, TeamName: new(""), AUDTags: []v1alpha1.AUDTag{"a"}}), "teamName"},
		"required access without audTags":                {access(v1alpha1.Access{Required: true, TeamName: new("a")}), "audTags"},
		"required access with an empty entry in audTags": {access(v1alpha1.Access{Required: true, TeamName: new("a"), AUDTags: []v1alpha1.AUDTag{""}}), "audTags"},
		"required access with all fields":                {access(v1alpha1.Access{Required: true, TeamName: new("a"), AUDTags: []v1alpha1.AUDTag{"a"}}), ""},
		"access that is not required":                    {access(v1alpha1.Access{}), ""},
		"required access with policies":                  {access(v1alpha1.Access{Required: true, Policies: []v1alpha1.PolicyName{"in-no-catalogue"}}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			empty, permitting := configuration("infra", "own", specOf{}), configuration("platform", "defaults", specOf{AllowedGatewayFields: gatewayFields})
			for level, in := range map[string]settings.Input{
				"GatewayClass tunnel is not accepted: TunnelConfiguration platform/defaults of spec.parametersRef is not valid: ": inputOf(configuration("platform", "defaults", test.spec), empty),
				`TunnelConfiguration "own" of spec.infrastructure.parametersRef is not valid: `:                                   inputOf(permitting, configuration("infra", "own", test.spec)),
			} {
				wantInvalid(t, in, level, test.message)
			}
		})
	}
}

func TestClassCannotAdmitPodsToTheLoopbackAddress(t *testing.T) {
	class := configuration("platform", "defaults", specOf{Connector: &v1alpha1.Connector{
		Metrics: new(v1alpha1.MetricsLoopback), MetricsFrom: []v1alpha1.MetricsPeer{{PodSelector: &metav1.LabelSelector{}}},
	}})
	in := inputOf(class, configuration("infra", "own", specOf{}))
	wantInvalid(t, in, "GatewayClass tunnel is not accepted: TunnelConfiguration platform/defaults of spec.parametersRef is not valid: ", "Remove metricsFrom")
	class.Spec.Connector.Metrics = new(v1alpha1.MetricsPod)
	wantInvalid(t, in, "", "")
}

func TestResourcesOfEnvoyAreValidated(t *testing.T) {
	amount := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	for part, r := range map[string]corev1.ResourceRequirements{
		"": {Requests: amount(1), Limits: amount(1)},
		"spec.connector.envoy.resources.claims is not supported": {Claims: []corev1.ResourceClaim{{Name: "a"}}},
		"spec.connector.envoy.resources requests more cpu":       {Requests: amount(2), Limits: amount(1)},
	} {
		class := configuration("platform", "defaults", specOf{Connector: &v1alpha1.Connector{Envoy: &v1alpha1.EnvoyProxy{Resources: &r}}})
		in := inputOf(class, configuration("infra", "own", specOf{}))
		wantInvalid(t, in, "GatewayClass tunnel is not accepted: TunnelConfiguration platform/defaults of spec.parametersRef is not valid: ", part)
	}
}

// wantInvalid checks that the settings are rejected, with the prefix and the part in
// the message. An empty part means that the settings must be valid.
func wantInvalid(t *testing.T, in settings.Input, prefix, part string) {
	t.Helper()
	got, problem := settings.Resolve(in)
	if part == "" {
		if problem != nil || got == nil {
			t.Errorf("got problem %+v, want none", problem)
		}
		return
	}
	if got != nil || problem == nil || problem.Reason != conditions.ReasonInvalidParameters ||
		!strings.HasPrefix(problem.Message, prefix) || !strings.Contains(problem.Message, part) {
		t.Errorf("got settings %+v and problem %+v, want InvalidParameters with %q and %q", got, problem, prefix, part)
	}
}

func TestMergedSettingsAreValidated(t *testing.T) {
	// Values that are valid in each TunnelConfiguration can be invalid in the merged
	// settings.
	amount := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(n, resource.BinarySI)}
	}
	resources := func(r corev1.ResourceRequirements) specOf {
		return specOf{Connector: &v1alpha1.Connector{Resources: &r}}
	}
	for name, test := range map[string]struct {
		class, gateway specOf
		message        string
	}{
		"a request above the limit": {
			resources(corev1.ResourceRequirements{Limits: amount(1)}), resources(corev1.ResourceRequirements{Requests: amount(2)}), "more memory",
		},
		"minReplicas above maxReplicas": {
			specOf{Connector: &v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: new(int32(1))}}},
			specOf{Connector: &v1alpha1.Connector{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: new(int32(2))}}}, "autoscaling",
		},
		"an empty string that overrides a value of spec.originRequest": {
			specOf{OriginRequest: &v1alpha1.OriginRequest{ProxyType: new(v1alpha1.ProxyTypeSOCKS)}},
			specOf{ListenerConfigurations: []v1alpha1.ListenerConfiguration{{
				ProtocolPort: "HTTP:80", OriginRequest: &v1alpha1.OriginRequest{ProxyType: new(v1alpha1.ProxyTypeNone)},
			}}}, "proxyType",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.class.AllowedGatewayFields = gatewayFields
			wantInvalid(t, inputOf(configuration("platform", "defaults", test.class), configuration("infra", "own", test.gateway)),
				"The settings of GatewayClass tunnel and the Gateway are not valid together: ", test.message)
		})
	}
}

func TestConfigurationWithoutReferenceHasNoEffect(t *testing.T) {
	// A TunnelConfiguration has no effect without a parametersRef.
	object := configuration("platform", "defaults", specOf{OriginRequest: &v1alpha1.OriginRequest{NoTLSVerify: new(true)}})
	got, problem := settings.Resolve(settings.Input{
		Class: &gatewayv1.GatewayClass{}, ClassConfiguration: object, Gateway: &gatewayv1.Gateway{}, GatewayConfiguration: object,
	})
	if problem != nil || got.Spec.OriginRequest != nil {
		t.Errorf("got settings %+v and problem %+v, want empty settings", got, problem)
	}
}
