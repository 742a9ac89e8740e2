package gateway

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// KindTunnelConfiguration is the one kind of parameters.
const KindTunnelConfiguration = "TunnelConfiguration"

// Settings are what the TunnelConfigurations of a GatewayClass and a Gateway
// say together.
type Settings struct {
	// Spec is the merged one. What neither sets is unset in it: the defaults
	// are not filled in. It shares memory with the Snapshot, so nobody may
	// change it.
	Spec v1alpha1.TunnelConfigurationSpec
	// AccountNamespace is where spec.account.apiTokenSecretRef lies: the
	// namespace of the class's TunnelConfiguration; empty without an account.
	AccountNamespace string
}

// ExistingTunnel is the tunnel that is to be adopted, or "". There may be no
// settings.
func (s *Settings) ExistingTunnel() provider.TunnelID {
	if s == nil || s.Spec.Tunnel == nil || s.Spec.Tunnel.Existing == nil {
		return ""
	}
	return provider.TunnelID(s.Spec.Tunnel.Existing.ID)
}

// TunnelName is the name that the tunnel is given, or "" for the one that the
// controller makes. There may be no settings.
func (s *Settings) TunnelName() string {
	if s == nil || s.Spec.Tunnel == nil {
		return ""
	}
	return ptr.Deref(s.Spec.Tunnel.Name, "")
}

// ClassParameters returns the TunnelConfiguration that the class's
// parametersRef names, and false when there is no such reference to one.
func ClassParameters(class *gatewayv1.GatewayClass) (types.NamespacedName, bool) {
	ref := class.Spec.ParametersRef
	if ref == nil || !isTunnelConfiguration(ref.Group, ref.Kind) || ref.Namespace == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: string(*ref.Namespace), Name: ref.Name}, true
}

// OwnParameters returns the TunnelConfiguration that the Gateway's own
// parametersRef names, and false when there is no such reference to one.
func OwnParameters(g *gatewayv1.Gateway) (types.NamespacedName, bool) {
	ref := ownParametersRef(g)
	if ref == nil || !isTunnelConfiguration(ref.Group, ref.Kind) {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: g.Namespace, Name: ref.Name}, true
}

func ownParametersRef(g *gatewayv1.Gateway) *gatewayv1.LocalParametersReference {
	if g.Spec.Infrastructure == nil {
		return nil
	}
	return g.Spec.Infrastructure.ParametersRef
}

func isTunnelConfiguration(group gatewayv1.Group, kind gatewayv1.Kind) bool {
	return group == v1alpha1.GroupName && kind == KindTunnelConfiguration
}

// settings returns what the class and the Gateway say together, or why that is
// not valid.
func settings(s *Snapshot) (*Settings, *Problem) {
	var class, own *v1alpha1.TunnelConfiguration
	if s.Class != nil && s.Class.Spec.ParametersRef != nil {
		if problem := ClassParametersProblem(s.Class, s.ClassConfiguration); problem != nil {
			return nil, &Problem{problem.Reason, fmt.Sprintf("GatewayClass %s is not accepted: %s", s.Class.Name, problem.Message)}
		}
		class = s.ClassConfiguration
	}
	if ownParametersRef(s.Gateway) != nil {
		if problem := gatewayParametersProblem(s.Gateway, s.GatewayConfiguration); problem != nil {
			return nil, problem
		}
		own = s.GatewayConfiguration
	}
	merged := &Settings{Spec: mergeLevels(class, own)}
	if fault := specFault(&merged.Spec); fault != "" {
		return nil, invalidParameters("The TunnelConfigurations of GatewayClass %s and of the Gateway are not valid together: %s", s.Class.Name, fault)
	}
	if merged.Spec.Account != nil {
		merged.AccountNamespace = class.Namespace
	}
	return merged, nil
}

// ClassParametersProblem says why the class's parametersRef, or what it leads
// to, is not valid, or nil. configuration is what [ClassParameters] names, or
// nil when that does not exist.
//
// "If the referent cannot be found, refers to an unsupported kind, or when the
// data within that resource is malformed, the GatewayClass SHOULD be rejected
// with the "Accepted" status condition set to "False" and an
// "InvalidParameters" reason." (GatewayClassSpec.ParametersRef)
func ClassParametersProblem(class *gatewayv1.GatewayClass, configuration *v1alpha1.TunnelConfiguration) *Problem {
	ref := class.Spec.ParametersRef
	if ref == nil {
		return nil
	}
	name, ok := ClassParameters(class)
	switch {
	case !ok && isTunnelConfiguration(ref.Group, ref.Kind):
		return invalidParameters("spec.parametersRef names %s %q without a namespace; set the namespace that it is in.", ref.Kind, ref.Name)
	case !ok:
		return unsupportedParameters("spec.parametersRef", ref.Group, ref.Kind, ref.Name)
	case configuration == nil:
		return invalidParameters("spec.parametersRef names %s %s, which does not exist.", KindTunnelConfiguration, name)
	}
	if fault := specFault(&configuration.Spec); fault != "" {
		return invalidParameters("%s %s of spec.parametersRef is not valid: %s", KindTunnelConfiguration, name, fault)
	}
	return nil
}

// gatewayParametersProblem is the same for a Gateway's own reference.
func gatewayParametersProblem(g *gatewayv1.Gateway, configuration *v1alpha1.TunnelConfiguration) *Problem {
	const field = "spec.infrastructure.parametersRef"
	ref := ownParametersRef(g)
	switch _, ok := OwnParameters(g); {
	case !ok:
		return unsupportedParameters(field, ref.Group, ref.Kind, ref.Name)
	case configuration == nil:
		return invalidParameters("%s names %s %q, which does not exist in the Gateway's namespace.", field, KindTunnelConfiguration, ref.Name)
	}
	if fault := cmp.Or(classOnly(&configuration.Spec), specFault(&configuration.Spec)); fault != "" {
		return invalidParameters("%s %q of %s is not valid: %s", KindTunnelConfiguration, ref.Name, field, fault)
	}
	return nil
}

func unsupportedParameters(field string, group gatewayv1.Group, kind gatewayv1.Kind, name string) *Problem {
	return invalidParameters("%s names %s %q of group %q; only kind %s of group %s is supported.",
		field, kind, name, group, KindTunnelConfiguration, v1alpha1.GroupName)
}

func invalidParameters(format string, args ...any) *Problem {
	return &Problem{string(gatewayv1.GatewayReasonInvalidParameters), fmt.Sprintf(format, args...)}
}
