package v1alpha1

// EnvoyMetrics determines which metrics each Envoy has about requests.
//
// +kubebuilder:validation:XValidation:rule="!has(self.by) || self.by == ['Gateway'] || self.by == ['Route'] || self.by == ['Route', 'Backend']",message="connector.envoy.metrics.by must be [Gateway], [Route] or [Route, Backend]"
// +kubebuilder:validation:XValidation:rule="!has(self.by) || !('Route' in self.by) || (has(self.allowWorkInProgress) && self.allowWorkInProgress)",message="connector.envoy.metrics.by with Route uses an extension that Envoy calls work in progress: set allowWorkInProgress to true too"
type EnvoyMetrics struct {
	// By determines what is counted separately: [Gateway], [Route], or [Route, Backend].
	// Default: [Gateway].
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	By []MetricsDimension `json:"by,omitempty"`

	// MaxPairs is the maximum number of pairs of route and backend that each Envoy counts
	// separately, for each hostname and rule. The pairs are shared among the namespaces,
	// and Envoy counts the others together as other. A pair has about 25 series. Default:
	// 2000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20000
	MaxPairs *int32 `json:"maxPairs,omitempty"`

	// RequestsInFlight determines whether metrics by route have the number of requests in
	// flight too, which takes Envoy about as much CPU time for each request as all other
	// metrics by route together. Default: false.
	//
	// +optional
	RequestsInFlight *bool `json:"requestsInFlight,omitempty"`

	// AllowWorkInProgress permits Envoy's stats access logger, which Envoy calls work in
	// progress. Metrics by route require it. Default: false.
	//
	// +optional
	AllowWorkInProgress *bool `json:"allowWorkInProgress,omitempty"`
}

// MetricsDimension is what metrics are counted by.
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
	// SamplingPercent is the percentage of requests that are logged. Default: 100.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SamplingPercent *int32 `json:"samplingPercent,omitempty"`

	// Errors determines whether requests that fail are always logged: responses with a
	// status of 500 or above, and others that Envoy could not serve. Sampled
	// means that samplingPercent applies to them too. Default: Always.
	//
	// +optional
	Errors *LoggedErrors `json:"errors,omitempty"`

	// VisitorAddress determines how much of the visitor's IP address is logged. Prefix
	// means the first 24 bits, of IPv4 and IPv6 addresses alike. Default: Full.
	//
	// +optional
	VisitorAddress *VisitorAddress `json:"visitorAddress,omitempty"`

	// Query determines whether the query is logged, which can contain secrets. Default:
	// false.
	//
	// +optional
	Query *bool `json:"query,omitempty"`

	// MaxLinesPerSecond limits how many lines each Envoy logs. Envoy counts the lines that
	// it drops. Default: 100.
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
	// Endpoint is the URL of the collector, which receives OTLP over gRPC, for example
	// http://collector.observability.svc:4317. The default port is 4317. With https, Envoy
	// verifies the certificate against the authorities in its image.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[0-9a-z]([0-9a-z.-]*[0-9a-z])?(:[1-9][0-9]{0,4})?/?$') && isURL(self) && (url(self).getPort() == \"\" || int(url(self).getPort()) <= 65535)",message="must be a URL with the scheme http or https and a host, such as http://collector.observability.svc:4317"
	Endpoint string `json:"endpoint"`

	// SamplingPercent is the percentage of requests for which Envoy begins a trace.
	// Default: 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SamplingPercent *int32 `json:"samplingPercent,omitempty"`

	// Parent determines whether a trace that a visitor's request names in its traceparent
	// continues. Trusted means that the visitor also decides whether the request is
	// sampled. Ignored means that Envoy begins another trace. Default: Ignored.
	//
	// +optional
	Parent *TraceParent `json:"parent,omitempty"`
}

// TraceParent determines whether visitors' traces continue.
//
// +kubebuilder:validation:Enum=Ignored;Trusted
type TraceParent string

const (
	// TraceParentIgnored begins another trace. It is the default.
	TraceParentIgnored TraceParent = "Ignored"
	// TraceParentTrusted continues the visitor's trace.
	TraceParentTrusted TraceParent = "Trusted"
)

// DefaultTraceSampling is the default for [Tracing.SamplingPercent].
const DefaultTraceSampling = 1
