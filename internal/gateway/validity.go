package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// specCheck looks at one part of what a TunnelConfiguration says, or of what
// two of them give when merged, and returns what is wrong with it, or nothing.
// It names fields, never their values: the message stands where others can read
// it than the object.
type specCheck func(*v1alpha1.TunnelConfigurationSpec) string

// specChecks are those rules between fields that the CustomResourceDefinition
// has for each object, for what is merged from two, and those that it cannot
// express. The first fault is the condition's.
var specChecks = []specCheck{
	checkTunnel,
	checkScaling,
	checkResources,
	checkDisruption,
	checkGracePeriod,
	func(spec *v1alpha1.TunnelConfigurationSpec) string {
		return checkOriginRequest("spec.originRequest", spec.OriginRequest)
	},
	checkListenerConfigurations,
}

func specFault(spec *v1alpha1.TunnelConfigurationSpec) string {
	for _, check := range specChecks {
		if fault := check(spec); fault != "" {
			return fault
		}
	}
	return ""
}

// classOnly refuses what a Gateway's owner must not choose.
func classOnly(spec *v1alpha1.TunnelConfigurationSpec) string {
	switch {
	case spec.Account != nil:
		return "spec.account counts in the TunnelConfiguration of a GatewayClass only: the owner of a Gateway must not choose another account. Take it out."
	case spec.MergingMode != nil:
		return "spec.mergingMode counts in the TunnelConfiguration of a GatewayClass only: the owner of the class decides what the owner of a Gateway may change. Take it out."
	case spec.Connector != nil && spec.Connector.Image != nil:
		return "spec.connector.image counts in the TunnelConfiguration of a GatewayClass only: the owner of a Gateway must not choose what runs with the tunnel's token. Take it out."
	}
	return ""
}

func checkTunnel(spec *v1alpha1.TunnelConfigurationSpec) string {
	if t := spec.Tunnel; t != nil && t.Name != nil && t.Existing != nil {
		return "spec.tunnel has both name and existing; set one of them."
	}
	return ""
}

func checkScaling(spec *v1alpha1.TunnelConfigurationSpec) string {
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

func checkDisruption(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Connector == nil || spec.Connector.PodDisruptionBudget == nil {
		return ""
	}
	if b := spec.Connector.PodDisruptionBudget; (b.MinAvailable == nil) == (b.MaxUnavailable == nil) {
		return "spec.connector.podDisruptionBudget needs either minAvailable or maxUnavailable, and not both."
	}
	return ""
}

// longestGrace is cloudflared's own limit, in seconds.
const longestGrace = 180

func checkGracePeriod(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Connector == nil || spec.Connector.GracePeriod == nil {
		return ""
	}
	if seconds, err := spec.Connector.GracePeriod.Seconds(); err != nil || seconds > longestGrace {
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
	if on(o.MatchSNIToHost) && on(o.HTTP2Origin) {
		return path + " has both matchSNItoHost and http2Origin on, but cloudflared talks no HTTP/2 to a backend when it matches the SNI; set one of them to false."
	}
	return ""
}

func checkListenerConfigurations(spec *v1alpha1.TunnelConfigurationSpec) string {
	for i := range spec.ListenerConfigurations {
		entry := &spec.ListenerConfigurations[i]
		path := fmt.Sprintf("spec.listenerConfigurations[%s]", entry.ProtocolPort)
		if fault := cmp.Or(
			checkOriginRequest(path+".originRequest", entry.OriginRequest),
			checkEmptied(path+".originRequest", entry.OriginRequest, spec.OriginRequest),
			checkAccess(path+".access", entry.Access),
		); fault != "" {
			return fault
		}
	}
	return ""
}

// checkEmptied: an empty string is left out of the document, which leaves the
// tunnel's value in force; so the document cannot say what such an entry means.
func checkEmptied(path string, entry, tunnel *v1alpha1.OriginRequest) string {
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
