package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

func TestClassConditions(t *testing.T) {
	unsupported := &gatewayv1.ParametersReference{Group: "example.com", Kind: "Parameters", Name: "p"}
	supported := &gatewayv1.ParametersReference{
		Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: "p", Namespace: new(gatewayv1.Namespace("platform")),
	}
	for name, test := range map[string]struct {
		annotations         map[string]string
		parameters          *gatewayv1.ParametersReference
		configuration       *v1alpha1.TunnelConfiguration
		versions            map[string]string
		accepted, supported string
		messages            []string
	}{
		"the version that the controller is built with": {
			versions: map[string]string{"gateways.gateway.networking.k8s.io": consts.BundleVersion},
			accepted: "True Accepted", supported: "True SupportedVersion",
		},
		"the first version with ListenerSets": {
			versions: map[string]string{"gateways.gateway.networking.k8s.io": "v1.5.0"},
			accepted: "True Accepted", supported: "True SupportedVersion",
		},
		"parametersRef to an unsupported kind": {
			parameters: unsupported,
			versions:   map[string]string{"gateways.gateway.networking.k8s.io": "v1.6.3"},
			accepted:   "False InvalidParameters", supported: "True SupportedVersion",
			messages: []string{`Parameters "p"`, `"example.com"`},
		},
		"parametersRef to a TunnelConfiguration": {
			parameters: supported, configuration: &v1alpha1.TunnelConfiguration{},
			versions: map[string]string{"gateways.gateway.networking.k8s.io": "v1.6.3"},
			accepted: "True Accepted", supported: "True SupportedVersion",
		},
		"parametersRef to a TunnelConfiguration that does not exist": {
			parameters: supported,
			versions:   map[string]string{"gateways.gateway.networking.k8s.io": "v1.6.3"},
			accepted:   "False InvalidParameters", supported: "True SupportedVersion",
			messages: []string{"spec.parametersRef names TunnelConfiguration platform/p, which does not exist. Create it, or correct the reference."},
		},
		"parametersRef to a TunnelConfiguration that is not valid": {
			parameters:    supported,
			configuration: &v1alpha1.TunnelConfiguration{Spec: v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{GracePeriod: new(v1alpha1.Duration("4m"))}}},
			versions:      map[string]string{"gateways.gateway.networking.k8s.io": "v1.6.3"},
			accepted:      "False InvalidParameters", supported: "True SupportedVersion",
			messages: []string{"TunnelConfiguration platform/p of spec.parametersRef is not valid: spec.connector.gracePeriod must be a positive duration"},
		},
		"an account outside the controller's namespace": {
			parameters: supported,
			configuration: &v1alpha1.TunnelConfiguration{Spec: v1alpha1.TunnelConfigurationSpec{
				Account: &v1alpha1.Account{AccountID: new("0123456789abcdef0123456789abcdef")},
			}},
			versions: map[string]string{"gateways.gateway.networking.k8s.io": "v1.6.3"},
			accepted: "False InvalidParameters", supported: "True SupportedVersion",
			messages: []string{"TunnelConfiguration platform/p of spec.parametersRef is not valid: spec.account has an effect only in the controller's namespace, tunnel-gateway."},
		},
		"an annotation that names no data plane": {
			annotations: map[string]string{"tunnelgateway.dev/data-plane": "envoy"},
			versions:    map[string]string{"gateways.gateway.networking.k8s.io": "v1.6.3"},
			accepted:    "False InvalidParameters", supported: "True SupportedVersion",
			messages: []string{
				"The value of the annotation tunnelgateway.dev/data-plane on the GatewayClass is not a data plane. Set it to Envoy or IngressRules, or remove it.",
			},
		},
		"an older version": {
			versions: map[string]string{"gateways.gateway.networking.k8s.io": "v1.4.1"},
			accepted: "True Accepted", supported: "False UnsupportedVersion",
			messages: []string{
				`The controller does not support the installed Gateway API version: gateways.gateway.networking.k8s.io has version "v1.4.1". Install v1.5 or v1.6; `,
			},
		},
		"a newer version": {
			versions: map[string]string{"gateways.gateway.networking.k8s.io": "v1.7.0"},
			accepted: "True Accepted", supported: "False UnsupportedVersion",
		},
		"a version with a supported version as its prefix": {
			versions: map[string]string{"gateways.gateway.networking.k8s.io": "v1.60.0"},
			accepted: "True Accepted", supported: "False UnsupportedVersion",
		},
		"a CRD without the annotation": {
			versions: map[string]string{"gateways.gateway.networking.k8s.io": ""},
			accepted: "True Accepted", supported: "False UnsupportedVersion",
			messages: []string{"gateways.gateway.networking.k8s.io has no version."},
		},
		"several unsupported versions in alphabetical order": {
			versions: map[string]string{
				"listenersets.gateway.networking.k8s.io": "v1.6.3",
				"httproutes.gateway.networking.k8s.io":   "v1.0.0",
				"gateways.gateway.networking.k8s.io":     "v1.1.0",
			},
			accepted: "True Accepted", supported: "False UnsupportedVersion",
			messages: []string{`gateways.gateway.networking.k8s.io has version "v1.1.0", httproutes.gateway.networking.k8s.io has version "v1.0.0".`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			class := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ParametersRef: test.parameters}}
			class.Generation, class.Annotations = 4, test.annotations
			status := gateway.BuildClass(&gateway.ClassSnapshot{Class: class, Configuration: test.configuration, BundleVersions: test.versions}, options)
			want := map[string]string{"Accepted": test.accepted, "SupportedVersion": test.supported}
			if diff := cmp.Diff(want, statusAndReason(status.Conditions)); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
			text := messagesOf(status.Conditions)
			for _, message := range test.messages {
				if !strings.Contains(text, message) {
					t.Errorf("the messages do not contain %q: %s", message, text)
				}
			}
			for _, c := range status.Conditions {
				if c.ObservedGeneration != 4 {
					t.Errorf("%s has observedGeneration %d, want 4", c.Type, c.ObservedGeneration)
				}
			}
		})
	}
}

// status.supportedFeatures is sorted and has the core features, and the extended features
// whose conformance tests all pass with the data plane of the GatewayClass.
func TestClassListsSupportedFeatures(t *testing.T) {
	ofEveryDataPlane := []string{
		"Gateway", "GatewayAddressEmpty", "GatewayHTTPListenerIsolation", "GatewayPort8080", "HTTPRoute", "HTTPRouteBackendProtocolWebSocket",
		"HTTPRouteDestinationPortMatching", "HTTPRouteNamedRouteRule", "ListenerSet", "ReferenceGrant",
	}
	withEnvoy := append([]string{
		"GRPCRoute", "GRPCRouteNamedRouteRule", "HTTPRoute303RedirectStatusCode", "HTTPRoute307RedirectStatusCode", "HTTPRoute308RedirectStatusCode",
		"HTTPRouteBackendProtocolH2C", "HTTPRouteBackendRequestHeaderModification", "HTTPRouteBackendTimeout", "HTTPRouteCORS", "HTTPRouteHostRewrite",
		"HTTPRouteMethodMatching", "HTTPRoutePathRedirect", "HTTPRoutePathRewrite", "HTTPRouteQueryParamMatching", "HTTPRouteRequestMirror",
		"HTTPRouteRequestMultipleMirrors", "HTTPRouteRequestPercentageMirror", "HTTPRouteRequestTimeout", "HTTPRouteResponseHeaderModification",
		"HTTPRouteSchemeRedirect",
	}, ofEveryDataPlane...)
	slices.Sort(withEnvoy)
	withRetries := append([]string{"HTTPRouteRetry"}, withEnvoy...)
	slices.Sort(withRetries)
	named := &gatewayv1.ParametersReference{Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Namespace: new(gatewayv1.Namespace("platform")), Name: "p"}
	specOf := func(plane v1alpha1.DataPlane) *v1alpha1.TunnelConfiguration {
		return configuration("platform", "p", v1alpha1.TunnelConfigurationSpec{DataPlane: &plane})
	}
	invalid := specOf(v1alpha1.DataPlaneEnvoy)
	invalid.Spec.Connector = &v1alpha1.Connector{GracePeriod: new(v1alpha1.Duration("-1s"))}
	empty := configuration("platform", "p", v1alpha1.TunnelConfigurationSpec{})
	for name, test := range map[string]struct {
		annotation    string
		parameters    *gatewayv1.ParametersReference
		configuration *v1alpha1.TunnelConfiguration
		experimental  bool
		want          []string
	}{
		"without parameters":                     {"", nil, nil, false, ofEveryDataPlane},
		"without a data plane":                   {"", named, empty, false, ofEveryDataPlane},
		"ingress rules":                          {"", named, specOf(v1alpha1.DataPlaneIngressRules), false, ofEveryDataPlane},
		"ingress rules, experimental channel":    {"", named, specOf(v1alpha1.DataPlaneIngressRules), true, ofEveryDataPlane},
		"Envoy":                                  {"", named, specOf(v1alpha1.DataPlaneEnvoy), false, withEnvoy},
		"Envoy, experimental channel":            {"", named, specOf(v1alpha1.DataPlaneEnvoy), true, withRetries},
		"parameters that are lost":               {"", named, nil, false, ofEveryDataPlane},
		"invalid parameters":                     {"", named, invalid, false, ofEveryDataPlane},
		"an annotation":                          {"Envoy", nil, nil, false, withEnvoy},
		"an annotation with ingress rules":       {"IngressRules", nil, nil, false, ofEveryDataPlane},
		"an annotation beside parameters":        {"Envoy", named, empty, false, withEnvoy},
		"an annotation below parameters":         {"Envoy", named, specOf(v1alpha1.DataPlaneIngressRules), false, ofEveryDataPlane},
		"an annotation beside lost parameters":   {"Envoy", named, nil, false, ofEveryDataPlane},
		"an annotation with an unknown value":    {"envoy", nil, nil, false, ofEveryDataPlane},
		"an unknown annotation below parameters": {"envoy", named, specOf(v1alpha1.DataPlaneEnvoy), false, withEnvoy},
	} {
		t.Run(name, func(t *testing.T) {
			class := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ParametersRef: test.parameters}}
			if test.annotation != "" {
				class.Annotations = map[string]string{v1alpha1.DataPlaneAnnotation: test.annotation}
			}
			var got []string
			snapshot := &gateway.ClassSnapshot{Class: class, Configuration: test.configuration, ExperimentalRoutes: test.experimental}
			for _, feature := range gateway.BuildClass(snapshot, options).SupportedFeatures {
				got = append(got, string(feature.Name))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("features differ (-want +got):\n%s", diff)
			}
		})
	}
}

// statusAndReason returns "<status> <reason>" for each condition by type.
func statusAndReason(conditions []metav1.Condition) map[string]string {
	byType := map[string]string{}
	for _, c := range conditions {
		byType[c.Type] = string(c.Status) + " " + c.Reason
	}
	return byType
}

func messagesOf(conditions []metav1.Condition) string {
	var messages []string
	for _, c := range conditions {
		messages = append(messages, c.Message)
	}
	return strings.Join(messages, "\n")
}

func messageOf(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// Managing DNS without permissions lets every tenant publish names, which the platform
// team must know.
func TestClassWarnsOfRecordsWithoutPermissions(t *testing.T) {
	for _, test := range []struct {
		mode   v1alpha1.DNSMode
		from   v1alpha1.HostnamesFrom
		warned bool
	}{
		{v1alpha1.DNSManage, v1alpha1.HostnamesFromAll, true},
		{v1alpha1.DNSManage, v1alpha1.HostnamesFromNamespaceAnnotation, false},
		{v1alpha1.DNSObserve, v1alpha1.HostnamesFromAll, false},
		{v1alpha1.DNSOff, v1alpha1.HostnamesFromAll, false},
	} {
		s := observedSnapshot()
		s.ClassConfiguration.Spec.DNS.Mode, s.ClassConfiguration.Spec.Hostnames = &test.mode, &v1alpha1.Hostnames{From: &test.from}
		status := gateway.BuildClass(&gateway.ClassSnapshot{Class: s.Class, Configuration: s.ClassConfiguration}, options)
		c := meta.FindStatusCondition(status.Conditions, "Accepted")
		if c.Status != metav1.ConditionTrue || strings.Contains(c.Message, "any free name") != test.warned {
			t.Errorf("%s and %s: Accepted is %s with the message %q", test.mode, test.from, c.Status, c.Message)
		}
	}
}
