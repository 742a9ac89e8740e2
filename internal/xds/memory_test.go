package xds_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A Gateway's Envoys cannot make the server remember any number of names.
func TestNamesOfAGatewayAreLimited(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		versions := make(map[string]string, 150_000)
		for i := range 150_000 {
			versions[fmt.Sprint(i)] = "1"
		}
		refused := 0
		for range 20 {
			c := b.envoy(t)
			defer c.close()
			c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: endpoints, InitialResourceVersions: versions})
			synctest.Wait()
			if c.ended() != nil {
				refused++
				if got := status.Code(c.ended()); got != codes.ResourceExhausted {
					t.Errorf("the stream ended with %v, want ResourceExhausted", c.ended())
				}
			}
		}
		if refused != 7 {
			t.Errorf("%d of 20 streams were refused, want 7", refused)
		}
		c := b.connect(t, b.client(t, other, otherTunnel, time.Hour))
		defer c.close()
		c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: endpoints, InitialResourceVersions: versions})
		if err := c.ended(); err != nil {
			t.Errorf("the stream of another Gateway ended with %v", err)
		}
	})
}
