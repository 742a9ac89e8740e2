package xds_test

import (
	"strings"
	"sync"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// publication publishes the Gateway shared with the clusters; "eds…" have endpoints.
// open is a text in the open listener's routes.
func publication(sequence int64, open string, names ...string) xds.Publication {
	p := xds.Publication{
		Gateway: shared, Tunnel: sharedTunnel, Sequence: sequence, Listeners: newListeners("v1"), Assignments: envoy.Assignments{},
		Resources: &envoy.Resources{Routes: []*routev3.RouteConfiguration{routeConfiguration(envoy.ListenerOpen, open), routeConfiguration(envoy.ListenerProtected, "")}},
	}
	for _, name := range names {
		c := &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(time.Second)}
		if strings.HasPrefix(name, "eds") {
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
			p.Resources.Endpoints = append(p.Resources.Endpoints, envoy.EndpointsOf{Cluster: name})
			p.Assignments[name] = assigned(name, "10.0.0.1")
		}
		p.Resources.Clusters = append(p.Resources.Clusters, c)
	}
	return p
}

func newListeners(text string) []*listenerv3.Listener {
	var all []*listenerv3.Listener
	for _, name := range []string{envoy.ListenerOpen, envoy.ListenerProtected, envoy.ListenerReady} {
		all = append(all, &listenerv3.Listener{Name: name, StatPrefix: text})
	}
	return all
}

func routeConfiguration(name, text string) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{{
		Name: "app.example.com", Domains: []string{"app.example.com"}, Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/" + text}},
			Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 200}},
		}},
	}}}
}

func assigned(cluster string, ips ...string) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	for _, ip := range ips {
		a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{
				Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
				}},
			}}},
		}}})
	}
	return a
}

// recorder counts what the server records.
type recorder struct {
	mu         sync.Mutex
	connected  map[types.NamespacedName]int
	pushes     map[metrics.XDSResources]int
	rejections map[metrics.XDSResources]int
	took       map[metrics.XDSResources][]time.Duration
	// opened counts the streams that were opened.
	opened int
	// panics makes recording an acknowledgement panic.
	panics bool
}

func (r *recorder) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connected == nil {
		r.connected, r.pushes, r.rejections, r.took = map[types.NamespacedName]int{}, map[metrics.XDSResources]int{}, map[metrics.XDSResources]int{}, map[metrics.XDSResources][]time.Duration{}
	}
	f()
}

func (r *recorder) SetConnectedEnvoys(g types.NamespacedName, n int) {
	r.change(func() {
		if n > r.connected[g] {
			r.opened++
		}
		r.connected[g] = n
	})
}

func (r *recorder) streams() (n int) {
	r.change(func() { n = r.opened })
	return n
}

func (r *recorder) DeleteConnectedEnvoys(g types.NamespacedName) {
	r.change(func() { delete(r.connected, g) })
}

func (r *recorder) RecordXDSPush(_ types.NamespacedName, k metrics.XDSResources) {
	r.change(func() { r.pushes[k]++ })
}

func (r *recorder) RecordXDSRejection(_ types.NamespacedName, k metrics.XDSResources) {
	r.change(func() { r.rejections[k]++ })
}

func (r *recorder) ObserveAcknowledgement(k metrics.XDSResources, d time.Duration) {
	r.change(func() {
		if r.panics {
			panic("a bug")
		}
		r.took[k] = append(r.took[k], d)
	})
}
