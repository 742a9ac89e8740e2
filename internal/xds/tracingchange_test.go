package xds_test

import (
	"net"
	"net/http"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	caresv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Changed settings take effect in the same Envoy, and no request fails, neither on
// connections that exist nor on new ones.
func TestSettingsForTracesChangeUnderLoad(t *testing.T) {
	b, second := newTracedBed(t), newCollector(t)
	b.apply(t, nil)
	b.awaitAnswer(t, "200 blue")
	clusters := b.metric(t, "envoy_cluster_manager_active_clusters")
	failed := b.load(t)
	toSecond := b.settings(100, v1alpha1.TraceParentIgnored)
	toSecond.Endpoint = "http://" + second.address
	for range 3 {
		for _, change := range []struct {
			settings *v1alpha1.Tracing
			to       *collector
		}{
			{b.settings(100, v1alpha1.TraceParentIgnored), b.collector},
			{b.settings(100, v1alpha1.TraceParentTrusted), b.collector},
			{b.settings(0, v1alpha1.TraceParentTrusted), nil},
			{toSecond, second},
			{nil, nil},
		} {
			b.apply(t, change.settings)
			if change.to != nil {
				before := len(change.to.spans())
				await(t, "span", func() bool { b.sendOnce(t); return len(change.to.spans()) > before })
			}
		}
	}
	failed()
	await(t, "removal of the clusters for collectors", func() bool { return b.metric(t, "envoy_cluster_manager_active_clusters") == clusters })
	if n := b.metrics.streams(); n != 1 {
		t.Errorf("Envoy opened %d streams, want 1", n)
	}
	if state := b.State(shared); state.Rejected != "" {
		t.Errorf("the state is %+v", state)
	}
}

// sendOnce sends a request on a new connection, and fails if it does not succeed.
func (b *tracedBed) sendOnce(t *testing.T) {
	t.Helper()
	if status := b.send(t, "/app"); status != http.StatusOK {
		t.Errorf("the status is %d", status)
	}
}

// While no collector listens, or one does not answer, no request fails, and Envoy drops
// the spans. It sends the spans of later requests to a collector that is back.
func TestCollectorIsAway(t *testing.T) {
	b := newTracedBed(t)
	b.collector.stop()
	b.apply(t, b.settings(100, v1alpha1.TraceParentIgnored))
	const requests = 600
	for range requests {
		b.sendOnce(t)
	}
	silent, err := net.Listen("tcp", b.collector.address) // the kernel accepts connections
	if err != nil {
		t.Fatal(err)
	}
	const waiting = "envoy_cluster_collector_upstream_rq_active"
	await(t, "request that waits for the collector", func() bool { b.sendOnce(t); return b.metric(t, waiting) > 0 })
	for range requests {
		b.sendOnce(t)
	}
	// Each of the two threads may exceed the limit by one.
	if got := b.metric(t, waiting); got > 514 {
		t.Errorf("%d requests wait for the collector", got)
	}
	if len(b.spans()) != 0 || b.metric(t, "envoy_cluster_collector_upstream_rq_active_overflow") == 0 {
		t.Error("no span was dropped")
	}
	_ = silent.Close()
	b.start(t)
	await(t, "span", func() bool { b.sendOnce(t); return len(b.spans()) > 0 })
}

// A collector whose name has no address, or whose DNS server does not answer, delays
// neither the listeners nor other clusters.
func TestCollectorWithoutAddress(t *testing.T) {
	dead, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dead.Close() })
	address, _ := dead.LocalAddr().(*net.UDPAddr)
	for name, change := range map[string]func(*dnsv3.DnsCluster){
		"no such host": func(*dnsv3.DnsCluster) {},
		"no answer":    func(c *dnsv3.DnsCluster) { c.TypedDnsResolverConfig = resolver(t, address) },
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newSidecar(t), newRawBackend(t)
			p := traced(1, b.Backend, &v1alpha1.Tracing{Endpoint: "http://collector.invalid:4317", SamplingPercent: new(int32(100))})
			changeCollector(t, &p.Resources.Clusters[len(p.Resources.Clusters)-1], change)
			s.publish(t, p)
			t.Logf("Envoy is ready after %s", await(t, "port for probes", func() bool { return listens(s.ready) }))
			s.awaitAcknowledged(t, 1)
			for range 20 {
				if status := s.send(t, "/app"); status != http.StatusOK {
					t.Errorf("the status is %d", status)
				}
			}
			green, _ := backend(t, "green")
			next := traced(2, green, &v1alpha1.Tracing{Endpoint: "http://collector.invalid:4317", SamplingPercent: new(int32(50))})
			next.Resources.Clusters[len(next.Resources.Clusters)-1] = p.Resources.Clusters[len(p.Resources.Clusters)-1]
			s.publish(t, next)
			s.awaitAnswer(t, "200 green")
			s.awaitAcknowledged(t, 2)
		})
	}
}

// changeCollector replaces the cluster by one with other DNS settings.
func changeCollector(t *testing.T, cluster **clusterv3.Cluster, change func(*dnsv3.DnsCluster)) {
	t.Helper()
	c, dns := proto.CloneOf(*cluster), &dnsv3.DnsCluster{}
	config := c.GetClusterType().TypedConfig
	if err := config.UnmarshalTo(dns); err != nil {
		t.Fatal(err)
	}
	change(dns)
	config.Value = packed(t, dns).Value
	*cluster = c
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	config, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// resolver returns settings with which Envoy asks a DNS server.
func resolver(t *testing.T, address *net.UDPAddr) *corev3.TypedExtensionConfig {
	t.Helper()
	server := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Protocol: corev3.SocketAddress_UDP, Address: address.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(address.Port)}, //nolint:gosec // a port
	}}}
	return &corev3.TypedExtensionConfig{
		Name: "envoy.network.dns_resolver.cares", TypedConfig: packed(t, &caresv3.CaresDnsResolverConfig{Resolvers: []*corev3.Address{server}}),
	}
}

// Envoy sends no span to a collector with another certificate.
func TestCollectorWithTLSIsVerified(t *testing.T) {
	b := newTracedBed(t)
	_, port, err := net.SplitHostPort(b.collector.address)
	if err != nil {
		t.Fatal(err)
	}
	// This name leads to the collector in every environment.
	b.collector.address = net.JoinHostPort("127.0.0.1", port)
	settings := b.settings(100, v1alpha1.TraceParentIgnored)
	settings.Endpoint = "https://" + net.JoinHostPort("localhost", port)
	b.restartWithTLS(t, b.ca, "other.example.com")
	b.apply(t, settings)
	await(t, "refused certificate", func() bool { b.sendOnce(t); return b.metric(t, "envoy_cluster_collector_ssl_fail_verify_san") > 0 })
	if len(b.spans()) > 0 {
		t.Error("the collector got a span")
	}
	b.restartWithTLS(t, b.ca, "localhost")
	await(t, "span", func() bool { b.sendOnce(t); return len(b.spans()) > 0 })
}
