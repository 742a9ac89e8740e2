package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxReplicas is the number of connectors that a tunnel can have, by
// Cloudflare's limit.
const MaxReplicas = 25

// DefaultReplicas is the number of connectors when [Connector.Replicas] and
// [Connector.Autoscaling] are unset.
const DefaultReplicas = 2

// Connector says how cloudflared is run for a Gateway: a Deployment in the
// controller's namespace.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && has(self.autoscaling))",message="connector has both replicas and autoscaling: set replicas for a fixed number, or autoscaling, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.claims)",message="connector.resources has claims, which connectors cannot have: set limits and requests only"
type Connector struct {
	// Enabled says whether the controller runs connectors. With false none are
	// made, for those who run cloudflared themselves. Default: true.
	//
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Replicas is the number of connectors. With 0 the Deployment stays and serves
	// nothing. At most 25, by Cloudflare's limit for a tunnel. Default: 2.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=25
	Replicas *int32 `json:"replicas,omitempty"`

	// Autoscaling lets a HorizontalPodAutoscaler choose the number of connectors.
	// Default: none.
	//
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// Image is the image of cloudflared. Default: the official image at the
	// version that the controller was tested with. Counts in the GatewayClass's
	// object only: a Gateway's owner must not be able to choose what runs with the
	// tunnel's token.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9A-Za-z.-]+(:[0-9]+)?/)?[0-9a-z]+([._/-]+[0-9a-z]+)*(:[0-9A-Za-z_][0-9A-Za-z_.-]*)?(@sha256:[0-9a-f]{64})?$')",message="must be the reference of an image, as in docker.io/cloudflare/cloudflared:2026.8.2"
	Image *string `json:"image,omitempty"`

	// Protocol is the transport between a connector and Cloudflare's edge.
	// Default: auto, which means QUIC with HTTP/2 to fall back on, and HTTP/2
	// once the Gateway has a GRPCRoute, because QUIC loses gRPC's trailers.
	//
	// +optional
	Protocol *Protocol `json:"protocol,omitempty"`

	// LogLevel is the least severity that a connector logs. Default: info.
	//
	// +optional
	LogLevel *LogLevel `json:"logLevel,omitempty"`

	// Resources are the compute resources of a connector. Default: none.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// NodeSelector are the labels of the nodes that connectors may run on.
	// Default: any node.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are the taints that connectors tolerate. The list of one level
	// replaces the other's. Default: none.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Affinity says which nodes and neighbours connectors are drawn to or kept
	// from. Default: none.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// TopologySpreadConstraints say how connectors are spread, keyed by
	// topologyKey and whenUnsatisfiable. Default: none.
	//
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PodAnnotations are annotations for the pods, besides those of the Gateway's
	// spec.infrastructure. Default: none.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$'))",message="podAnnotations has a key that is not valid: a key is a name of up to 63 letters, digits, '-', '_' and '.', with a DNS subdomain and a slash before it where needed, as in example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('tunnelgateway.dev/') && !key.startsWith('gateway.networking.k8s.io/'))",message="podAnnotations has a key under tunnelgateway.dev/ or gateway.networking.k8s.io/, which the controller sets: take it out"
	PodAnnotations map[string]AnnotationValue `json:"podAnnotations,omitempty"`

	// PodLabels are labels for the pods, besides those of the Gateway's
	// spec.infrastructure. Default: none.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[0-9A-Za-z]([0-9A-Za-z_.-]{0,61}[0-9A-Za-z])?$'))",message="podLabels has a key that is not valid: a key is a name of up to 63 letters, digits, '-', '_' and '.', with a DNS subdomain and a slash before it where needed, as in example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('tunnelgateway.dev/') && !key.startsWith('gateway.networking.k8s.io/'))",message="podLabels has a key under tunnelgateway.dev/ or gateway.networking.k8s.io/, which the controller sets: take it out"
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`

	// AllowedMetadataPrefixes lists the prefixes of keys that labels and
	// annotations of a Gateway's spec.infrastructure may have to reach the
	// connectors, as in example.com for the key example.com/team. Prefixes that
	// belong to Kubernetes or to this controller are refused. Default: none. Counts
	// in the GatewayClass's object only.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self.all(p, !['tunnelgateway.dev', 'kubernetes.io', 'k8s.io', 'gateway.networking.k8s.io'].exists(r, p == r || p.endsWith('.' + r)))",message="allowedMetadataPrefixes has tunnelgateway.dev, kubernetes.io, k8s.io, gateway.networking.k8s.io or a subdomain of one of them: take it out"
	AllowedMetadataPrefixes []string `json:"allowedMetadataPrefixes,omitempty"`

	// TokenRotation is the interval at which the controller rotates the token of
	// the tunnel. At least 24h. Default: no rotation.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}[hms]){1,3}$') || duration(self) >= duration('24h')",message="must be at least 24h"
	TokenRotation *Duration `json:"tokenRotation,omitempty"`

	// GracePeriod is the time that a connector which is told to end gives the
	// requests in flight. At most 3m, by cloudflared's limit. Default: 30s.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}[hms]){1,3}$') || duration(self) <= duration('3m')",message="must be at most 3m, by cloudflared's limit"
	GracePeriod *Duration `json:"gracePeriod,omitempty"`

	// PodDisruptionBudget says how many connectors must stay while nodes are
	// drained. Default: none.
	//
	// +optional
	PodDisruptionBudget *PodDisruptionBudget `json:"podDisruptionBudget,omitempty"`
}

// Autoscaling lets a HorizontalPodAutoscaler choose the number of connectors.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="autoscaling has a minReplicas above maxReplicas: lower minReplicas or raise maxReplicas"
type Autoscaling struct {
	// MinReplicas is the least number of connectors. Default: 2, or maxReplicas
	// where that is lower.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=25
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the greatest number of connectors. At most 25, by
	// Cloudflare's limit for a tunnel. Default: 25.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=25
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// TargetCPUUtilizationPercentage is the average CPU utilisation, in percent of
	// what the connectors request, that is aimed at. It needs a request for cpu in
	// connector.resources. Default: 80.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	TargetCPUUtilizationPercentage *int32 `json:"targetCPUUtilizationPercentage,omitempty"`
}

// PodDisruptionBudget says how many connectors must stay while nodes are
// drained. The one of one level replaces the other's.
//
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) != has(self.maxUnavailable)",message="podDisruptionBudget needs either minAvailable or maxUnavailable, and not both"
type PodDisruptionBudget struct {
	// MinAvailable is the number or the percentage of connectors that must stay,
	// as in 1 or "50%".
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : string(self).matches('^([0-9]|[1-9][0-9]|100)%$')",message="must be a number that is not negative, or a percentage from \"0%\" to \"100%\""
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// MaxUnavailable is the number or the percentage of connectors that may be
	// missing, as in 1 or "50%".
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : string(self).matches('^([0-9]|[1-9][0-9]|100)%$')",message="must be a number that is not negative, or a percentage from \"0%\" to \"100%\""
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// Protocol is a transport between a connector and Cloudflare's edge.
//
// +kubebuilder:validation:Enum=auto;http2;quic
type Protocol string

const (
	// ProtocolAuto lets the connector and the controller choose.
	ProtocolAuto Protocol = "auto"
	// ProtocolHTTP2 is HTTP/2 over TCP.
	ProtocolHTTP2 Protocol = "http2"
	// ProtocolQUIC is QUIC over UDP.
	ProtocolQUIC Protocol = "quic"
)

// LogLevel is a severity of cloudflared's log.
//
// +kubebuilder:validation:Enum=debug;info;warn;error;fatal
type LogLevel string

const (
	// LogLevelDebug logs requests too, with their headers.
	LogLevelDebug LogLevel = "debug"
	// LogLevelInfo is the default.
	LogLevelInfo LogLevel = "info"
	// LogLevelWarn logs what may be wrong.
	LogLevelWarn LogLevel = "warn"
	// LogLevelError logs what is wrong.
	LogLevelError LogLevel = "error"
	// LogLevelFatal logs what ends the connector.
	LogLevelFatal LogLevel = "fatal"
)

// AnnotationValue is the value of an annotation.
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^(([0-9A-Za-z][0-9A-Za-z_.-]*)?[0-9A-Za-z])?$')",message="must be the value of a label: up to 63 letters, digits, '-', '_' and '.', with a letter or a digit at both ends"
type LabelValue string
