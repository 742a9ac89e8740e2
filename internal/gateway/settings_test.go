package gateway_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

func configuration(namespace, name string, spec v1alpha1.TunnelConfigurationSpec) *v1alpha1.TunnelConfiguration {
	return &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

// setParametersRefs makes the GatewayClass refer to TunnelConfiguration
// platform/defaults, and the Gateway refer to TunnelConfiguration "own".
func setParametersRefs(s *gateway.Snapshot) {
	s.Class = &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}, Spec: gatewayv1.GatewayClassSpec{
		ParametersRef: &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: "defaults", Namespace: new(gatewayv1.Namespace("platform")),
		},
	}}
	s.Gateway.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
		Group: v1alpha1.GroupName, Kind: settings.KindTunnelConfiguration, Name: "own",
	}}
}

// A Gateway with invalid settings is not accepted and has no configuration, so that
// its tunnel keeps its last configuration.
func TestInvalidSettingsRejectTheGateway(t *testing.T) {
	for name, test := range map[string]struct {
		gateway v1alpha1.TunnelConfigurationSpec
		message string // part of the message; empty when the settings are valid
	}{
		"valid":   {v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{NoTLSVerify: new(true)}}, ""},
		"invalid": {v1alpha1.TunnelConfigurationSpec{OriginRequest: &v1alpha1.OriginRequest{TLSTimeout: new(v1alpha1.Duration("0s"))}}, "tlsTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			s := reportSnapshot()
			setParametersRefs(s)
			s.ClassConfiguration = configuration("platform", "defaults", v1alpha1.TunnelConfigurationSpec{})
			s.GatewayConfiguration = configuration("infra", "own", test.gateway)
			result := gateway.Build(s, options)
			if test.message == "" {
				if result.Rejected != nil || result.Settings == nil || rulesConfiguration(result.Table) == nil {
					t.Errorf("the Gateway is rejected: %+v", result.Rejected)
				}
				return
			}
			if result.Rejected == nil || result.Rejected.Reason != conditions.ReasonInvalidParameters || !strings.Contains(result.Rejected.Message, test.message) {
				t.Errorf("the Gateway is rejected with %+v, want InvalidParameters and a message that contains %q", result.Rejected, test.message)
			}
			if result.Settings != nil || rulesConfiguration(result.Table) != nil {
				t.Errorf("got settings %+v and configuration %+v, want none", result.Settings, rulesConfiguration(result.Table))
			}
		})
	}
}
