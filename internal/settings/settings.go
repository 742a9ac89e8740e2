// Package settings merges the TunnelConfigurations that a GatewayClass and a Gateway
// refer to. It returns the merged settings, or why they are not valid.
//
// The package is pure: it uses no client, no context, no clock, no logger and no I/O. It
// never changes its input.
package settings

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Input is everything that affects the settings for one Gateway.
type Input struct {
	// Class is the GatewayClass. Nil means a GatewayClass without parameters and
	// annotations.
	Class *gatewayv1.GatewayClass
	// ClassConfiguration is the object that [ClassParameters] returns. It is nil when the
	// GatewayClass has no parametersRef or the object does not exist.
	ClassConfiguration *v1alpha1.TunnelConfiguration
	Gateway            *gatewayv1.Gateway
	// GatewayConfiguration is the object that [GatewayParameters] returns. It is
	// nil when the Gateway has no parametersRef or the object does not exist.
	GatewayConfiguration *v1alpha1.TunnelConfiguration
	ControllerNamespace  string
}

// Settings are the merged settings for one Gateway.
type Settings struct {
	// Spec has the merged fields, without defaults and without
	// listenerConfigurations. It shares memory with the input and must not be changed.
	Spec      v1alpha1.TunnelConfigurationSpec
	Listeners Listeners
	// AccountNamespace is where spec.account.apiTokenSecretRef is found: the namespace of
	// the TunnelConfiguration for the GatewayClass. It is empty without an account.
	AccountNamespace string
	// Metadata are the labels and annotations that the controller copies from the Gateway
	// to the connectors.
	Metadata Metadata
}

// Problem is the reason and the message for a condition that reports a problem. The
// message says how the user can fix it.
type Problem struct {
	Reason  conditions.Reason
	Message string
}

// Resolve returns the merged settings for a Gateway, or why they are not valid.
func Resolve(in Input) (*Settings, *Problem) {
	c, problem := in.class()
	if problem != nil {
		return nil, problem
	}
	var gateway spec
	if gatewayParametersRef(in.Gateway) != nil {
		if problem := gatewayProblem(in.Gateway, in.GatewayConfiguration, c); problem != nil {
			return nil, problem
		}
		gateway = in.GatewayConfiguration.Spec
	}
	merged := &Settings{
		Spec:      mergeLevels(&c.spec, &gateway),
		Listeners: Listeners{c.spec.ListenerConfigurations, gateway.ListenerConfigurations, prefersGateway(&c.spec)},
		Metadata:  allowedMetadata(in.Gateway.Spec.Infrastructure, c.metadataPrefixes()),
	}
	if violation := merged.violation(); violation != "" {
		return nil, invalid("The settings of GatewayClass %s and the Gateway are not valid together: %s", c.name, violation)
	}
	if violation := c.checkDeletion(merged); violation != "" {
		return nil, invalidGatewayConfiguration(in.GatewayConfiguration, violation)
	}
	if merged.Spec.Account != nil {
		merged.AccountNamespace = in.ClassConfiguration.Namespace
	}
	return merged, nil
}

// class returns the GatewayClass settings, or why they are not valid.
func (in Input) class() (*class, *Problem) {
	c := &class{}
	if in.Class == nil {
		return c, nil
	}
	c.name = in.Class.Name
	if problem := ClassProblem(in.Class, in.ClassConfiguration, in.ControllerNamespace); problem != nil {
		return nil, &Problem{problem.Reason, fmt.Sprintf("GatewayClass %s is not accepted: %s", c.name, problem.Message)}
	}
	if name, ok := ClassParameters(in.Class); ok {
		c.configuration, c.spec = name.String(), in.ClassConfiguration.Spec
	}
	c.spec.DataPlane, _ = classDataPlane(in.Class, in.ClassConfiguration)
	return c, nil
}

// ExistingTunnel returns the ID of the tunnel to adopt, or "". It accepts nil settings.
func (s *Settings) ExistingTunnel() provider.TunnelID {
	if s == nil || s.Spec.Tunnel == nil || s.Spec.Tunnel.Existing == nil {
		return ""
	}
	return provider.TunnelID(s.Spec.Tunnel.Existing.ID)
}

// Takeover reports whether the controller may replace a configuration that it did not
// write on the existing tunnel. It accepts nil settings.
func (s *Settings) Takeover() bool {
	return s.ExistingTunnel() != "" && isTrue(s.Spec.Tunnel.Existing.Takeover)
}

// DeletionPolicy returns whether the controller deletes the tunnel after the
// Gateway is deleted. By default, it deletes a tunnel that it created and retains
// a tunnel that it adopted. It accepts nil settings.
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

func invalid(format string, args ...any) *Problem {
	return &Problem{conditions.ReasonInvalidParameters, fmt.Sprintf(format, args...)}
}
