package convert

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// className returns the Gateway's GatewayClass.
func (c *converter) className() string {
	switch {
	case c.GatewayClass != "":
		return c.GatewayClass
	case c.ownsClass():
		return c.GatewayName
	default:
		return c.DefaultClass
	}
}

// ownsClass reports whether the Gateway needs its own class.
func (c *converter) ownsClass() bool { return !reflect.ValueOf(c.class).IsZero() }

// addClass adds a GatewayClass for the settings that only a class may have.
func (c *converter) addClass() {
	namespace := &corev1.Namespace{}
	namespace.Name = c.GatewayNamespace
	if namespace.Name != "default" {
		c.documents = append(c.documents, Document{Object: namespace, rank: rankNamespace})
	}
	if !c.ownsClass() {
		return
	}
	configuration := &v1alpha1.TunnelConfiguration{Spec: c.class}
	configuration.Name, configuration.Namespace = c.GatewayName, c.ControllerNamespace
	class := &gatewayv1.GatewayClass{}
	class.Name = c.GatewayName
	class.Spec.ControllerName = gatewayv1.GatewayController(c.ControllerName)
	class.Spec.ParametersRef = &gatewayv1.ParametersReference{
		Group: gatewayv1.Group(v1alpha1.GroupVersion.Group), Kind: "TunnelConfiguration", Name: c.GatewayName,
		Namespace: ptr.To(gatewayv1.Namespace(c.ControllerNamespace)),
	}
	c.documents = append(c.documents,
		Document{Object: class, rank: rankClass, Comment: []string{"A GatewayClass of its own has the settings that a Gateway may not set by default."}},
		Document{Object: configuration, rank: rankClass, Comment: []string{"It is in the controller's namespace."}},
	)
}

// addConfiguration adds the Gateway's TunnelConfiguration if it has settings.
func (c *converter) addConfiguration() bool {
	configuration := &v1alpha1.TunnelConfiguration{}
	configuration.Name, configuration.Namespace = c.GatewayName, c.GatewayNamespace
	configuration.Spec.OriginRequest = c.origin().originRequest()
	slices.SortStableFunc(c.entries, func(a, b v1alpha1.ListenerConfiguration) int {
		return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.ProtocolPort, b.ProtocolPort))
	})
	configuration.Spec.ListenerConfigurations = c.entries
	if reflect.ValueOf(configuration.Spec).IsZero() {
		return false
	}
	c.documents = append(c.documents, Document{Object: configuration, rank: rankConfiguration, Comment: []string{"The settings in originRequest and access."}})
	return true
}

// addPolicy adds the BackendTLSPolicy that replaces caPool, which names a file that the
// controller's connectors do not have.
func (c *converter) addPolicy(r *Rule, b *backend, effective Settings) {
	key, pool := "originRequest.caPool", effective.text("caPool")
	if c.DataPlane != v1alpha1.DataPlaneEnvoy {
		c.note(NoteDifferent, r, key, fmt.Sprintf("the connectors do not have the file %q, so they verify the backend with the system's certificate authorities and return 502", pool),
			"convert with --data-plane Envoy, which writes a BackendTLSPolicy")
		return
	}
	name := b.name + "-ca"
	c.note(NoteStep, r, key, fmt.Sprintf("the BackendTLSPolicy %s/%s replaces it", b.namespace, name),
		fmt.Sprintf("run kubectl create configmap -n %s %s --from-file=%s", b.namespace, name, terminal.QuoteForShell("ca.crt="+pool)))
	if c.policies[b.namespace+"/"+name] {
		return
	}
	c.policies[b.namespace+"/"+name] = true
	policy := &gatewayv1.BackendTLSPolicy{}
	policy.Name, policy.Namespace = name, b.namespace
	policy.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
		LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: gatewayv1.ObjectName(b.name)},
	}}
	policy.Spec.Validation.Hostname = gatewayv1.PreciseHostname(cmp.Or(effective.text("originServerName"), b.host))
	policy.Spec.Validation.CACertificateRefs = []gatewayv1.LocalObjectReference{{Kind: "ConfigMap", Name: gatewayv1.ObjectName(name)}}
	c.documents = append(c.documents, Document{Object: policy, rank: rankGrant, Comment: []string{"It requires the ConfigMap with the certificate authorities."}})
}
