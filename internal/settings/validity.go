package settings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// specCheck checks one part of a TunnelConfiguration, or of two that were
// merged, and returns what is wrong with it, or "". It names fields, never their
// values: users who cannot read the object can read the message.
type specCheck func(*v1alpha1.TunnelConfigurationSpec) string

// specChecks are the rules between fields that the CustomResourceDefinition has
// for each object, which merging can violate, and the rules that it cannot
// express. The first violation becomes the condition's message.
var specChecks = []specCheck{
	checkLimits,
	checkAutoscalingFields,
	checkResources,
	checkPodDisruptionBudget,
	checkGracePeriod,
	func(spec *v1alpha1.TunnelConfigurationSpec) string {
		return checkOriginRequest("spec.originRequest", spec.OriginRequest)
	},
	checkListenerConfigurations,
}

func specViolation(spec *v1alpha1.TunnelConfigurationSpec) string {
	for _, check := range specChecks {
		if violation := check(spec); violation != "" {
			return violation
		}
	}
	return ""
}

func checkLimits(spec *v1alpha1.TunnelConfigurationSpec) string {
	if least, most := replicaBounds(spec); least > most {
		return fmt.Sprintf("spec.limits.connectorReplicas has min %d above max %d; lower min, or raise max.", least, most)
	}
	return ""
}

func checkAutoscalingFields(spec *v1alpha1.TunnelConfigurationSpec) string {
	c := spec.Connector
	if c == nil || c.Autoscaling == nil {
		return ""
	}
	least, most := c.Autoscaling.MinReplicas, c.Autoscaling.MaxReplicas
	switch {
	case c.Replicas != nil:
		return "spec.connector has both replicas and autoscaling; set one of them."
	case least != nil && *least > ptr.Deref(most, v1alpha1.MaxReplicas):
		return "spec.connector.autoscaling has a minReplicas above maxReplicas; lower the one or raise the other."
	}
	return ""
}

// checkResources: the API server takes no pod that requests more than its
// limit.
func checkResources(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Connector == nil || spec.Connector.Resources == nil {
		return ""
	}
	r := spec.Connector.Resources
	if len(r.Claims) > 0 {
		return "spec.connector.resources has claims, which connectors cannot have; set limits and requests only."
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			return fmt.Sprintf("spec.connector.resources requests more %s than its limit; lower the request or raise the limit.", name)
		}
	}
	return ""
}

func checkPodDisruptionBudget(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Connector == nil || spec.Connector.PodDisruptionBudget == nil {
		return ""
	}
	if b := spec.Connector.PodDisruptionBudget; (b.MinAvailable == nil) == (b.MaxUnavailable == nil) {
		return "spec.connector.podDisruptionBudget needs either minAvailable or maxUnavailable, and not both."
	}
	return ""
}

// maxGracePeriodSeconds is cloudflared's own limit, in seconds.
const maxGracePeriodSeconds = 180

func checkGracePeriod(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Connector == nil || spec.Connector.GracePeriod == nil {
		return ""
	}
	if seconds, err := spec.Connector.GracePeriod.Seconds(); err != nil || seconds > maxGracePeriodSeconds {
		return "spec.connector.gracePeriod is no positive time in whole seconds of at most 3m."
	}
	return ""
}

// checkOriginRequest looks at one block, which the path leads to.
func checkOriginRequest(path string, o *v1alpha1.OriginRequest) string {
	if o == nil {
		return ""
	}
	for _, duration := range []struct {
		field string
		value *v1alpha1.Duration
	}{
		{"connectTimeout", o.ConnectTimeout}, {"tlsTimeout", o.TLSTimeout},
		{"tcpKeepAlive", o.TCPKeepAlive}, {"keepAliveTimeout", o.KeepAliveTimeout},
	} {
		if duration.value == nil {
			continue
		}
		if _, err := duration.value.Seconds(); err != nil {
			return fmt.Sprintf("%s.%s is no positive time in whole seconds.", path, duration.field)
		}
	}
	if isTrue(o.MatchSNIToHost) && isTrue(o.HTTP2Origin) {
		return path + " has both matchSNItoHost and http2Origin on, but cloudflared talks no HTTP/2 to a backend when it matches the SNI; set one of them to false."
	}
	return ""
}

func checkListenerConfigurations(spec *v1alpha1.TunnelConfigurationSpec) string {
	for i := range spec.ListenerConfigurations {
		entry := &spec.ListenerConfigurations[i]
		path := fmt.Sprintf("spec.listenerConfigurations[%s]", entry.ProtocolPort)
		if violation := cmp.Or(
			checkOriginRequest(path+".originRequest", entry.OriginRequest),
			checkEmptyOverrides(path+".originRequest", entry.OriginRequest, spec.OriginRequest),
			checkAccess(path+".access", entry.Access),
		); violation != "" {
			return violation
		}
	}
	return ""
}

// checkEmptyOverrides: an empty string is left out of the document, which leaves the
// tunnel's value in force; so the document cannot say what such an entry means.
func checkEmptyOverrides(path string, entry, tunnel *v1alpha1.OriginRequest) string {
	if entry == nil || tunnel == nil {
		return ""
	}
	for _, text := range []struct {
		field         string
		entry, tunnel *string
	}{
		{"httpHostHeader", entry.HTTPHostHeader, tunnel.HTTPHostHeader},
		{"originServerName", entry.OriginServerName, tunnel.OriginServerName},
		{"caPool", entry.CAPool, tunnel.CAPool},
		{"proxyType", (*string)(entry.ProxyType), (*string)(tunnel.ProxyType)},
	} {
		if text.entry != nil && *text.entry == "" && ptr.Deref(text.tunnel, "") != "" {
			return fmt.Sprintf("%s.%s is the empty string, which cannot override the one of spec.originRequest; set that for the other listeners instead of the tunnel.", path, text.field)
		}
	}
	return ""
}

// checkAccess: without a team and a tag no token can be checked, so access
// that is required without them would be none.
func checkAccess(path string, a *v1alpha1.Access) string {
	if a == nil || !a.Required {
		return ""
	}
	switch {
	case ptr.Deref(a.TeamName, "") == "":
		return path + " is required but has no teamName; set it, or set required to false."
	case len(a.AUDTags) == 0 || slices.Contains(a.AUDTags, ""):
		return path + " is required but has no audTags, or an empty one; set the AUD tag of the Access application, or set required to false."
	}
	return ""
}
