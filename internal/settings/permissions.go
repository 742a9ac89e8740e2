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

// gatewayField is a field that a GatewayClass can permit for its Gateways.
type gatewayField struct {
	name  v1alpha1.GatewayField
	isSet func(*spec) bool
}

// gatewayFields are the fields that spec.allowedGatewayFields can list.
var gatewayFields = []gatewayField{
	{"originRequest", func(s *spec) bool { return s.OriginRequest != nil }},
	{"listenerConfigurations", func(s *spec) bool { return len(s.ListenerConfigurations) > 0 }},
	{"tunnel.deletionPolicy", func(s *spec) bool { return s.Tunnel != nil && s.Tunnel.DeletionPolicy != nil }},
	{"tunnel.existing", func(s *spec) bool { return s.Tunnel != nil && s.Tunnel.Existing != nil }},
	{"connector.enabled", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Enabled != nil })},
	{"connector.replicas", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Replicas != nil })},
	{"connector.autoscaling", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Autoscaling != nil })},
	{"connector.protocol", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Protocol != nil })},
	{"connector.edgeIPVersion", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.EdgeIPVersion != nil })},
	{"connector.logLevel", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.LogLevel != nil })},
	{"connector.resources", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Resources != nil })},
	{"connector.nodeSelector", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return len(c.NodeSelector) > 0 })},
	{"connector.tolerations", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return len(c.Tolerations) > 0 })},
	{"connector.affinity", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Affinity != nil })},
	{"connector.topologySpreadConstraints", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return len(c.TopologySpreadConstraints) > 0 })},
	{"connector.podAnnotations", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return len(c.PodAnnotations) > 0 })},
	{"connector.podLabels", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return len(c.PodLabels) > 0 })},
	{"connector.readyDelay", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.ReadyDelay != nil })},
	{"connector.gracePeriod", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.GracePeriod != nil })},
	{"connector.podDisruptionBudget", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.PodDisruptionBudget != nil })},
	{"connector.tokenRotation", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.TokenRotation != nil })},
}

// defaultGatewayFields are the fields that a GatewayClass permits when it does not set
// spec.allowedGatewayFields.
var defaultGatewayFields = []v1alpha1.GatewayField{
	"originRequest", "listenerConfigurations", "tunnel.deletionPolicy", "connector.replicas",
}

// classField is a field that only a GatewayClass can set.
type classField struct {
	name  string
	isSet func(*spec) bool
	// reason is the clause after "because" in the message.
	reason string
}

// classFields are the fields that no GatewayClass can permit for its Gateways.
var classFields = []classField{
	{"account", func(s *spec) bool { return s.Account != nil }, "it selects the Cloudflare account in which the controller changes tunnels"},
	{"mergingMode", func(s *spec) bool { return s.MergingMode != nil }, "it determines which settings take precedence"},
	{"allowedGatewayFields", func(s *spec) bool { return s.AllowedGatewayFields != nil }, "it determines which fields a Gateway may set"},
	{"limits", func(s *spec) bool { return s.Limits != nil }, "it restricts what Gateways of the class may use"},
	{"dataPlane", func(s *spec) bool { return s.DataPlane != nil }, "it determines which features routes can use, and a change replaces the connectors"},
	{"pausing", func(s *spec) bool { return s.Pausing != nil }, "it determines whether a Gateway can keep what others revoke"},
	{"hostnames", func(s *spec) bool { return s.Hostnames != nil }, "it determines which hostnames a namespace may use"},
	{"dns", func(s *spec) bool { return s.DNS != nil }, "it determines in which zones the controller changes DNS records"},
	{"access", func(s *spec) bool { return s.Access != nil }, "it determines which policies protect hostnames"},
	{
		"tunnel.existing.takeover", func(s *spec) bool {
			return s.Tunnel != nil && s.Tunnel.Existing != nil && s.Tunnel.Existing.Takeover != nil
		},
		"it permits replacing a configuration that the controller did not write",
	},
	{
		"connector.autoscaling.autoscaler", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Autoscaling != nil && c.Autoscaling.Autoscaler != nil }),
		"limits.connectorReplicas does not apply to other autoscalers",
	},
	{"connector.image", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Image != nil }), "the image runs with the tunnel token"},
	{"connector.envoy", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Envoy != nil }), "its image receives all of the Gateway's requests"},
	{
		"connector.metrics", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return c.Metrics != nil }),
		"it determines which pods can read the tunnel configuration",
	},
	{
		"connector.metricsFrom", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return len(c.MetricsFrom) > 0 }),
		"it determines which pods can read the tunnel configuration",
	},
	{
		"connector.allowedMetadataPrefixes", connectorFieldIsSet(func(c *v1alpha1.Connector) bool { return len(c.AllowedMetadataPrefixes) > 0 }),
		"the pods run in the controller's namespace",
	},
}

func connectorFieldIsSet(isSet func(*v1alpha1.Connector) bool) func(*spec) bool {
	return func(s *spec) bool { return s.Connector != nil && isSet(s.Connector) }
}

// class is a GatewayClass with its settings, which restrict its Gateways.
type class struct {
	name string
	// configuration is the "namespace/name" of the TunnelConfiguration for the
	// GatewayClass, or empty when there is none.
	configuration string
	spec          spec
}

// settingsLocation names the object in which the platform team can change a GatewayClass
// setting, for messages.
func (c *class) settingsLocation() string {
	if c.configuration == "" {
		return fmt.Sprintf("a %s that GatewayClass %s refers to", KindTunnelConfiguration, c.name)
	}
	return fmt.Sprintf("%s %s", KindTunnelConfiguration, c.configuration)
}

// metadataPrefixes returns the key prefixes that the GatewayClass allows in Gateway
// metadata.
func (c *class) metadataPrefixes() []string {
	if c.spec.Connector == nil {
		return nil
	}
	return c.spec.Connector.AllowedMetadataPrefixes
}

// violation returns why the GatewayClass does not permit the Gateway settings, or "".
func (c *class) violation(gateway *spec) string {
	for _, check := range []func(*spec) string{checkClassOnly, checkCAPool, c.checkPermitted, checkExisting, c.checkReplicas} {
		if violation := check(gateway); violation != "" {
			return violation
		}
	}
	return ""
}

// checkClassOnly rejects the fields that no GatewayClass can permit.
func checkClassOnly(gateway *spec) string {
	for _, field := range classFields {
		if field.isSet(gateway) {
			return classOnly("spec."+field.name, field.reason)
		}
	}
	return ""
}

// classOnly returns the message about a field that only a GatewayClass can set.
func classOnly(path, reason string) string {
	return fmt.Sprintf("%s belongs only in a GatewayClass's TunnelConfiguration, because %s. Remove the field.", path, reason)
}

// checkCAPool rejects caPool in every originRequest on a Gateway.
func checkCAPool(gateway *spec) string {
	const reason = "it names a file in the cloudflared container, which reads it completely"
	if gateway.OriginRequest != nil && gateway.OriginRequest.CAPool != nil {
		return classOnly("spec.originRequest.caPool", reason)
	}
	for i := range gateway.ListenerConfigurations {
		if entry := &gateway.ListenerConfigurations[i]; entry.OriginRequest != nil && entry.OriginRequest.CAPool != nil {
			return classOnly(pathOf(entry)+".originRequest.caPool", reason)
		}
	}
	return ""
}

// checkPermitted rejects the fields that this GatewayClass does not permit.
func (c *class) checkPermitted(gateway *spec) string {
	permitted := defaultGatewayFields
	if c.spec.AllowedGatewayFields != nil {
		permitted = c.spec.AllowedGatewayFields
	}
	var rejected []string
	for _, field := range gatewayFields {
		if field.isSet(gateway) && !slices.Contains(permitted, field.name) {
			rejected = append(rejected, string(field.name))
		}
	}
	if len(rejected) == 0 {
		return ""
	}
	noun := "field"
	if len(rejected) > 1 {
		noun = "fields"
	}
	return fmt.Sprintf("GatewayClass %s does not permit spec.%s. Remove the %s, or ask the platform team to list %s in spec.allowedGatewayFields of %s.",
		c.name, strings.Join(rejected, ", spec."), noun, strings.Join(rejected, ", "), c.settingsLocation())
}

// checkExisting rejects an existing tunnel without an id. Only a GatewayClass can set
// takeover without an id.
func checkExisting(gateway *spec) string {
	if gateway.Tunnel != nil && gateway.Tunnel.Existing != nil && gateway.Tunnel.Existing.ID == "" {
		return "spec.tunnel.existing has no id. Set it, or remove existing."
	}
	return ""
}

// The default bounds for the replicas that a Gateway can set.
const (
	defaultMinReplicas = 1
	defaultMaxReplicas = 4
)

// replicaBounds returns spec.limits.connectorReplicas with defaults.
func replicaBounds(s *spec) (minimum, maximum int32) {
	var bounds v1alpha1.ReplicaBounds
	if s.Limits != nil && s.Limits.ConnectorReplicas != nil {
		bounds = *s.Limits.ConnectorReplicas
	}
	return ptr.Deref(bounds.Min, defaultMinReplicas), ptr.Deref(bounds.Max, defaultMaxReplicas)
}

// checkReplicas rejects a replica count outside the GatewayClass bounds. The bounds do
// not apply to numbers that the GatewayClass itself sets.
func (c *class) checkReplicas(gateway *spec) string {
	if gateway.Connector == nil {
		return ""
	}
	if replicas := gateway.Connector.Replicas; replicas != nil {
		return c.checkNumber("replicas is", *replicas)
	}
	if gateway.Connector.Autoscaling == nil {
		return ""
	}
	var classAutoscaling *v1alpha1.Autoscaling
	if c.spec.Connector != nil {
		classAutoscaling = c.spec.Connector.Autoscaling
	}
	return c.checkAutoscaling(gateway.Connector.Autoscaling, ptr.Deref(classAutoscaling, v1alpha1.Autoscaling{}))
}

// checkAutoscaling checks the numbers that the Gateway sets, and the defaults for numbers
// that neither level sets.
func (c *class) checkAutoscaling(gateway *v1alpha1.Autoscaling, class v1alpha1.Autoscaling) string {
	maximum := ptr.Deref(cmp.Or(gateway.MaxReplicas, class.MaxReplicas), v1alpha1.MaxReplicas)
	for _, number := range []struct {
		field          string
		gateway, class *int32
		defaultValue   int32
	}{
		{"autoscaling.maxReplicas", gateway.MaxReplicas, class.MaxReplicas, v1alpha1.MaxReplicas},
		{"autoscaling.minReplicas", gateway.MinReplicas, class.MinReplicas, min(v1alpha1.DefaultReplicas, maximum)},
	} {
		violation := ""
		switch {
		case number.gateway != nil:
			violation = c.checkNumber(number.field+" is", *number.gateway)
		case number.class == nil:
			violation = c.checkNumber(number.field+" is not set and defaults to", number.defaultValue)
		}
		if violation != "" {
			return violation
		}
	}
	return ""
}

// checkNumber rejects a replica count outside the GatewayClass bounds. The message begins
// with field, which includes the verb.
func (c *class) checkNumber(field string, number int32) string {
	minimum, maximum := replicaBounds(&c.spec)
	if number >= minimum && number <= maximum {
		return ""
	}
	return fmt.Sprintf("spec.connector.%s %d, but GatewayClass %s permits %d to %d. Choose a number in this range, or ask the platform team to change spec.limits.connectorReplicas of %s.",
		field, number, c.name, minimum, maximum, c.settingsLocation())
}

// checkDeletion rejects the deletionPolicy Delete for an adopted tunnel when only
// the Gateway sets it.
func (c *class) checkDeletion(merged *Settings) string {
	byClass := c.spec.Tunnel != nil && ptr.Deref(c.spec.Tunnel.DeletionPolicy, "") == v1alpha1.DeletionPolicyDelete
	if merged.ExistingTunnel() == "" || merged.DeletionPolicy() != v1alpha1.DeletionPolicyDelete || byClass {
		return ""
	}
	return fmt.Sprintf("spec.tunnel.deletionPolicy is Delete, but only a GatewayClass's TunnelConfiguration may set this value for an adopted tunnel. Remove the field, or ask the platform team to set it in %s.", c.settingsLocation())
}
