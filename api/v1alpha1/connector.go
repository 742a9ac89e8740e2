package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxReplicas is the maximum number of connectors per tunnel. Cloudflare sets this
// limit.
const MaxReplicas = 25

// DefaultReplicas is the number of connectors when both [Connector.Replicas] and
// [Connector.Autoscaling] are unset.
const DefaultReplicas = 2

// Connector configures a Gateway's connectors: a cloudflared Deployment in the
// controller's namespace.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && has(self.autoscaling))",message="connector has both replicas and autoscaling: set only one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.claims)",message="connector.resources has claims, which are not supported: set only limits and requests"
// +kubebuilder:validation:XValidation:rule="!has(self.metricsFrom) || size(self.metricsFrom) == 0 || !has(self.metrics) || self.metrics != 'Loopback'",message="connector has metricsFrom, but no pod can connect to the metrics port if metrics is Loopback: remove metricsFrom, or set metrics to Pod"
type Connector struct {
	// Enabled determines whether the controller runs connectors. Set it to false
	// to run cloudflared outside the controller. Default: true.
	//
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Replicas is the number of connectors. With 0 the Deployment remains, but the
	// Gateway serves no requests. Cloudflare limits a tunnel to 25 connectors.
	// Default: 2.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=25
	Replicas *int32 `json:"replicas,omitempty"`

	// Autoscaling lets an autoscaler set the number of connectors. Default: no autoscaling.
	//
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// Image is the cloudflared container image. Default: the official image, in the
	// version that the controller was tested with. Only a GatewayClass's
	// TunnelConfiguration may set it, because the container receives the tunnel token.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9A-Za-z.-]+(:[0-9]+)?/)?[0-9a-z]+([._/-]+[0-9a-z]+)*(:[0-9A-Za-z_][0-9A-Za-z_.-]*)?(@sha256:[0-9a-f]{64})?$')",message="must be an image reference, such as docker.io/cloudflare/cloudflared:2026.8.2"
	Image *string `json:"image,omitempty"`

	// Envoy configures the Envoy proxy beside each connector. It has no effect with
	// dataPlane IngressRules. Only a GatewayClass's TunnelConfiguration may set it.
	//
	// +optional
	Envoy *EnvoyProxy `json:"envoy,omitempty"`

	// Protocol is the transport between a connector and Cloudflare's edge.
	// Default: auto, which uses QUIC and falls back to HTTP/2. With dataPlane Envoy,
	// and once the Gateway has served a GRPCRoute, auto uses HTTP/2 only, because QUIC
	// drops the trailers that gRPC requires.
	//
	// +optional
	Protocol *Protocol `json:"protocol,omitempty"`

	// EdgeIPVersion is the IP version with which a connector connects to Cloudflare's
	// edge. Auto uses the version that the pod's resolver prefers, and falls back to
	// the other version. Default: Auto.
	//
	// +optional
	EdgeIPVersion *EdgeIPVersion `json:"edgeIPVersion,omitempty"`

	// LogLevel is the minimum severity for log messages from a connector and the Envoy
	// beside it. Default: info.
	//
	// +optional
	LogLevel *LogLevel `json:"logLevel,omitempty"`

	// Metrics determines where a connector serves its metrics port. Pod serves it on
	// the pod's address. Loopback serves it on 127.0.0.1 in the pod, so that no other
	// pod can connect, even if the network plugin does not enforce NetworkPolicies; the
	// kubelet then runs the probes in the container, and Envoy serves no metrics.
	// Default: Pod. Only a GatewayClass's TunnelConfiguration may set it.
	//
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`

	// MetricsFrom selects the pods that may connect to the connector metrics port and,
	// with dataPlane Envoy, to the Envoy metrics. The connector metrics port serves not
	// only metrics but also the tunnel configuration and profiles. The restriction
	// requires a network plugin that enforces NetworkPolicies. metricsFrom must be
	// empty if metrics is Loopback. Default: none, so that no pod may connect. Only a
	// GatewayClass's TunnelConfiguration may set it.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MetricsFrom []MetricsPeer `json:"metricsFrom,omitempty"`

	// Resources are the resource requests and limits for each connector. The default is
	// a memory request of 128Mi without limits. It does not apply if resources sets a
	// memory request or a memory limit.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// NodeSelector contains the labels that a node must have to run connectors.
	// Default: none, so that connectors run on any node.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations let connectors run on nodes with matching taints, for example nodes
	// reserved for ingress. They do not keep connectors off other nodes; for that, also
	// set nodeSelector or affinity. If the GatewayClass and the Gateway both set
	// tolerations, mergingMode decides which list applies; the controller does not merge
	// the lists. Default: none.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity contains the scheduling constraints of connectors: node affinity,
	// pod affinity and pod anti-affinity. Default: none.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints describe how the scheduler spreads connectors across
	// topology domains, keyed by topologyKey and whenUnsatisfiable. Default: one
	// constraint, which prefers to run connectors on different nodes.
	//
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PodAnnotations are annotations for the connector pods, in addition to the
	// annotations in the Gateway's spec.infrastructure. Default: none.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$'))",message="podAnnotations has an invalid key: a key is a name of up to 63 letters, digits, '-', '_' and '.', with an optional prefix of a DNS subdomain and a slash, such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('tunnelgateway.dev/') && !key.startsWith('gateway.networking.k8s.io/'))",message="podAnnotations has a key with the prefix tunnelgateway.dev/ or gateway.networking.k8s.io/, which only the controller sets: remove it"
	PodAnnotations map[string]AnnotationValue `json:"podAnnotations,omitempty"`

	// PodLabels are labels for the connector pods, in addition to the labels in the
	// Gateway's spec.infrastructure. Default: none.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$'))",message="podLabels has an invalid key: a key is a name of up to 63 letters, digits, '-', '_' and '.', with an optional prefix of a DNS subdomain and a slash, such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('tunnelgateway.dev/') && !key.startsWith('gateway.networking.k8s.io/'))",message="podLabels has a key with the prefix tunnelgateway.dev/ or gateway.networking.k8s.io/, which only the controller sets: remove it"
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`

	// AllowedMetadataPrefixes lists key prefixes. The controller copies labels and
	// annotations with these prefixes from a Gateway's spec.infrastructure to the
	// connectors. For example, the key example.com/team has the prefix example.com.
	// Prefixes that belong to Kubernetes or to this controller are not valid. Default:
	// none, so that the controller copies nothing. Only a GatewayClass's
	// TunnelConfiguration may set it.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self.all(p, !['tunnelgateway.dev', 'kubernetes.io', 'k8s.io', 'gateway.networking.k8s.io'].exists(r, p == r || p.endsWith('.' + r)))",message="allowedMetadataPrefixes has tunnelgateway.dev, kubernetes.io, k8s.io, gateway.networking.k8s.io or a subdomain of one of them: remove it"
	AllowedMetadataPrefixes []string `json:"allowedMetadataPrefixes,omitempty"`

	// TokenRotation is the interval at which the controller rotates the tunnel token.
	// The minimum is 24h. Default: no rotation.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}[hms]){1,3}$') || duration(self) >= duration('24h')",message="must be at least 24h"
	TokenRotation *Duration `json:"tokenRotation,omitempty"`

	// ReadyDelay is the time from a connector's start to its first readiness check.
	// Cloudflare's edge takes up to ten seconds until it sends requests to a new
	// connector, and Kubernetes stops earlier connectors as soon as new ones are ready.
	// The maximum is 2m. Default: 15s.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}[hms]){1,3}$') || duration(self) <= duration('2m')",message="must be at most 2m"
	ReadyDelay *Delay `json:"readyDelay,omitempty"`

	// GracePeriod is the time for which a terminating connector serves requests that
	// are in flight or still arrive. Cloudflare's edge sends requests to a terminating
	// connector for up to ten seconds, so a shorter time can lose requests. The maximum
	// is 3m, which is cloudflared's limit. Default: 30s.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}[hms]){1,3}$') || duration(self) <= duration('3m')",message="must be at most 3m, which is the limit of cloudflared"
	GracePeriod *Duration `json:"gracePeriod,omitempty"`

	// PodDisruptionBudget limits how many connectors are evicted at the same time,
	// for example when nodes are drained. Default: maxUnavailable 1 if there can be two
	// connectors or more, otherwise none.
	//
	// +optional
	PodDisruptionBudget *PodDisruptionBudget `json:"podDisruptionBudget,omitempty"`
}

// Metrics is the address on which a connector serves its metrics port.
//
// +kubebuilder:validation:Enum=Pod;Loopback
type Metrics string

const (
	// MetricsPod serves the metrics port on the pod's address. It is the default.
	MetricsPod Metrics = "Pod"
	// MetricsLoopback serves the metrics port on 127.0.0.1 in the pod.
	MetricsLoopback Metrics = "Loopback"
)

// MetricsPeer selects pods, like an entry in a NetworkPolicy's from list. If it has
// both selectors, both must match.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespaceSelector) || has(self.podSelector)",message="an entry of metricsFrom is empty: set namespaceSelector, podSelector or both, or remove the entry"
type MetricsPeer struct {
	// NamespaceSelector selects the namespaces that contain the pods. An empty selector
	// selects all namespaces. Default: the controller's namespace.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// PodSelector selects the pods in the selected namespaces. Default: all pods.
	//
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
}

// Autoscaling lets an autoscaler set the number of connectors.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="autoscaling.minReplicas is greater than maxReplicas: lower minReplicas or raise maxReplicas"
type Autoscaling struct {
	// Autoscaler determines which autoscaler sets the number of connectors. With Managed,
	// the controller creates a HorizontalPodAutoscaler for CPU utilization. With External,
	// the controller creates none, and keeps the number from another autoscaler, such as
	// KEDA, which has its own bounds and targets. Default: Managed. Only a GatewayClass's
	// TunnelConfiguration may set it.
	//
	// +optional
	Autoscaler *Autoscaler `json:"autoscaler,omitempty"`

	// MinReplicas is the minimum number of connectors. Default: 2, or maxReplicas if
	// that is lower.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=25
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the maximum number of connectors. Cloudflare limits a tunnel to 25
	// connectors. Default: 25.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=25
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// TargetCPUUtilizationPercentage is the target for the connectors' average CPU
	// utilization, as a percentage of their CPU request. It requires a request for cpu
	// in connector.resources, and with dataPlane Envoy also in
	// connector.envoy.resources. Default: 80.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	TargetCPUUtilizationPercentage *int32 `json:"targetCPUUtilizationPercentage,omitempty"`
}

// Autoscaler determines which autoscaler sets the number of connectors.
//
// +kubebuilder:validation:Enum=Managed;External
type Autoscaler string

const (
	// AutoscalerManaged is a HorizontalPodAutoscaler that the controller creates. It is
	// the default.
	AutoscalerManaged Autoscaler = "Managed"
	// AutoscalerExternal is an autoscaler that the controller does not create.
	AutoscalerExternal Autoscaler = "External"
)

// IsExternal reports whether the controller creates no autoscaler.
func (a *Autoscaling) IsExternal() bool {
	return a != nil && a.Autoscaler != nil && *a.Autoscaler == AutoscalerExternal
}

// PodDisruptionBudget limits how many connectors are evicted at the same time,
// for example when nodes are drained. If the GatewayClass and the Gateway both set it,
// one budget replaces the other; the controller does not merge them.
//
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) != has(self.maxUnavailable)",message="podDisruptionBudget must have either minAvailable or maxUnavailable, but not both"
type PodDisruptionBudget struct {
	// MinAvailable is the number or percentage of connectors that must remain
	// available, for example 1 or "50%".
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : string(self).matches('^([0-9]|[1-9][0-9]|100)%$')",message="must be a non-negative number, or a percentage from \"0%\" to \"100%\""
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// MaxUnavailable is the number or percentage of connectors that may be unavailable,
	// for example 1 or "50%".
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : string(self).matches('^([0-9]|[1-9][0-9]|100)%$')",message="must be a non-negative number, or a percentage from \"0%\" to \"100%\""
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// Protocol is a transport between a connector and Cloudflare's edge.
//
// +kubebuilder:validation:Enum=auto;http2;quic
type Protocol string

const (
	// ProtocolAuto uses QUIC and falls back to HTTP/2. With dataPlane Envoy, and once the
	// Gateway has served a GRPCRoute, it uses HTTP/2 only.
	ProtocolAuto Protocol = "auto"
	// ProtocolHTTP2 is HTTP/2 over TCP.
	ProtocolHTTP2 Protocol = "http2"
	// ProtocolQUIC is QUIC over UDP.
	ProtocolQUIC Protocol = "quic"
)

// EdgeIPVersion is the IP version for connections to Cloudflare's edge.
//
// +kubebuilder:validation:Enum=Auto;"4";"6"
type EdgeIPVersion string

const (
	// EdgeIPVersionAuto uses both versions, and prefers the version that the resolver
	// prefers.
	EdgeIPVersionAuto EdgeIPVersion = "Auto"
	// EdgeIPVersion4 uses only IPv4.
	EdgeIPVersion4 EdgeIPVersion = "4"
	// EdgeIPVersion6 uses only IPv6.
	EdgeIPVersion6 EdgeIPVersion = "6"
)

// LogLevel is the minimum severity for log messages.
//
// +kubebuilder:validation:Enum=debug;info;warn;error;fatal
type LogLevel string

const (
	// LogLevelDebug logs all messages, including requests with their headers.
	LogLevelDebug LogLevel = "debug"
	// LogLevelInfo logs informational messages, warnings and errors.
	LogLevelInfo LogLevel = "info"
	// LogLevelWarn logs warnings and errors.
	LogLevelWarn LogLevel = "warn"
	// LogLevelError logs errors.
	LogLevelError LogLevel = "error"
	// LogLevelFatal logs only errors that terminate the connector.
	LogLevelFatal LogLevel = "fatal"
)

// AnnotationValue is an annotation value.
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// LabelValue is a label value.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^(([0-9A-Za-z][0-9A-Za-z_.-]*)?[0-9A-Za-z])?$')",message="must be a label value: up to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or a digit"
type LabelValue string
