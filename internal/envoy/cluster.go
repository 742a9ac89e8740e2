package envoy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// ClusterPrefix begins the name of every cluster for a Service. The bootstrap excludes
// their statistics.
const ClusterPrefix = "s."

// ImportPrefix begins the name of every cluster for a ServiceImport. The bootstrap excludes
// their statistics too.
const ImportPrefix = "i."

// clusters collects the clusters for a table.
type clusters struct {
	tunnel *v1alpha1.OriginRequest
	domain string
	// clientCertificate reports whether Envoy presents a certificate to backends.
	clientCertificate bool

	byKey  map[clusterKey]*namedCluster
	merged map[*v1alpha1.OriginRequest]v1alpha1.OriginRequest
	// options are HTTP options, which most clusters share.
	options map[httpOptions]map[string]*anypb.Any
	// byContent contains the clusters, and last the clusters that the Gateway had before.
	byContent  map[clusterContent]*clusterv3.Cluster
	last       *clusterSet
	protection protection
	breakers   *clusterv3.CircuitBreakers
}

// clusterContent contains everything that distinguishes one cluster from another.
type clusterContent struct {
	routing.Backend // without TLS, whose ID is in the connection
	connection
	protection
}

// clusterKey contains everything that a cluster depends on.
type clusterKey struct {
	routing.Backend
	grpc   bool
	origin *v1alpha1.OriginRequest
}

func (c *clusterContent) source() EndpointSource { return EndpointSource{c.Service, c.Import} }

type namedCluster struct {
	*clusterv3.Cluster
	content clusterContent
	tls     *routing.BackendTLS // of the backend
}

func (c *namedCluster) backend() routing.Backend {
	b := c.content.Backend
	b.TLS = c.tls
	return b
}

func newClusters(t *routing.Table, last *Resources) *clusters {
	c := &clusters{
		tunnel: t.OriginRequest, domain: t.ClusterDomain, clientCertificate: t.ClientCertificate != nil,
		byKey: map[clusterKey]*namedCluster{}, merged: map[*v1alpha1.OriginRequest]v1alpha1.OriginRequest{},
		options: map[httpOptions]map[string]*anypb.Any{}, byContent: map[clusterContent]*clusterv3.Cluster{},
		protection: newProtection(t.Protection),
	}
	c.breakers = c.protection.circuitBreakers()
	if last != nil {
		c.last = last.clusterSet
	}
	return c
}

func (c *clusters) name(e *routing.Entry, b routing.Backend) string { return c.cluster(e, b).Name }

// hasPods reports whether the cluster for the backend has pods as endpoints.
func (c *clusters) hasPods(e *routing.Entry, b routing.Backend) bool {
	return c.cluster(e, b).GetType() == clusterv3.Cluster_EDS
}

func (c *clusters) cluster(e *routing.Entry, b routing.Backend) *namedCluster {
	key := clusterKey{b, e.Source.Route.Kind == routing.KindGRPCRoute, e.OriginRequest}
	cluster, ok := c.byKey[key]
	if !ok {
		cluster = c.shared(b, c.connection(e, b))
		c.byKey[key] = cluster
	}
	return cluster
}

// shared returns the cluster with the content. It reuses the cluster from the last
// resources, because hashing thousands of clusters again would delay each route change.
func (c *clusters) shared(b routing.Backend, conn connection) *namedCluster {
	content := clusterContent{b, conn, c.protection}
	content.TLS = nil
	cluster := c.byContent[content]
	if cluster == nil {
		cluster = c.last.find(&content)
	}
	if cluster == nil {
		cluster = c.newCluster(b, conn)
	}
	c.byContent[content] = cluster
	return &namedCluster{cluster, content, b.TLS}
}

// byName returns the clusters that entries have named.
func (c *clusters) byName() map[string]*namedCluster {
	named := make(map[string]*namedCluster, len(c.byKey))
	for _, cluster := range c.byKey {
		named[cluster.Name] = cluster
	}
	return named
}

// settings returns the settings for requests to an entry: the settings on its listeners,
// and for other fields the tunnel settings.
func (c *clusters) settings(e *routing.Entry) v1alpha1.OriginRequest {
	merged, ok := c.merged[e.OriginRequest]
	if !ok {
		merged = ptr.Deref(settings.MergeOriginRequests(e.OriginRequest, c.tunnel), v1alpha1.OriginRequest{})
		c.merged[e.OriginRequest] = merged
	}
	return merged
}

// hostRewrite returns the host for requests to the backend, or "" to keep the original
// host. A URLRewrite on the backend takes precedence over one in the rule, and both take
// precedence over the setting httpHostHeader.
func (c *clusters) hostRewrite(e *routing.Entry, b *routing.WeightedBackend) string {
	host := ""
	for _, f := range []*routing.Filters{b.Filters, e.Action.Forward.Filters} {
		if f != nil {
			host = cmp.Or(host, f.Rewrite.Hostname)
		}
	}
	return cmp.Or(host, ptr.Deref(c.settings(e).HTTPHostHeader, ""))
}

// connection is how Envoy connects to a backend.
type connection struct {
	httpOptions
	tls bool
	// serverName is the name that the backend certificate must have.
	serverName string
	// unverified reports whether Envoy accepts every certificate.
	unverified bool
	// policy is the ID of the [routing.BackendTLS] that determines the name and the
	// verification, or empty.
	policy string
	// presents reports whether Envoy presents the client certificate.
	presents                  bool
	connectTimeout, keepAlive time.Duration
	dnsName                   string
}

// httpOptions are the values in which the HTTP options of clusters differ.
type httpOptions struct {
	http2       bool
	idleTimeout time.Duration
}

// Defaults that Envoy and the connectors share.
const (
	defaultConnectTimeout = 30 * time.Second
	defaultTLSTimeout     = 10 * time.Second
	defaultKeepAlive      = 30 * time.Second
	// maxKeepAlive is the longest time that Linux accepts. With a longer one, Envoy does not
	// connect.
	maxKeepAlive = 32767 * time.Second
	// defaultIdleTimeout is below the 5 seconds after which common servers close idle
	// connections: a request on a connection that the server closes fails.
	defaultIdleTimeout = 4 * time.Second
)

func (c *clusters) connection(e *routing.Entry, b routing.Backend) connection {
	s := c.settings(e)
	dnsName := b.DNSName(c.domain)
	conn := connection{
		tls:            b.Protocol == routing.ProtocolHTTPS,
		serverName:     cmp.Or(ptr.Deref(s.OriginServerName, ""), dnsName),
		unverified:     ptr.Deref(s.NoTLSVerify, false),
		connectTimeout: duration(s.ConnectTimeout, defaultConnectTimeout),
		keepAlive:      min(duration(s.TCPKeepAlive, defaultKeepAlive), maxKeepAlive),
		dnsName:        dnsName,
	}
	if b.TLS != nil {
		conn.serverName, conn.unverified, conn.policy = b.TLS.Hostname, false, b.TLS.ID
	}
	conn.presents = conn.tls && c.clientCertificate
	conn.idleTimeout = duration(s.KeepAliveTimeout, defaultIdleTimeout)
	conn.http2 = b.UsesHTTP2(e.Source.Route.Kind, ptr.Deref(s.HTTP2Origin, false))
	if conn.tls {
		conn.connectTimeout += duration(s.TLSTimeout, defaultTLSTimeout) // Envoy has one timeout for both
	}
	return conn
}

// duration returns a duration from the settings, which package settings has validated.
func duration(d *v1alpha1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	seconds, err := d.Seconds()
	if err != nil {
		return otherwise
	}
	return time.Duration(seconds) * time.Second
}

// newCluster returns the cluster for a backend. Its name contains a hash of its content,
// so that a cluster never changes: routes move from one to the other.
func (c *clusters) newCluster(b routing.Backend, conn connection) *clusterv3.Cluster {
	cluster := &clusterv3.Cluster{
		Metadata:                      backendMetadata(b),
		ConnectTimeout:                durationpb.New(conn.connectTimeout),
		CircuitBreakers:               c.breakers,
		TypedExtensionProtocolOptions: c.protocolOptions(conn.httpOptions),
		UpstreamConnectionOptions: &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
			KeepaliveTime: wrapperspb.UInt32(uint32(conn.keepAlive.Seconds())), KeepaliveInterval: wrapperspb.UInt32(uint32(conn.keepAlive.Seconds())),
		}},
	}
	if conn.tls {
		cluster.TransportSocket = upstreamTLS(conn, b.TLS)
	}
	discovery, addresses := discoveryOf(b, conn)
	cluster.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: discovery}
	if discovery == clusterv3.Cluster_EDS {
		cluster.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: adsSource()}
		c.protectPods(cluster, b)
	}
	name := clusterPrefix(EndpointSource{b.Service, b.Import}) + strconv.Itoa(int(b.ServicePort))
	cluster.Name = name + "." + contentHash(cluster, b.PortName, addresses, string(b.Family))
	if addresses != "" {
		locality := &endpointv3.LocalityLbEndpoints{}
		for host := range strings.SplitSeq(addresses, ",") {
			locality.LbEndpoints = append(locality.LbEndpoints, lbEndpoint(host, b.ServicePort))
		}
		cluster.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: cluster.Name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}
	}
	return cluster
}

// clusterPrefix begins the names of the clusters for the Service or ServiceImport, and of no
// others.
func clusterPrefix(source EndpointSource) string {
	prefix := ClusterPrefix
	if source.Import {
		prefix = ImportPrefix
	}
	return prefix + source.Namespace + "." + source.Name + "."
}

// discoveryOf returns how Envoy finds the addresses of a backend, and the addresses that do
// not change, separated by commas. Only a Service in a manifest can lack a ClusterIP
// without being headless. Manifests seldom contain EndpointSlices, so Envoy looks up its
// name. The addresses of a ServiceImport lead to other clusters, whose pods this cluster
// need not know.
func discoveryOf(b routing.Backend, conn connection) (clusterv3.Cluster_DiscoveryType, string) {
	switch {
	case b.IPs != "":
		return clusterv3.Cluster_STATIC, b.IPs
	case !b.Headless && b.ClusterIP == "":
		return clusterv3.Cluster_STRICT_DNS, conn.dnsName
	case b.UsesClusterIP(conn.http2):
		return clusterv3.Cluster_STATIC, b.ClusterIP
	default:
		return clusterv3.Cluster_EDS, ""
	}
}

// contentHash hashes the cluster and the texts.
func contentHash(cluster *clusterv3.Cluster, texts ...string) string {
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(cluster)
	if err != nil {
		panic("marshal a cluster with valid UTF-8: " + err.Error()) // the names come from the API
	}
	h := sha256.New()
	h.Write(content)
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "\x00%s", text)
	}
	return hex.EncodeToString(h.Sum(nil))[:hashDigits]
}
