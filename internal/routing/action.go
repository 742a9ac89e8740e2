package routing

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// Action is what happens to a request. Exactly one of Status, Redirect and Forward
// is set.
type Action struct {
	// Status is the status of a response without a body. It replaces an action that cannot be
	// served.
	Status int
	// Problem explains why Status replaces the action of the route, or is nil.
	Problem *Problem
	// Redirect answers with a redirect.
	Redirect *Redirect
	// Forward sends the request to a backend.
	Forward *Forward
	// Response changes the response headers, or is nil.
	Response *HeaderChanges
	// CORS is the cross-origin policy, or nil.
	CORS *CORS
}

// Problem explains why an action is not served as the route specifies.
type Problem struct {
	// Reason is a route condition reason.
	Reason string
	// Cause explains why the action is not served, as a phrase for the route owner.
	Cause string
}

// Redirect is the action of a RequestRedirect filter. Empty fields keep the value in the
// request.
type Redirect struct {
	Scheme, Hostname string
	// Path replaces the path, or is nil.
	Path *PathChange
	// Port is the port in the Location header, or 0 for the default port of the scheme.
	Port int32
	// Status is the status code, for example 302.
	Status int
}

// PathChange replaces the path of a request.
type PathChange struct {
	// Prefix reports whether Value replaces the matched prefix, and not the whole path.
	Prefix bool
	Value  string
}

// Forward sends a request to one of several backends.
type Forward struct {
	// Backends are the backends with a weight above 0. A request goes to each of them
	// with a probability in proportion to its weight.
	Backends []WeightedBackend
	// Filters change requests to all backends, or are nil.
	Filters *Filters
	// Timeouts limit the duration of a request, or are nil.
	Timeouts *Timeouts
	// Retry is the retry policy, or nil.
	Retry *Retry
}

// WeightedBackend is one backend in a Forward.
type WeightedBackend struct {
	// Backend is the backend. It is empty when the reference does not resolve.
	Backend Backend
	// Status is the status for requests to a backend that does not resolve. It is 0
	// when Backend is set.
	Status int
	// Weight is above 0.
	Weight int32
	// Filters change requests to this backend, or are nil.
	Filters *Filters
	// Response changes the headers of responses from this backend, or is nil.
	Response *HeaderChanges
}

// Filters change requests on their way to a backend.
type Filters struct {
	// Request changes the request headers, or is nil.
	Request *HeaderChanges
	// Rewrite changes the host and the path of the request.
	Rewrite Rewrite
	// Mirrors receive copies of requests.
	Mirrors []Mirror
}

// Protocol is how to talk to a backend.
type Protocol uint8

// The zero value is no protocol.
const (
	ProtocolHTTP Protocol = iota + 1
	ProtocolHTTPS
	// ProtocolH2C is HTTP/2 without TLS.
	ProtocolH2C
)

// String returns the scheme for a URL, such as "https".
func (p Protocol) String() string {
	switch p {
	case ProtocolHTTP:
		return "http"
	case ProtocolHTTPS:
		return "https"
	case ProtocolH2C:
		return "h2c"
	default:
		return ""
	}
}

// Backend is a port of a Service or of a ServiceImport.
type Backend struct {
	Service types.NamespacedName
	// Import reports whether Service is the name of a ServiceImport.
	Import bool
	// IPs are the canonical addresses of a ServiceImport, with the IP version of the first
	// and separated by commas. They are empty when its EndpointSlices contain the addresses.
	IPs string
	// Port is the Service port. For a headless Service, it is the pod port, because the
	// Service name resolves to the pods.
	Port     int32
	Protocol Protocol
	// Headless reports whether the Service has no ClusterIP.
	Headless bool
	// ServicePort is the port number of the Service, and PortName its name, by which
	// EndpointSlices refer to it.
	ServicePort int32
	PortName    string
	// ClusterIP is the address of the Service. It is empty when the Service is headless,
	// or when its manifest contains no address.
	ClusterIP string
	// Family is the first IP family of the Service, or empty when its manifest names
	// none.
	Family corev1.IPFamily
	// Addressing says by which addresses a Service with a ClusterIP is reached.
	Addressing Addressing
	// ClientAffinity reports whether the Service asks for one pod for all requests from
	// the same client. Only a data plane that follows endpoints needs it.
	ClientAffinity bool
	// TLS is how a BackendTLSPolicy makes the data plane connect, or nil. The Protocol is
	// then ProtocolHTTPS. Equal Backends in one table have the same pointer.
	TLS *BackendTLS
}

// URL returns the backend's URL in a cluster with the DNS domain. The scheme is the
// protocol. The URL of a ServiceImport with addresses contains the first one, because its
// name would resolve to any address that a tenant has written since.
func (b Backend) URL(clusterDomain string) string {
	host := b.DNSName(clusterDomain)
	if ip, _, _ := strings.Cut(b.IPs, ","); ip != "" {
		host = ip
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // an IPv6 address
	}
	return b.Protocol.String() + "://" + host + ":" + strconv.Itoa(int(b.Port))
}

// DNSName returns the backend's name in a cluster with the DNS domain.
func (b Backend) DNSName(clusterDomain string) string {
	if b.Import {
		clusterDomain = multicluster.DNSDomain
	}
	return b.Service.Name + "." + b.Service.Namespace + ".svc." + clusterDomain
}

// Describe returns the backend's URL, and which ServiceImport it is.
func (b Backend) Describe(clusterDomain string) string {
	if b.Import {
		return b.URL(clusterDomain) + " (ServiceImport " + b.Service.String() + ")"
	}
	return b.URL(clusterDomain)
}

// HeaderChanges are applied in the order Remove, Set, Add.
type HeaderChanges struct {
	Set, Add []Header
	Remove   []string
}

// Header is a request or response header.
type Header struct{ Name, Value string }

// Rewrite changes the host and the path of a request.
type Rewrite struct {
	// Hostname replaces the host, or is empty.
	Hostname string
	// Path replaces the path, or is nil.
	Path *PathChange
}

// Mirror is a backend that receives copies of requests. Its responses are ignored.
type Mirror struct {
	Backend Backend
	// Numerator and Denominator say which fraction of the requests is copied.
	Numerator, Denominator int32
}

// Timeouts limit how long a request takes. Nil means no limit by the route, and 0 no
// limit at all.
type Timeouts struct {
	// Request limits the whole request, Backend each attempt.
	Request, Backend *time.Duration
}

// Retry is a retry policy. Without Codes, only requests are repeated that did not reach
// the backend.
type Retry struct {
	// Codes are the status codes that lead to a retry.
	Codes []int
	// Attempts is the largest number of retries.
	Attempts int
}

// CORS is a cross-origin policy.
type CORS struct {
	AllowOrigins, AllowMethods, AllowHeaders, ExposeHeaders []string
	AllowCredentials                                        bool
	// MaxAge is how long a browser caches the policy.
	MaxAge time.Duration
}
