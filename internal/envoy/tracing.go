package envoy

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	mutationrulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	commondnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	uuidv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/request_id/uuid/v3"
	samplersv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/samplers/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"
	tagv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// CollectorPrefix begins the name of the cluster for the OpenTelemetry collector. The
// names of other clusters begin with [ClusterPrefix] or [ImportPrefix].
const CollectorPrefix = "tracing."

// traceHeaders are the headers that identify a visitor's trace.
var traceHeaders = []string{"traceparent", "tracestate"}

// ignoresParent reports whether Envoy begins a new trace for a request that already belongs
// to one.
func ignoresParent(t *v1alpha1.Tracing) bool {
	return t != nil && ptr.Deref(t.Parent, v1alpha1.TraceParentIgnored) != v1alpha1.TraceParentTrusted
}

// setTracing makes the listener send spans. Without settings, trace headers pass unchanged.
func setTracing(m *hcmv3.HttpConnectionManager, t *v1alpha1.Tracing) {
	if t == nil {
		return
	}
	cluster := collectorCluster(t)
	collector, _ := settings.ParseCollector(t.Endpoint)
	m.Tracing = &hcmv3.HttpConnectionManager_Tracing{
		Operation:  "%ROUTE_NAME%",
		CustomTags: spanAttributes(),
		Provider: &tracev3.Tracing_Http{
			Name: "envoy.tracers.opentelemetry", ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: pack(&tracev3.OpenTelemetryConfig{
				ServiceName: "tunnel-gateway",
				GrpcService: &corev3.GrpcService{
					TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
						ClusterName: cluster.Name, Authority: collector.Address(),
					}},
					Timeout: durationpb.New(exportTimeout),
				},
				Sampler: traceSampler(t),
			})},
		},
	}
	if ignoresParent(t) {
		m.EarlyHeaderMutationExtensions = append(m.EarlyHeaderMutationExtensions, removeTrace())
	}
	// Without it, the visitor's X-Request-Id decides whether Envoy creates a span.
	m.RequestIdExtension = &hcmv3.RequestIDExtension{TypedConfig: pack(&uuidv3.UuidRequestIdConfig{
		PackTraceReason: boolValue(false), UseRequestIdForTraceSampling: boolValue(false),
	})}
}

// removeTrace removes the trace to which a request belongs, so that the visitor cannot
// decide whether Envoy sends a span.
func removeTrace() *corev3.TypedExtensionConfig {
	var mutations []*mutationrulesv3.HeaderMutation
	for _, name := range traceHeaders {
		mutations = append(mutations, &mutationrulesv3.HeaderMutation{Action: &mutationrulesv3.HeaderMutation_Remove{Remove: name}})
	}
	return mutateHeaders("remove-trace", mutations...)
}

// traceSampler decides which requests have a span that Envoy sends.
func traceSampler(t *v1alpha1.Tracing) *corev3.TypedExtensionConfig {
	percent := ptr.Deref(t.SamplingPercent, v1alpha1.DefaultTraceSampling)
	ratio := &corev3.TypedExtensionConfig{
		Name: "envoy.tracers.opentelemetry.samplers.trace_id_ratio_based", TypedConfig: pack(&samplersv3.TraceIdRatioBasedSamplerConfig{
			SamplingPercentage: &typev3.FractionalPercent{Numerator: uint32(percent)}, //nolint:gosec // package settings has validated it
		}),
	}
	if ignoresParent(t) {
		return ratio
	}
	return &corev3.TypedExtensionConfig{
		Name: "envoy.tracers.opentelemetry.samplers.parent_based", TypedConfig: pack(&samplersv3.ParentBasedSamplerConfig{WrappedSampler: ratio}),
	}
}

// spanAttributes returns additional attributes. Some replace Envoy's own attributes, which
// contain the query, or text of any length from the visitor or the backend.
func spanAttributes() []*tagv3.CustomTag {
	text := func(name, format string) *tagv3.CustomTag {
		return &tagv3.CustomTag{Tag: name, Type: &tagv3.CustomTag_Value{Value: format}}
	}
	return []*tagv3.CustomTag{
		text("tunnel_gateway.route", "%ROUTE_NAME%"),
		{Tag: "tunnel_gateway.backend", Type: &tagv3.CustomTag_Metadata_{Metadata: &tagv3.CustomTag_Metadata{
			Kind:        &metadatav3.MetadataKind{Kind: &metadatav3.MetadataKind_Cluster_{Cluster: &metadatav3.MetadataKind_Cluster{}}},
			MetadataKey: &metadatav3.MetadataKey{Key: MetadataNamespace, Path: []*metadatav3.MetadataKey_PathSegment{{Segment: &metadatav3.MetadataKey_PathSegment_Key{Key: metadataBackend}}}},
		}}},
		text("server.address", "%REQ(:AUTHORITY):256%"),
		text("http.url", "%REQ(:AUTHORITY):256%%PATH(NQ):256%"),
		text("http.method", "%REQ(:METHOD):32%"),
		text("user_agent", "-"),
		text("guid:x-request-id", "%REQ(X-REQUEST-ID):64%"),
		text("guid:x-client-trace-id", "%REQ(X-CLIENT-TRACE-ID):64%"),
		text("grpc.path", "%PATH(NQ):256%"),
		text("grpc.content_type", "%REQ(CONTENT-TYPE):16%"),
		text("grpc.timeout", "%REQ(GRPC-TIMEOUT):9%"),
	}
}

const (
	// exportTimeout limits how long Envoy waits for the collector's response.
	exportTimeout = 10 * time.Second
	// maxExports limits the requests to the collector that wait for a response. Above it,
	// Envoy drops spans.
	maxExports = 512
)

// collectorCluster returns the cluster for the collector. Its name contains a hash of its
// content, like those of backends.
func collectorCluster(t *v1alpha1.Tracing) *clusterv3.Cluster {
	collector, _ := settings.ParseCollector(t.Endpoint) // package settings has validated it
	options := &httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
		ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
				ConnectionKeepalive: &corev3.KeepaliveSettings{Interval: durationpb.New(30 * time.Second), Timeout: durationpb.New(5 * time.Second)},
			}},
		},
	}}
	limit := wrapperspb.UInt32(maxExports)
	cluster := &clusterv3.Cluster{
		AltStatName:    "collector", // without the hash
		ConnectTimeout: durationpb.New(5 * time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name: "envoy.clusters.dns", TypedConfig: pack(&dnsv3.DnsCluster{DnsLookupFamily: commondnsv3.DnsLookupFamily_V4_PREFERRED}),
		}},
		// Listeners and other clusters do not wait for the DNS lookup.
		WaitForWarmOnInit: boolValue(false),
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxRequests: limit, MaxPendingRequests: limit,
		}}},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": pack(options)},
	}
	if collector.TLS {
		cluster.TransportSocket = upstreamTLS(connection{httpOptions: httpOptions{http2: true}, serverName: collector.Host}, nil)
	}
	address := socketAddress(collector.Host, uint32(collector.Port))
	cluster.Name = CollectorPrefix + contentHash(cluster, collector.Address())
	cluster.LoadAssignment = loadAssignment(cluster.Name, address)
	return cluster
}
