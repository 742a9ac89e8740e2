package envoy

import (
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	downstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

const (
	// PortOpen is for all hostnames without Access settings. Like PortProtected, it is on
	// the loopback address.
	PortOpen = 10080
	// PortProtected is for hostnames with Access settings.
	PortProtected = 10081
	// PortReady serves /ready, and also /stats/prometheus unless only the loopback address
	// serves metrics.
	PortReady = 2001
	// PortXDS is where the controller listens for Envoys.
	PortXDS = 18000
)

// ServerName is the name in the controller certificate. It does not depend on the Service
// name.
const ServerName = "tunnel-gateway-xds"

const (
	// RunPath is the folder for the admin socket.
	RunPath     = "/run/envoy"
	adminSocket = RunPath + "/admin.sock"
	// CertificatesPath is where the identity Secret is mounted.
	CertificatesPath = "/etc/xds"
	// CAPath is the file with the certificate authorities in the Envoy image.
	CAPath = "/etc/ssl/certs/ca-certificates.crt"
)

// Bootstrap returns the configuration with which an Envoy beside a connector starts. The
// controller sends it everything that depends on a Gateway, and also its listeners, so
// that changing them replaces no pod. controller is the absolute DNS name of the
// controller Service.
func Bootstrap(controller string) *bootstrapv3.Bootstrap {
	b := newBootstrap()
	b.Node = &corev3.Node{Id: "connector", Cluster: "tunnel"} // the controller identifies an Envoy by its certificate
	b.Admin = &bootstrapv3.Admin{Address: pipe(adminSocket)}
	b.DynamicResources = &bootstrapv3.Bootstrap_DynamicResources{
		AdsConfig: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_DELTA_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
			SetNodeOnFirstMessageOnly: true, // the node has 61 KB
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
				ClusterName: clusterXDS, RetryPolicy: &corev3.RetryPolicy{RetryBackOff: &corev3.BackoffStrategy{
					BaseInterval: durationpb.New(200 * time.Millisecond), MaxInterval: durationpb.New(time.Second),
				}},
			}}}},
		},
		CdsConfig: adsSource(),
		LdsConfig: adsSource(),
	}
	b.StaticResources = &bootstrapv3.Bootstrap_StaticResources{
		Clusters: []*clusterv3.Cluster{adminCluster(), xdsCluster(controller)},
		Secrets:  []*tlsv3.Secret{systemCA()},
	}
	return b
}

// Static returns a configuration with which an Envoy serves the resources without a
// controller. It has no admin interface. assignments are the endpoints of the clusters
// in [Resources.Endpoints], by name. It names files for the client certificate.
func Static(r *Resources, assignments map[string]*endpointv3.ClusterLoadAssignment) *bootstrapv3.Bootstrap {
	b := newBootstrap()
	b.StaticResources = &bootstrapv3.Bootstrap_StaticResources{Listeners: trafficListeners(r.Telemetry, staticRoutes(Whole(ListenerOpen, r.Routes)), staticRoutes(Whole(ListenerProtected, r.Routes)))}
	for _, cluster := range r.Clusters {
		if cluster.GetType() == clusterv3.Cluster_EDS {
			cluster = staticCluster(cluster, assignments[cluster.Name])
		}
		if r.ClientCertificate != nil && cluster.TransportSocket != nil {
			cluster = withStaticSecrets(cluster)
		}
		b.StaticResources.Clusters = append(b.StaticResources.Clusters, cluster)
		if cluster.TransportSocket != nil && b.StaticResources.Secrets == nil {
			b.StaticResources.Secrets = []*tlsv3.Secret{systemCA()}
		}
	}
	if r.ClientCertificate != nil {
		b.StaticResources.Secrets = append(b.StaticResources.Secrets, staticClientCertificate())
	}
	return b
}

// MetricsPrefix begins the names of the metrics by route.
const MetricsPrefix = "tunnel_gateway"

func newBootstrap() *bootstrapv3.Bootstrap {
	return &bootstrapv3.Bootstrap{
		// Without these options, a large table takes several times the memory.
		StatsConfig: &metricsv3.StatsConfig{
			UseAllDefaultTags: boolValue(false),
			HistogramBucketSettings: []*metricsv3.HistogramBucketSettings{{
				Match: prefixMatcher(MetricsPrefix + "."), Buckets: []float64{5, 25, 100, 250, 1000, 2500, 10_000}, // milliseconds
			}},
			StatsMatcher: &metricsv3.StatsMatcher{StatsMatcher: &metricsv3.StatsMatcher_ExclusionList{ExclusionList: &matcherv3.ListStringMatcher{
				Patterns: []*matcherv3.StringMatcher{prefixMatcher("cluster." + ClusterPrefix), prefixMatcher("cluster." + ImportPrefix), prefixMatcher("vhost.")},
			}}},
		},
		StatsEviction:       &bootstrapv3.Bootstrap_StatsEvictionInterval{StatsEvictionInterval: durationpb.New(time.Hour)},
		DeferredStatOptions: &bootstrapv3.Bootstrap_DeferredStatOptions{EnableDeferredCreationStats: true},
		ClusterManager:      &bootstrapv3.ClusterManager{EnableDeferredClusterCreation: true},
		LayeredRuntime: &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{
			Name: "static", LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: unlimitedExpressions()},
		}}},
		OverloadManager: &overloadv3.OverloadManager{ResourceMonitors: []*overloadv3.ResourceMonitor{{
			Name: "envoy.resource_monitors.global_downstream_max_connections",
			ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: pack(
				&downstreamv3.DownstreamConnectionsConfig{MaxActiveDownstreamConnections: maxDownstreamConnections},
			)},
		}}},
	}
}

const maxDownstreamConnections = 50_000

// unlimitedExpressions switches off Envoy's own limit on expressions, which rejects the
// whole table. Package gateway limits them per tenant.
func unlimitedExpressions() *structpb.Struct {
	limit := structpb.NewNumberValue(1_000_000)
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"re2.max_program_size.error_level": limit, "re2.max_program_size.warn_level": limit,
	}}
}

func prefixMatcher(prefix string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix}}
}

func pipe(path string) *corev3.Address {
	const ownerOnly = 0o600
	return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path, Mode: ownerOnly}}}
}

const (
	clusterAdmin = "admin"
	clusterXDS   = "xds"
)

func adminCluster() *clusterv3.Cluster {
	socket := &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: adminSocket}}}
	return &clusterv3.Cluster{
		Name: clusterAdmin, ConnectTimeout: durationpb.New(time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		LoadAssignment:       loadAssignment(clusterAdmin, socket),
	}
}

// xdsCluster is the controller. Only its leader listens, so Envoy looks up the Service
// endpoints each second.
func xdsCluster(controller string) *clusterv3.Cluster {
	const maxMessage = 32 << 20
	keepalive := &httpv3.HttpProtocolOptions{UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
		ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
				ConnectionKeepalive: &corev3.KeepaliveSettings{Interval: durationpb.New(30 * time.Second), Timeout: durationpb.New(5 * time.Second)},
			}},
		},
	}}
	return &clusterv3.Cluster{
		Name: clusterXDS, ConnectTimeout: durationpb.New(5 * time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name: "envoy.clusters.dns", TypedConfig: pack(&dnsv3.DnsCluster{DnsRefreshRate: durationpb.New(time.Second)}),
		}},
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(maxMessage),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": pack(keepalive)},
		LoadAssignment:                loadAssignment(clusterXDS, socketAddress(controller, PortXDS)),
		TransportSocket:               xdsTLS(),
	}
}

// xdsTLS identifies the Envoy by the certificate of its Tunnel. Envoy reads the files
// again when the kubelet replaces them.
func xdsTLS() *corev3.TransportSocket {
	file := func(name string) *corev3.ConfigSource {
		return &corev3.ConfigSource{
			ResourceApiVersion: corev3.ApiVersion_V3, InitialFetchTimeout: durationpb.New(0),
			ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{
				Path: CertificatesPath + "/" + name, WatchedDirectory: &corev3.WatchedDirectory{Path: CertificatesPath},
			}},
		}
	}
	common := &tlsv3.CommonTlsContext{
		TlsParams:                      &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_3, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3},
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: secretClient, SdsConfig: file(sdsCertificateFile)}},
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         certificateFor(routing.CertificateName{Value: ServerName}),
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: secretCA, SdsConfig: file(sdsCAFile)},
		}},
	}
	return &corev3.TransportSocket{
		Name:       transportTLS,
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(&tlsv3.UpstreamTlsContext{Sni: ServerName, CommonTlsContext: common})},
	}
}

// systemCA has the certificate authorities in the Envoy image.
func systemCA() *tlsv3.Secret {
	return &tlsv3.Secret{Name: secretSystemCA, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
		TrustedCa: &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: CAPath}},
	}}}
}

func loadAssignment(cluster string, address *corev3.Address) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: cluster, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address}}}},
	}}}
}

// staticCluster returns a copy of the cluster with the endpoints.
func staticCluster(cluster *clusterv3.Cluster, assignment *endpointv3.ClusterLoadAssignment) *clusterv3.Cluster {
	c := proto.CloneOf(cluster)
	c.EdsClusterConfig = nil
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	c.LoadAssignment = assignment
	if assignment == nil {
		c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: cluster.Name}
	}
	return c
}
