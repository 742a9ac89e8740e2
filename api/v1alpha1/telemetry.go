package v1alpha1

// EnvoyMetrics determines how each Envoy counts requests.
//
// +kubebuilder:validation:XValidation:rule="!has(self.by) || self.by == ['Gateway'] || self.by == ['Route'] || self.by == ['Route', 'Backend']",message="connector.envoy.metrics.by must be [Gateway], [Route] or [Route, Backend]"
// +kubebuilder:validation:XValidation:rule="!has(self.by) || !('Route' in self.by) || (has(self.allowWorkInProgress) && self.allowWorkInProgress)",message="connector.envoy.metrics.by with Route uses an extension that Envoy calls work in progress: set allowWorkInProgress to true too"
type EnvoyMetrics struct {
	// By determines what Envoy counts separately: [Gateway], [Route], or [Route, Backend].
	// Default: [Gateway].
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	By []MetricsDimension `json:"by,omitempty"`

	// MaxPairs is the maximum number of pairs of route and backend that each Envoy counts
	// separately. Each hostname and rule of a route has pairs of its own. Namespaces share
	// the pairs. Envoy counts all other requests together. A pair has about 25 series.
	// Default: 2000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20000
	MaxPairs *int32 `json:"maxPairs,omitempty"`

	// RequestsInFlight determines whether Envoy counts requests in flight by route, which
	// takes about as much CPU as all other metrics by route together. Default: false.
	//
	// +optional
	RequestsInFlight *bool `json:"requestsInFlight,omitempty"`

	// AllowWorkInProgress permits Envoy's stats access logger, whose status in Envoy is
	// work in progress. Metrics by route require it. Default: false.
	//
	// +optional
	AllowWorkInProgress *bool `json:"allowWorkInProgress,omitempty"`
}

// MetricsDimension is a dimension by which Envoy counts requests.
//
// +kubebuilder:validation:Enum=Gateway;Route;Backend
type MetricsDimension string

const (
	// MetricsByGateway counts all requests to the Gateway together. It is the default.
	MetricsByGateway MetricsDimension = "Gateway"
	// MetricsByRoute counts the requests for each route, rule and hostname.
	MetricsByRoute MetricsDimension = "Route"
	// MetricsByBackend counts the requests of a route for each backend.
	MetricsByBackend MetricsDimension = "Backend"
)

// DefaultMaxPairs is the default for [EnvoyMetrics.MaxPairs].
const DefaultMaxPairs = 2000

// AccessLog makes each Envoy log requests to its standard output, one JSON object for
// each.
type AccessLog struct {
	// SamplingPercent is the percentage of requests that Envoy logs. Default: 100.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SamplingPercent *int32 `json:"samplingPercent,omitempty"`

	// Errors determines whether Envoy always logs failed requests: responses with a status
	// of 500 or above, and others that Envoy could not serve. Sampled applies
	// samplingPercent to them too. Default: Always.
	//
	// +optional
	Errors *LoggedErrors `json:"errors,omitempty"`

	// VisitorAddress determines how much of the visitor's IP address Envoy logs. Prefix
	// means the first 24 bits, for both IPv4 and IPv6. Default: Full.
	//
	// +optional
	VisitorAddress *VisitorAddress `json:"visitorAddress,omitempty"`

	// Query determines whether Envoy logs queries, which can contain secrets. Default:
	// false.
	//
	// +optional
	Query *bool `json:"query,omitempty"`

	// MaxLinesPerSecond limits how many lines each Envoy logs. Envoy counts dropped lines.
	// Default: 100.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxLinesPerSecond *int32 `json:"maxLinesPerSecond,omitempty"`
}

// LoggedErrors determines which failed requests are logged.
//
// +kubebuilder:validation:Enum=Always;Sampled
type LoggedErrors string

const (
	// LoggedErrorsAlways logs every failed request. It is the default.
	LoggedErrorsAlways LoggedErrors = "Always"
	// LoggedErrorsSampled logs failed requests as often as others.
	LoggedErrorsSampled LoggedErrors = "Sampled"
)

// VisitorAddress is how much of the visitor's IP address is logged.
//
// +kubebuilder:validation:Enum=Full;Prefix;None
type VisitorAddress string

const (
	// VisitorAddressFull logs the address. It is the default.
	VisitorAddressFull VisitorAddress = "Full"
	// VisitorAddressPrefix logs the first 24 bits.
	VisitorAddressPrefix VisitorAddress = "Prefix"
	// VisitorAddressNone logs no address.
	VisitorAddressNone VisitorAddress = "None"
)

// DefaultMaxLinesPerSecond is the default for [AccessLog.MaxLinesPerSecond].
const DefaultMaxLinesPerSecond = 100

// Tracing makes each Envoy send spans to an OpenTelemetry collector.
type Tracing struct {
	// Endpoint is the URL of a collector that receives OTLP over gRPC, for example
	// http://collector.observability.svc:4317. The default port is 4317. With https, Envoy
	// verifies the certificate against the authorities in its image.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[0-9a-z]([0-9a-z.-]*[0-9a-z])?(:[1-9][0-9]{0,4})?/?$') && isURL(self) && (url(self).getPort() == \"\" || int(url(self).getPort()) <= 65535)",message="must be a URL with the scheme http or https and a host, such as http://collector.observability.svc:4317"
	Endpoint string `json:"endpoint"`

	// SamplingPercent is the percentage of new traces for which Envoy sends spans.
	// Default: 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SamplingPercent *int32 `json:"samplingPercent,omitempty"`

	// Parent determines whether Envoy continues the trace in a visitor's traceparent. With
	// Trusted, it does, and the visitor decides whether the request is sampled. With
	// Ignored, Envoy begins a new trace. Default: Ignored.
	//
	// +optional
	Parent *TraceParent `json:"parent,omitempty"`
}

// TraceParent determines whether visitors' traces continue.
//
// +kubebuilder:validation:Enum=Ignored;Trusted
type TraceParent string

const (
	// TraceParentIgnored begins a new trace. It is the default.
	TraceParentIgnored TraceParent = "Ignored"
	// TraceParentTrusted continues the visitor's trace.
	TraceParentTrusted TraceParent = "Trusted"
)

// DefaultTraceSampling is the default for [Tracing.SamplingPercent].
const DefaultTraceSampling = 1
