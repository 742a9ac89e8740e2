package routing

// Addressing says by which addresses a data plane reaches a Service that has a ClusterIP.
type Addressing uint8

const (
	// AddressEndpoints means the addresses of the pods, if the data plane follows
	// EndpointSlices. It is the default.
	AddressEndpoints Addressing = iota
	// AddressClusterIP means the ClusterIP, except for HTTP/2.
	AddressClusterIP
)

// UsesClusterIP reports whether requests to the backend go to its ClusterIP. With HTTP/2,
// they never do, because all requests on one connection would go to one pod.
func (b Backend) UsesClusterIP(http2 bool) bool {
	return b.Addressing == AddressClusterIP && !http2 && !b.Headless
}

// UsesHTTP2 reports whether a data plane that follows EndpointSlices sends requests to the
// backend by HTTP/2. kind is the kind of the route, and http2Origin the setting with that
// name.
func (b Backend) UsesHTTP2(kind string, http2Origin bool) bool {
	return kind == KindGRPCRoute || b.Protocol == ProtocolH2C || b.TLS != nil && b.TLS.HTTP2 || b.Protocol == ProtocolHTTPS && http2Origin
}
