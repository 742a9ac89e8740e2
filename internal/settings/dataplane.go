package settings

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// DataPlane returns the data plane for the Gateway. It accepts nil settings, for which it
// returns the default.
func (s *Settings) DataPlane() v1alpha1.DataPlane {
	if s == nil {
		return v1alpha1.DataPlaneIngressRules
	}
	return ptr.Deref(s.Spec.DataPlane, v1alpha1.DataPlaneIngressRules)
}

// ClassDataPlane returns the data plane for a GatewayClass. It returns the default when
// the GatewayClass is not valid. configuration is the object that [ClassParameters]
// returns, or nil.
func ClassDataPlane(class *gatewayv1.GatewayClass, configuration *v1alpha1.TunnelConfiguration, controllerNamespace string) v1alpha1.DataPlane {
	if ClassProblem(class, configuration, controllerNamespace) != nil {
		return v1alpha1.DataPlaneIngressRules
	}
	plane, _ := classDataPlane(class, configuration)
	return ptr.Deref(plane, v1alpha1.DataPlaneIngressRules)
}

// classDataPlane returns the data plane that the GatewayClass's TunnelConfiguration or
// annotation selects, or nil. The TunnelConfiguration takes precedence. An annotation with
// an unknown value is a problem and not the default, because ingress rules omit the
// matches of a route that only Envoy supports.
func classDataPlane(class *gatewayv1.GatewayClass, configuration *v1alpha1.TunnelConfiguration) (*v1alpha1.DataPlane, *Problem) {
	if configuration != nil && configuration.Spec.DataPlane != nil {
		return configuration.Spec.DataPlane, nil
	}
	value, ok := class.Annotations[v1alpha1.DataPlaneAnnotation]
	if !ok {
		return nil, nil
	}
	switch plane := v1alpha1.DataPlane(value); plane {
	case v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy:
		return &plane, nil
	default:
		return nil, invalid("The value of the annotation %s on the GatewayClass is not a data plane. Set it to %s or %s, or remove it.",
			v1alpha1.DataPlaneAnnotation, v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneIngressRules)
	}
}

// checkDataPlane rejects merged settings that have no effect with Envoy, because Envoy,
// and not the connector, connects to the backends. It also rejects an autoscaler that
// could not scale.
func (s *Settings) checkDataPlane() string {
	if s.DataPlane() != v1alpha1.DataPlaneEnvoy {
		return ""
	}
	if s.Spec.Connector != nil && !ptr.Deref(s.Spec.Connector.Enabled, true) {
		return "spec.connector.enabled is false, but dataPlane Envoy requires the controller's connectors. Set enabled to true, or dataPlane to IngressRules."
	}
	violation := cmp.Or(s.checkEnvoyCPU(), checkEnvoyFields("spec.originRequest", s.Spec.OriginRequest))
	for _, level := range [][]v1alpha1.ListenerConfiguration{s.Listeners.Class, s.Listeners.Gateway} {
		for i := range level {
			violation = cmp.Or(violation, checkEnvoyFields(pathOf(&level[i])+".originRequest", level[i].OriginRequest))
		}
	}
	return violation
}

// checkEnvoyCPU requires a CPU request for Envoy when the controller's autoscaler scales
// the connectors. A HorizontalPodAutoscaler computes no utilization while any container in
// a pod, even a sidecar, has no request.
func (s *Settings) checkEnvoyCPU() string {
	c := s.connector()
	if c.Autoscaling == nil || c.Autoscaling.IsExternal() {
		return ""
	}
	if c.Envoy != nil && c.Envoy.Resources != nil {
		if _, ok := c.Envoy.Resources.Requests[corev1.ResourceCPU]; ok {
			return ""
		}
	}
	return "spec.connector.autoscaling with dataPlane Envoy requires spec.connector.envoy.resources.requests.cpu of the GatewayClass. Set the request, or remove autoscaling."
}

// checkEnvoyFields rejects the fields that only connectors implement. A field that
// repeats the connector default has no effect and is accepted.
func checkEnvoyFields(path string, o *v1alpha1.OriginRequest) string {
	if o == nil {
		return ""
	}
	for _, field := range []struct {
		name  string
		isSet bool
	}{
		{"keepAliveConnections", o.KeepAliveConnections != nil},
		{"noHappyEyeballs", isTrue(o.NoHappyEyeballs)},
		{"matchSNItoHost", isTrue(o.MatchSNIToHost)},
		{"disableChunkedEncoding", isTrue(o.DisableChunkedEncoding)},
		{"caPool", ptr.Deref(o.CAPool, "") != ""},
		{"proxyType", ptr.Deref(o.ProxyType, v1alpha1.ProxyTypeNone) != v1alpha1.ProxyTypeNone},
	} {
		if field.isSet {
			return fmt.Sprintf("%s.%s has no effect with dataPlane Envoy. Remove the field, or set dataPlane to IngressRules.", path, field.name)
		}
	}
	return ""
}
