// Package settings decides which settings a Gateway has. It takes the
// TunnelConfigurations of the GatewayClass and of the Gateway, and returns them
// merged, or why they are not valid.
//
// It is pure: it has no client, no context, no clock and no logger, and does no
// I/O. It never changes its input.
package settings

import (
	"fmt"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Input is everything that affects the settings of one Gateway.
type Input struct {
	// Class is the class of the Gateway; nil counts as a class without
	// parameters.
	Class *gatewayv1.GatewayClass
	// ClassConfiguration is the object that [ClassParameters] names; nil when
	// there is no such reference, and when the object does not exist.
	ClassConfiguration *v1alpha1.TunnelConfiguration
	// Gateway is the Gateway itself.
	Gateway *gatewayv1.Gateway
	// GatewayConfiguration is the object that [GatewayParameters] names; nil when
	// there is no such reference, and when the object does not exist.
	GatewayConfiguration *v1alpha1.TunnelConfiguration
	// ControllerNamespace is the namespace of the controller.
	ControllerNamespace string
}

// Settings are the merged settings of a GatewayClass and a Gateway.
type Settings struct {
	// Spec holds the merged fields. A field that neither level sets is unset:
	// defaults are not filled in. It shares memory with the input and must not
	// be changed.
	Spec v1alpha1.TunnelConfigurationSpec
	// AccountNamespace is the namespace of spec.account.apiTokenSecretRef: that of
	// the class's TunnelConfiguration. It is empty without an account.
	AccountNamespace string
	// Metadata are the labels and annotations of the Gateway for its connectors.
	Metadata Metadata
}

// Problem is the reason for a condition that is not in its good state, and a
// message for the person who has to fix it.
type Problem struct {
	Reason  string
	Message string
}

// Resolve returns the settings of a Gateway, or why they are not valid.
func Resolve(in Input) (*Settings, *Problem) {
	c, problem := in.class()
	if problem != nil {
		return nil, problem
	}
	var own spec
	if gatewayParametersRef(in.Gateway) != nil {
		if problem := gatewayProblem(in.Gateway, in.GatewayConfiguration, c); problem != nil {
			return nil, problem
		}
		own = in.GatewayConfiguration.Spec
	}
	merged := &Settings{Spec: mergeLevels(&c.spec, &own), Metadata: allowedMetadata(in.Gateway.Spec.Infrastructure, c.metadataPrefixes())}
	if violation := specViolation(&merged.Spec); violation != "" {
		return nil, invalid("The settings of GatewayClass %s and of the Gateway are not valid together: %s", c.name, violation)
	}
	if violation := c.checkDeletion(merged); violation != "" {
		return nil, invalidGatewayConfiguration(in.GatewayConfiguration, violation)
	}
	if merged.Spec.Account != nil {
		merged.AccountNamespace = in.ClassConfiguration.Namespace
	}
	return merged, nil
}

// class returns the settings of the class, or why they are not valid.
func (in Input) class() (*class, *Problem) {
	c := &class{}
	if in.Class == nil {
		return c, nil
	}
	c.name = in.Class.Name
	if in.Class.Spec.ParametersRef == nil {
		return c, nil
	}
	if problem := ClassProblem(in.Class, in.ClassConfiguration, in.ControllerNamespace); problem != nil {
		return nil, &Problem{problem.Reason, fmt.Sprintf("GatewayClass %s is not accepted: %s", c.name, problem.Message)}
	}
	name, _ := ClassParameters(in.Class)
	c.configuration, c.spec = name.String(), in.ClassConfiguration.Spec
	return c, nil
}

// ExistingTunnel returns the tunnel to adopt, or "". It accepts nil settings.
func (s *Settings) ExistingTunnel() provider.TunnelID {
	if s == nil || s.Spec.Tunnel == nil || s.Spec.Tunnel.Existing == nil {
		return ""
	}
	return provider.TunnelID(s.Spec.Tunnel.Existing.ID)
}

// Takeover reports whether the controller may replace a configuration of the
// existing tunnel that it did not write. It accepts nil settings.
func (s *Settings) Takeover() bool {
	return s.ExistingTunnel() != "" && isTrue(s.Spec.Tunnel.Existing.Takeover)
}

// DeletionPolicy returns what happens to the tunnel when the Gateway is deleted:
// by default, the controller deletes a tunnel that it created, and retains one
// that it adopted. It accepts nil settings.
func (s *Settings) DeletionPolicy() v1alpha1.DeletionPolicy {
	switch {
	case s != nil && s.Spec.Tunnel != nil && s.Spec.Tunnel.DeletionPolicy != nil:
		return *s.Spec.Tunnel.DeletionPolicy
	case s.ExistingTunnel() != "":
		return v1alpha1.DeletionPolicyRetain
	default:
		return v1alpha1.DeletionPolicyDelete
	}
}

// defaultTunnelsPerNamespace is the default of spec.limits.tunnelsPerNamespace.
const defaultTunnelsPerNamespace = 10

// TunnelsPerNamespace returns the number of Tunnels that the Gateways of one
// namespace may have.
func (s *Settings) TunnelsPerNamespace() int {
	if s.Spec.Limits == nil {
		return defaultTunnelsPerNamespace
	}
	return int(ptr.Deref(s.Spec.Limits.TunnelsPerNamespace, defaultTunnelsPerNamespace))
}

func invalid(format string, args ...any) *Problem {
	return &Problem{string(gatewayv1.GatewayReasonInvalidParameters), fmt.Sprintf(format, args...)}
}
