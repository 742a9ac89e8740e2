package settings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
)

// specCheck checks one part of a TunnelConfiguration or of merged settings. It returns
// the violation, or "". The violation names fields, but never their values, because users
// who cannot read the object can read the message.
type specCheck func(*v1alpha1.TunnelConfigurationSpec) string

// specChecks are the CustomResourceDefinition rules that merging can violate, and the
// rules that a CustomResourceDefinition cannot express. The first violation becomes the
// condition message.
var specChecks = []specCheck{
	checkLimits,
	checkAutoscalingFields,
	checkResources,
	checkPodDisruptionBudget,
	checkReadyDelay,
	checkGracePeriod,
	checkMetricsFrom,
	func(spec *v1alpha1.TunnelConfigurationSpec) string {
		return checkOriginRequest("spec.originRequest", spec.OriginRequest)
	},
	checkListenerConfigurations,
	checkAccessOfHostnames,
	checkTracing,
	checkDNS,
	checkApplications,
}

func specViolation(spec *v1alpha1.TunnelConfigurationSpec) string {
	for _, check := range specChecks {
		if violation := check(spec); violation != "" {
			return violation
		}
	}
	return ""
}

// violation returns why the settings from both levels are not valid together, or "".
func (s *Settings) violation() string {
	return cmp.Or(specViolation(&s.Spec), s.checkDataPlane(),
		checkOverrides(s.Listeners.Class, s.Spec.OriginRequest), checkOverrides(s.Listeners.Gateway, s.Spec.OriginRequest))
}

func checkLimits(spec *v1alpha1.TunnelConfigurationSpec) string {
	if minimum, maximum := replicaBounds(spec); minimum > maximum {
		return fmt.Sprintf("spec.limits.connectorReplicas.min (%d) is greater than max (%d). Lower min, or raise max.", minimum, maximum)
	}
	return ""
}

func checkAutoscalingFields(spec *v1alpha1.TunnelConfigurationSpec) string {
	c := spec.Connector
	if c == nil || c.Autoscaling == nil {
		return ""
	}
	minReplicas, maxReplicas := c.Autoscaling.MinReplicas, c.Autoscaling.MaxReplicas
	switch {
	case c.Replicas != nil:
		return "spec.connector has both replicas and autoscaling. Set only one of them."
	case minReplicas != nil && *minReplicas > ptr.Deref(maxReplicas, v1alpha1.MaxReplicas):
		return "spec.connector.autoscaling.minReplicas is greater than maxReplicas. Lower minReplicas, or raise maxReplicas."
	}
	return ""
}

// checkResources checks all containers in a connector pod.
func checkResources(spec *v1alpha1.TunnelConfigurationSpec) string {
	c := spec.Connector
	if c == nil {
		return ""
	}
	violation := checkContainerResources("spec.connector.resources", c.Resources)
	if c.Envoy != nil {
		violation = cmp.Or(violation, checkContainerResources("spec.connector.envoy.resources", c.Envoy.Resources))
	}
	return violation
}

// checkContainerResources checks one container. The API server rejects a pod whose
// request exceeds its limit.
func checkContainerResources(path string, r *corev1.ResourceRequirements) string {
	if r == nil {
		return ""
	}
	if len(r.Claims) > 0 {
		return path + ".claims is not supported. Set only limits and requests."
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			return fmt.Sprintf("%s requests more %s than its limit. Lower the request, or raise the limit.", path, name)
		}
	}
	return ""
}

func checkPodDisruptionBudget(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Connector == nil || spec.Connector.PodDisruptionBudget == nil {
		return ""
	}
	if b := spec.Connector.PodDisruptionBudget; (b.MinAvailable == nil) == (b.MaxUnavailable == nil) {
		return "spec.connector.podDisruptionBudget must set exactly one of minAvailable and maxUnavailable."
	}
	return ""
}

const maxReadyDelaySeconds = 120

func checkReadyDelay(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Connector == nil || spec.Connector.ReadyDelay == nil {
		return ""
	}
	if seconds, err := spec.Connector.ReadyDelay.Seconds(); err != nil || seconds > maxReadyDelaySeconds {
		return "spec.connector.readyDelay must be a duration in whole seconds of at most 2m."
	}
	return ""
}

// maxGracePeriodSeconds is cloudflared's limit.
const maxGracePeriodSeconds = 180

func checkGracePeriod(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Connector == nil || spec.Connector.GracePeriod == nil {
		return ""
	}
	if seconds, err := spec.Connector.GracePeriod.Seconds(); err != nil || seconds > maxGracePeriodSeconds {
		return "spec.connector.gracePeriod must be a positive duration in whole seconds of at most 3m."
	}
	return ""
}

// checkMetricsFrom checks that metricsFrom has an effect, and its selectors. The API
// server rejects a NetworkPolicy with an invalid selector.
func checkMetricsFrom(spec *v1alpha1.TunnelConfigurationSpec) string {
	if spec.Connector == nil {
		return ""
	}
	if len(spec.Connector.MetricsFrom) > 0 && ptr.Deref(spec.Connector.Metrics, v1alpha1.MetricsPod) == v1alpha1.MetricsLoopback {
		return "spec.connector has metricsFrom, but no pod can connect to the metrics port if metrics is Loopback. Remove metricsFrom, or set metrics to Pod."
	}
	for i, peer := range spec.Connector.MetricsFrom {
		path := fmt.Sprintf("spec.connector.metricsFrom[%d]", i)
		if peer.NamespaceSelector == nil && peer.PodSelector == nil {
			return path + " is empty. Set namespaceSelector, podSelector or both, or remove the entry."
		}
		for _, selector := range []struct {
			field string
			value *metav1.LabelSelector
		}{{"namespaceSelector", peer.NamespaceSelector}, {"podSelector", peer.PodSelector}} {
			if _, err := metav1.LabelSelectorAsSelector(selector.value); err != nil {
				return fmt.Sprintf("%s.%s is not a valid label selector. Correct its keys, operators and values.", path, selector.field)
			}
		}
	}
	return ""
}

// checkOriginRequest checks one block. path is its path in the spec.
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
			return fmt.Sprintf("%s.%s must be a positive duration in whole seconds.", path, duration.field)
		}
	}
	if isTrue(o.MatchSNIToHost) && isTrue(o.HTTP2Origin) {
		return path + " sets both matchSNItoHost and http2Origin to true, but cloudflared does not use HTTP/2 when it matches the SNI. Set one of them to false."
	}
	return ""
}

func checkListenerConfigurations(spec *v1alpha1.TunnelConfigurationSpec) string {
	for i := range spec.ListenerConfigurations {
		entry := &spec.ListenerConfigurations[i]
		if violation := cmp.Or(
			checkHostname(pathOf(entry)+".hostname", entry.Hostname),
			checkOriginRequest(pathOf(entry)+".originRequest", entry.OriginRequest),
			checkAccess(pathOf(entry)+".access", entry.Access),
		); violation != "" {
			return violation
		}
	}
	return checkOverrides(spec.ListenerConfigurations, spec.OriginRequest)
}

func pathOf(entry *v1alpha1.ListenerConfiguration) string {
	return fmt.Sprintf("spec.listenerConfigurations[%s]", entry.ProtocolPort)
}

func checkOverrides(entries []v1alpha1.ListenerConfiguration, tunnel *v1alpha1.OriginRequest) string {
	for i := range entries {
		if violation := checkEmptyOverrides(pathOf(&entries[i])+".originRequest", entries[i].OriginRequest, tunnel); violation != "" {
			return violation
		}
	}
	return ""
}

// checkHostname rejects a hostname that no listener can have.
func checkHostname(path, hostname string) string {
	if problem := hostnames.Problem(hostname); problem != "" {
		return fmt.Sprintf("%s %s. Use the DNS name of a listener.", path, problem)
	}
	return ""
}

// checkEmptyOverrides rejects an empty string that overrides a tunnel setting. The tunnel
// configuration omits empty strings, so the tunnel setting would remain in effect.
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
			return fmt.Sprintf("%s.%s is empty, but an empty value cannot override the value in spec.originRequest. Remove the value from spec.originRequest, and set it for the other listeners.", path, text.field)
		}
	}
	return ""
}

// checkAccess checks required access. The connector cannot validate tokens without a team
// and a tag, so required access without them would protect nothing.
func checkAccess(path string, a *v1alpha1.Access) string {
	if a == nil || !a.Required || len(a.Policies) > 0 {
		return ""
	}
	switch {
	case ptr.Deref(a.TeamName, "") == "":
		return path + ".teamName is not set, but access is required. Set teamName, or set required to false."
	case len(a.AUDTags) == 0 || slices.Contains(a.AUDTags, ""):
		return path + ".audTags has no entry or an empty entry, but access is required. Set the AUD tag of the Access application, or set required to false."
	}
	return ""
}
