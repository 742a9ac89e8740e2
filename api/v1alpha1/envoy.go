package v1alpha1

import corev1 "k8s.io/api/core/v1"

// EnvoyProxy configures the Envoy proxy beside a connector.
//
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.claims)",message="connector.envoy.resources has claims, which are not supported: set only limits and requests"
type EnvoyProxy struct {
	// Image is the Envoy container image. Default: the official image without a shell,
	// in the version that the controller was tested with.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9A-Za-z.-]+(:[0-9]+)?/)?[0-9a-z]+([._/-]+[0-9a-z]+)*(:[0-9A-Za-z_][0-9A-Za-z_.-]*)?(@sha256:[0-9a-f]{64})?$')",message="must be an image reference, such as docker.io/envoyproxy/envoy:distroless-v1.40.0"
	Image *string `json:"image,omitempty"`

	// Concurrency is the number of threads that serve requests. Default: 2.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Concurrency *int32 `json:"concurrency,omitempty"`

	// Resources are the resource requests and limits for each Envoy. With dataPlane
	// Envoy, connector.autoscaling requires a request for cpu here too, because a
	// HorizontalPodAutoscaler considers all containers in a pod. Default: a request for
	// 128Mi of memory, unless resources sets a request or a limit for memory, and no
	// limit.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// Backends determines the addresses to which Envoy connects. Endpoints means the
	// pods in a Service's EndpointSlices, so that each request goes to a ready pod.
	// Service means the Service's ClusterIP, for meshes and NetworkPolicies that need
	// it; Services without a ClusterIP, HTTP/2 and gRPC still use the pods. Default:
	// Endpoints.
	//
	// +optional
	Backends *BackendAddresses `json:"backends,omitempty"`

	// OutlierDetection determines whether an Envoy sends no requests to a pod for 30
	// seconds after five connections to it in a row failed. Default: Enabled.
	//
	// +optional
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`

	// CircuitBreakers limits the requests from each Envoy to a Service port. Requests of
	// rules with a retry and of other rules are counted separately.
	//
	// +optional
	CircuitBreakers *CircuitBreakers `json:"circuitBreakers,omitempty"`

	// Metrics determines how each Envoy counts requests.
	//
	// +optional
	Metrics *EnvoyMetrics `json:"metrics,omitempty"`

	// AccessLog makes each Envoy log requests. Default: no access log.
	//
	// +optional
	AccessLog *AccessLog `json:"accessLog,omitempty"`

	// Tracing makes each Envoy send spans to a collector. Default: no spans, and visitors'
	// trace headers pass unchanged.
	//
	// +optional
	Tracing *Tracing `json:"tracing,omitempty"`

	// ProxyStatus determines whether Envoy's own responses, such as errors and redirects,
	// carry the header "Proxy-Status: tunnel-gateway; error=<type>" (RFC 9209). Envoy then
	// removes this header from backends' responses. Default: Enabled.
	//
	// +optional
	ProxyStatus *ProxyStatus `json:"proxyStatus,omitempty"`
}

// ProxyStatus determines whether Envoy's own responses carry the header Proxy-Status.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type ProxyStatus string

const (
	// ProxyStatusEnabled adds the header. It is the default.
	ProxyStatusEnabled ProxyStatus = "Enabled"
	// ProxyStatusDisabled adds nothing, and lets the backends' headers pass.
	ProxyStatusDisabled ProxyStatus = "Disabled"
)

// OutlierDetection determines whether pods that do not accept connections are left out.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type OutlierDetection string

const (
	// OutlierDetectionEnabled leaves such pods out. It is the default.
	OutlierDetectionEnabled OutlierDetection = "Enabled"
	// OutlierDetectionDisabled sends requests to all endpoints.
	OutlierDetectionDisabled OutlierDetection = "Disabled"
)

// DefaultCircuitBreaker is the default for each field in [CircuitBreakers].
const DefaultCircuitBreaker = 100_000

// CircuitBreakers limits what each Envoy sends to a Service port at the same time. A
// request above a limit gets the status 503. Requests of rules with a retry and of other
// rules are counted separately.
type CircuitBreakers struct {
	// Connections is the maximum number of connections. Above it, requests wait for a
	// connection. Each Envoy thread can always have one connection. Default: 100000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Connections *int32 `json:"connections,omitempty"`

	// PendingRequests is the maximum number of requests that wait for a connection.
	// Default: 100000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	PendingRequests *int32 `json:"pendingRequests,omitempty"`

	// Requests is the maximum number of requests in flight. Default: 100000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Requests *int32 `json:"requests,omitempty"`
}

// BackendAddresses are the addresses to which Envoy connects.
//
// +kubebuilder:validation:Enum=Endpoints;Service
type BackendAddresses string

const (
	// BackendsEndpoints means the pods in the EndpointSlices. It is the default.
	BackendsEndpoints BackendAddresses = "Endpoints"
	// BackendsService means the ClusterIP.
	BackendsService BackendAddresses = "Service"
)
