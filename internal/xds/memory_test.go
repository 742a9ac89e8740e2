package xds_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The Envoys of one Gateway cannot make the server remember more names the more of them there
// are.
func TestNamesOfAGatewayAreLimited(t *testing.T) {
	const reason = "each stream has a limit, but a Gateway has none"
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
		if refused > 0 {
			t.Errorf("%d streams were refused; remove the mark: %s", refused, reason)
		}
	})
}
