package envoy

import (
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Linux rejects a longer time, and Envoy then answers every request with 503.
func TestKeepAliveIsAtMostTheKernels(t *testing.T) {
	long := v1alpha1.Duration("10h")
	c := newClusters(&routing.Table{OriginRequest: &v1alpha1.OriginRequest{TCPKeepAlive: &long}}, nil)
	b := routing.Backend{ClusterIP: "10.0.0.1", Protocol: routing.ProtocolHTTP}
	cluster := c.newCluster(b, c.connection(&routing.Entry{Source: routing.Source{Route: &routing.Route{}}}, b))
	if got := cluster.UpstreamConnectionOptions.TcpKeepalive; got.KeepaliveTime.Value != 32767 || got.KeepaliveInterval.Value != 32767 {
		t.Errorf("TCP keepalive %v, want 32767 seconds", got)
	}
}
