package settings

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// KindTunnelConfiguration is the only kind that a parametersRef may have.
const KindTunnelConfiguration = "TunnelConfiguration"

// gatewayParametersField is the Gateway field that names its TunnelConfiguration.
const gatewayParametersField = "spec.infrastructure.parametersRef"

// ClassParameters returns the TunnelConfiguration that parametersRef in the GatewayClass
// names. It returns false when there is none.
func ClassParameters(class *gatewayv1.GatewayClass) (types.NamespacedName, bool) {
	ref := class.Spec.ParametersRef
	if ref == nil || !isTunnelConfiguration(ref.Group, ref.Kind) || ref.Namespace == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: string(*ref.Namespace), Name: ref.Name}, true
}

// GatewayParameters returns the TunnelConfiguration that parametersRef in the Gateway
// names. It returns false when there is none.
func GatewayParameters(g *gatewayv1.Gateway) (types.NamespacedName, bool) {
	ref := gatewayParametersRef(g)
	if ref == nil || !isTunnelConfiguration(ref.Group, ref.Kind) {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: g.Namespace, Name: ref.Name}, true
}

func gatewayParametersRef(g *gatewayv1.Gateway) *gatewayv1.LocalParametersReference {
	if g.Spec.Infrastructure == nil {
		return nil
	}
	return g.Spec.Infrastructure.ParametersRef
}

func isTunnelConfiguration(group gatewayv1.Group, kind gatewayv1.Kind) bool {
	return group == v1alpha1.GroupName && kind == KindTunnelConfiguration
}

// ClassProblem returns why parametersRef in the GatewayClass, the object that it names, or
// the annotation [v1alpha1.DataPlaneAnnotation] is not valid, or nil. configuration is the
// object that [ClassParameters] returns, or nil when it does not exist. spec.account,
// spec.dns and spec.access are valid only in controllerNamespace.
//
// "If the referent cannot be found, refers to an unsupported kind, or when the data
// within that resource is malformed, the GatewayClass SHOULD be rejected with the
// "Accepted" status condition set to "False" and an "InvalidParameters" reason."
// (GatewayClassSpec.ParametersRef)
func ClassProblem(class *gatewayv1.GatewayClass, configuration *v1alpha1.TunnelConfiguration, controllerNamespace string) *Problem {
	if class.Spec.ParametersRef != nil {
		if problem := parametersProblem(class, configuration, controllerNamespace); problem != nil {
			return problem
		}
	}
	_, problem := classDataPlane(class, configuration)
	return problem
}

// parametersProblem returns why the GatewayClass's parametersRef, or the object that it
// names, is not valid, or nil.
func parametersProblem(class *gatewayv1.GatewayClass, configuration *v1alpha1.TunnelConfiguration, controllerNamespace string) *Problem {
	ref := class.Spec.ParametersRef
	name, ok := ClassParameters(class)
	switch {
	case !ok && isTunnelConfiguration(ref.Group, ref.Kind):
		return invalid("spec.parametersRef names %s %q without a namespace. Set namespace to the object's namespace.", ref.Kind, ref.Name)
	case !ok:
		return unsupportedParameters("spec.parametersRef", ref.Group, ref.Kind, ref.Name)
	case configuration == nil:
		return invalid("spec.parametersRef names %s %s, which does not exist. Create it, or correct the reference.", KindTunnelConfiguration, name)
	}
	violation := specViolation(&configuration.Spec)
	if name.Namespace != controllerNamespace {
		violation = cmp.Or(controllerNamespaceViolation(&configuration.Spec, controllerNamespace), violation)
	}
	if violation != "" {
		return invalid("%s %s of spec.parametersRef is not valid: %s", KindTunnelConfiguration, name, violation)
	}
	return nil
}

// controllerNamespaceViolation rejects the fields that select or use an API token in a
// TunnelConfiguration outside the controller's namespace.
func controllerNamespaceViolation(spec *v1alpha1.TunnelConfigurationSpec, controllerNamespace string) string {
	const format = "spec.%[1]s has an effect only in the controller's namespace, %[2]s. Move the %[3]s and the Secret with the API token there, or remove spec.%[1]s."
	switch {
	case spec.Account != nil:
		return fmt.Sprintf(format, "account", controllerNamespace, KindTunnelConfiguration)
	case spec.DNS != nil:
		return fmt.Sprintf(format, "dns", controllerNamespace, KindTunnelConfiguration)
	case spec.Access != nil:
		return fmt.Sprintf(format, "access", controllerNamespace, KindTunnelConfiguration)
	}
	return ""
}

// gatewayProblem returns why parametersRef in the Gateway, or the object that it names,
// is not valid or not permitted by the GatewayClass, or nil.
func gatewayProblem(g *gatewayv1.Gateway, configuration *v1alpha1.TunnelConfiguration, c *class) *Problem {
	ref := gatewayParametersRef(g)
	switch _, ok := GatewayParameters(g); {
	case !ok:
		return unsupportedParameters(gatewayParametersField, ref.Group, ref.Kind, ref.Name)
	case configuration == nil:
		return invalid("%s names %s %q, which does not exist in the Gateway's namespace. Create it, or correct the reference.", gatewayParametersField, KindTunnelConfiguration, ref.Name)
	}
	if violation := cmp.Or(c.violation(&configuration.Spec), specViolation(&configuration.Spec)); violation != "" {
		return invalidGatewayConfiguration(configuration, violation)
	}
	return nil
}

func invalidGatewayConfiguration(configuration *v1alpha1.TunnelConfiguration, violation string) *Problem {
	return invalid("%s %q of %s is not valid: %s", KindTunnelConfiguration, configuration.Name, gatewayParametersField, violation)
}

func unsupportedParameters(field string, group gatewayv1.Group, kind gatewayv1.Kind, name string) *Problem {
	return invalid("%s names %s %q of group %q; only kind %s of group %s is supported.",
		field, kind, name, group, KindTunnelConfiguration, v1alpha1.GroupName)
}
