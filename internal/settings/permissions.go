package settings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

type spec = v1alpha1.TunnelConfigurationSpec

// gatewayField is a field that a class can permit to its Gateways.
type gatewayField struct {
	name  v1alpha1.GatewayField
	isSet func(*spec) bool
}

// gatewayFields are all fields that can be listed in spec.allowedGatewayFields.
var gatewayFields = []gatewayField{
	{"originRequest", func(s *spec) bool { return s.OriginRequest != nil }},
	{"listenerConfigurations", func(s *spec) bool { return len(s.ListenerConfigurations) > 0 }},
	{"tunnel.deletionPolicy", func(s *spec) bool { return s.Tunnel != nil && s.Tunnel.DeletionPolicy != nil }},
	{"tunnel.existing", func(s *spec) bool { return s.Tunnel != nil && s.Tunnel.Existing != nil }},
	{"connector.enabled", onConnector(func(c *v1alpha1.Connector) bool { return c.Enabled != nil })},
	{"connector.replicas", onConnector(func(c *v1alpha1.Connector) bool { return c.Replicas != nil })},
	{"connector.autoscaling", onConnector(func(c *v1alpha1.Connector) bool { return c.Autoscaling != nil })},
	{"connector.protocol", onConnector(func(c *v1alpha1.Connector) bool { return c.Protocol != nil })},
	{"connector.logLevel", onConnector(func(c *v1alpha1.Connector) bool { return c.LogLevel != nil })},
	{"connector.resources", onConnector(func(c *v1alpha1.Connector) bool { return c.Resources != nil })},
	{"connector.nodeSelector", onConnector(func(c *v1alpha1.Connector) bool { return len(c.NodeSelector) > 0 })},
	{"connector.tolerations", onConnector(func(c *v1alpha1.Connector) bool { return len(c.Tolerations) > 0 })},
	{"connector.affinity", onConnector(func(c *v1alpha1.Connector) bool { return c.Affinity != nil })},
	{"connector.topologySpreadConstraints", onConnector(func(c *v1alpha1.Connector) bool { return len(c.TopologySpreadConstraints) > 0 })},
	{"connector.podAnnotations", onConnector(func(c *v1alpha1.Connector) bool { return len(c.PodAnnotations) > 0 })},
	{"connector.podLabels", onConnector(func(c *v1alpha1.Connector) bool { return len(c.PodLabels) > 0 })},
	{"connector.gracePeriod", onConnector(func(c *v1alpha1.Connector) bool { return c.GracePeriod != nil })},
	{"connector.podDisruptionBudget", onConnector(func(c *v1alpha1.Connector) bool { return c.PodDisruptionBudget != nil })},
	{"connector.tokenRotation", onConnector(func(c *v1alpha1.Connector) bool { return c.TokenRotation != nil })},
}

// defaultGatewayFields are the fields that a class permits when it does not set
// spec.allowedGatewayFields.
var defaultGatewayFields = []v1alpha1.GatewayField{
	"originRequest", "listenerConfigurations", "tunnel.deletionPolicy", "connector.replicas",
}

// classField is a field that only a class can set.
type classField struct {
	name  string
	isSet func(*spec) bool
	// reason completes the sentence "..., because".
	reason string
}

// classFields are all fields that no class can permit to its Gateways.
var classFields = []classField{
	{"account", func(s *spec) bool { return s.Account != nil }, "it decides whose tunnels the controller changes"},
	{"mergingMode", func(s *spec) bool { return s.MergingMode != nil }, "it decides whose value takes precedence"},
	{"allowedGatewayFields", func(s *spec) bool { return s.AllowedGatewayFields != nil }, "it decides what a Gateway's owner may set"},
	{"limits", func(s *spec) bool { return s.Limits != nil }, "it bounds what the Gateways of the class use"},
	{
		"tunnel.existing.takeover", func(s *spec) bool {
			return s.Tunnel != nil && s.Tunnel.Existing != nil && s.Tunnel.Existing.Takeover != nil
		},
		"it permits replacing a configuration that the controller did not write",
	},
	{"connector.image", onConnector(func(c *v1alpha1.Connector) bool { return c.Image != nil }), "the image runs with the token of the tunnel"},
	{
		"connector.allowedMetadataPrefixes", onConnector(func(c *v1alpha1.Connector) bool { return len(c.AllowedMetadataPrefixes) > 0 }),
		"the pods run in the controller's namespace",
	},
}

func onConnector(isSet func(*v1alpha1.Connector) bool) func(*spec) bool {
	return func(s *spec) bool { return s.Connector != nil && isSet(s.Connector) }
}

// class is what a Gateway's own settings are checked against.
type class struct {
	name string
	// configuration is the object of the class, as "namespace/name"; empty when
	// the class has none.
	configuration string
	spec          spec
}

// settingsLocation names the place where the platform team changes a setting of the class.
func (c *class) settingsLocation() string {
	if c.configuration == "" {
		return fmt.Sprintf("a %s that GatewayClass %s refers to", KindTunnelConfiguration, c.name)
	}
	return fmt.Sprintf("%s %s", KindTunnelConfiguration, c.configuration)
}

// metadataPrefixes are the prefixes that the class allows in the metadata of its
// Gateways.
func (c *class) metadataPrefixes() []string {
	if c.spec.Connector == nil {
		return nil
	}
	return c.spec.Connector.AllowedMetadataPrefixes
}

// violation returns what a Gateway's own settings have that the class does not
// permit, or "".
func (c *class) violation(own *spec) string {
	for _, check := range []func(*spec) string{checkClassOnly, c.checkPermitted, checkExisting, c.checkReplicas} {
		if violation := check(own); violation != "" {
			return violation
		}
	}
	return ""
}

// checkClassOnly refuses the fields that no class can permit.
func checkClassOnly(own *spec) string {
	for _, field := range classFields {
		if field.isSet(own) {
			return fmt.Sprintf("spec.%s can be set only for a GatewayClass, because %s. Remove it.", field.name, field.reason)
		}
	}
	return ""
}

// checkPermitted refuses the fields that this class does not permit.
func (c *class) checkPermitted(own *spec) string {
	permitted := defaultGatewayFields
	if c.spec.AllowedGatewayFields != nil {
		permitted = c.spec.AllowedGatewayFields
	}
	var refused []string
	for _, field := range gatewayFields {
		if field.isSet(own) && !slices.Contains(permitted, field.name) {
			refused = append(refused, string(field.name))
		}
	}
	if len(refused) == 0 {
		return ""
	}
	return fmt.Sprintf("GatewayClass %s does not permit spec.%s. Remove what is not permitted, or ask the platform team to list %s in spec.allowedGatewayFields of %s.",
		c.name, strings.Join(refused, ", spec."), strings.Join(refused, ", "), c.settingsLocation())
}

// checkExisting wants the tunnel to be named: takeover alone is for a class.
func checkExisting(own *spec) string {
	if own.Tunnel != nil && own.Tunnel.Existing != nil && own.Tunnel.Existing.ID == "" {
		return "spec.tunnel.existing has no id. Set it, or remove existing."
	}
	return ""
}

// The default bounds of the number of connectors that a Gateway's owner chooses.
const (
	defaultMinReplicas = 1
	defaultMaxReplicas = 4
)

// replicaBounds returns the bounds, with their defaults filled in.
func replicaBounds(s *spec) (least, most int32) {
	var bounds v1alpha1.ReplicaBounds
	if s.Limits != nil && s.Limits.ConnectorReplicas != nil {
		bounds = *s.Limits.ConnectorReplicas
	}
	return ptr.Deref(bounds.Min, defaultMinReplicas), ptr.Deref(bounds.Max, defaultMaxReplicas)
}

// checkReplicas refuses a number of connectors outside the bounds of the class.
// A number that the class sets itself is not bounded.
func (c *class) checkReplicas(own *spec) string {
	if own.Connector == nil {
		return ""
	}
	if replicas := own.Connector.Replicas; replicas != nil {
		return c.checkNumber("replicas is", *replicas)
	}
	if own.Connector.Autoscaling == nil {
		return ""
	}
	var classScaling *v1alpha1.Autoscaling
	if c.spec.Connector != nil {
		classScaling = c.spec.Connector.Autoscaling
	}
	return c.checkAutoscaling(own.Connector.Autoscaling, ptr.Deref(classScaling, v1alpha1.Autoscaling{}))
}

// checkAutoscaling checks the numbers that the Gateway sets, and the defaults
// of those that neither level sets.
func (c *class) checkAutoscaling(own *v1alpha1.Autoscaling, ofClass v1alpha1.Autoscaling) string {
	most := ptr.Deref(cmp.Or(own.MaxReplicas, ofClass.MaxReplicas), v1alpha1.MaxReplicas)
	for _, bound := range []struct {
		field        string
		own, ofClass *int32
		byDefault    int32
	}{
		{"autoscaling.maxReplicas", own.MaxReplicas, ofClass.MaxReplicas, v1alpha1.MaxReplicas},
		{"autoscaling.minReplicas", own.MinReplicas, ofClass.MinReplicas, min(v1alpha1.DefaultReplicas, most)},
	} {
		violation := ""
		switch {
		case bound.own != nil:
			violation = c.checkNumber(bound.field+" is", *bound.own)
		case bound.ofClass == nil:
			violation = c.checkNumber(bound.field+" is not set and defaults to", bound.byDefault)
		}
		if violation != "" {
			return violation
		}
	}
	return ""
}

// checkNumber checks a number of connectors; field begins the message.
func (c *class) checkNumber(field string, number int32) string {
	least, most := replicaBounds(&c.spec)
	if number >= least && number <= most {
		return ""
	}
	return fmt.Sprintf("spec.connector.%s %d, and GatewayClass %s permits %d to %d. Choose a number within these bounds, or ask the platform team to change spec.limits.connectorReplicas of %s.",
		field, number, c.name, least, most, c.settingsLocation())
}

// checkDeletion refuses to delete an adopted tunnel when only the Gateway asks
// for it.
func (c *class) checkDeletion(merged *Settings) string {
	byClass := c.spec.Tunnel != nil && ptr.Deref(c.spec.Tunnel.DeletionPolicy, "") == v1alpha1.DeletionPolicyDelete
	if merged.ExistingTunnel() == "" || merged.DeletionPolicy() != v1alpha1.DeletionPolicyDelete || byClass {
		return ""
	}
	return fmt.Sprintf("spec.tunnel.deletionPolicy is Delete, which counts for an existing tunnel only when the GatewayClass sets it. Remove it, or ask the platform team to set it in %s.", c.settingsLocation())
}
