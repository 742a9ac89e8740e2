package envoy

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

var (
	anyEntry = &routing.Entry{Source: routing.Source{Route: &routing.Route{}}}
	headless = routing.Backend{Headless: true, Protocol: routing.ProtocolHTTP}
)

// A cluster never changes: changed settings lead to a cluster with another name, and
// equal settings to the cluster that Envoy has.
func TestChangedProtectionMakesOtherClusters(t *testing.T) {
	names := map[string]bool{}
	var last *Resources
	for _, p := range []routing.Protection{
		{},
		{OutlierDetection: ptr.To(v1alpha1.OutlierDetectionDisabled)},
		{CircuitBreakers: &v1alpha1.CircuitBreakers{Connections: ptr.To[int32](7)}},
		{CircuitBreakers: &v1alpha1.CircuitBreakers{PendingRequests: ptr.To[int32](7)}},
		{CircuitBreakers: &v1alpha1.CircuitBreakers{Requests: ptr.To[int32](7)}},
	} {
		table := &routing.Table{Protection: p}
		c := newClusters(table, last)
		cluster := c.cluster(anyEntry, headless)
		last = &Resources{clusterSet: &clusterSet{all: []usedCluster{{cluster, 1}}}}
		if again := newClusters(table, last).cluster(anyEntry, headless); again.Cluster != cluster.Cluster {
			t.Errorf("equal settings lead to another cluster: %v", again.Name)
		}
		names[cluster.Name] = true
	}
	if len(names) != 5 {
		t.Errorf("five settings lead to the clusters %v", names)
	}
	defaults := routing.Protection{
		OutlierDetection: ptr.To(v1alpha1.OutlierDetectionEnabled),
		CircuitBreakers:  &v1alpha1.CircuitBreakers{Requests: ptr.To[int32](v1alpha1.DefaultCircuitBreaker)},
	}
	if name := newClusters(&routing.Table{Protection: defaults}, nil).name(anyEntry, headless); !names[name] {
		t.Error("the defaults lead to another cluster than no settings")
	}
}

// A Service with an address is one endpoint for Envoy.
func TestAddressesOfServicesAreNotProtected(t *testing.T) {
	b := routing.Backend{ClusterIP: "10.0.0.1", Addressing: routing.AddressClusterIP, Protocol: routing.ProtocolHTTP, ClientAffinity: true}
	c := newClusters(&routing.Table{}, nil)
	if cluster := c.cluster(anyEntry, b); c.hasPods(anyEntry, b) || cluster.OutlierDetection != nil || cluster.LbConfig != nil {
		t.Errorf("the cluster for an address is %v", cluster)
	}
}
