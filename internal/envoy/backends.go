package envoy

import (
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// protection has the settings in [routing.Protection] with defaults.
type protection struct {
	detectsOutliers                        bool
	connections, pendingRequests, requests uint32
}

func newProtection(p routing.Protection) protection {
	breakers := ptr.Deref(p.CircuitBreakers, v1alpha1.CircuitBreakers{})
	limit := func(n *int32) uint32 {
		return uint32(ptr.Deref(n, v1alpha1.DefaultCircuitBreaker)) //nolint:gosec // above 0
	}
	return protection{
		detectsOutliers: ptr.Deref(p.OutlierDetection, v1alpha1.OutlierDetectionEnabled) == v1alpha1.OutlierDetectionEnabled,
		connections:     limit(breakers.Connections), pendingRequests: limit(breakers.PendingRequests), requests: limit(breakers.Requests),
	}
}

// circuitBreakers returns the limits for each cluster. With Envoy's defaults, 1,024
// requests and 3 retries, a busy hostname would have refused requests.
func (p protection) circuitBreakers() *clusterv3.CircuitBreakers {
	normal, high := p.thresholds(), p.thresholds()
	normal.MaxRetries = wrapperspb.UInt32(v1alpha1.DefaultCircuitBreaker)
	high.Priority, high.RetryBudget = corev3.RoutingPriority_HIGH, retryBudget
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{normal, high}}
}

// thresholds returns the limits for requests with one priority. Rules with a retry have the
// high priority.
func (p protection) thresholds() *clusterv3.CircuitBreakers_Thresholds {
	return &clusterv3.CircuitBreakers_Thresholds{
		MaxConnections: wrapperspb.UInt32(p.connections), MaxPendingRequests: wrapperspb.UInt32(p.pendingRequests),
		MaxRequests: wrapperspb.UInt32(p.requests),
	}
}

// protectPods sets how Envoy selects among the pods of a cluster.
func (c *clusters) protectPods(cluster *clusterv3.Cluster, b routing.Backend) {
	if c.protection.detectsOutliers {
		cluster.OutlierDetection = refusingPods
	}
	if b.ClientAffinity {
		cluster.LbPolicy, cluster.LbConfig = clusterv3.Cluster_MAGLEV, clientTable
	}
}

// hashesClients reports whether the entry has a backend whose pod depends on the client.
// The weights of several backends do not depend on the hash.
func (r *renderer) hashesClients(e *routing.Entry) bool {
	return slices.ContainsFunc(e.Action.Forward.Backends, func(b routing.WeightedBackend) bool {
		return b.Status == 0 && b.Backend.ClientAffinity && r.clusters.hasPods(e, b.Backend)
	})
}

const (
	// consecutiveFailures is how many connections to a pod fail in a row before the pod is
	// left out for ejectionTime.
	consecutiveFailures = 5
	ejectionTime        = 30 * time.Second
	// ejectionInterval is how often Envoy looks for pods whose time is over. With 5,000
	// clusters, it takes 0.9 % of a core; an interval of 1 s takes 1.6 %.
	ejectionInterval = 2 * time.Second
	// maxEjected is the largest percentage of a cluster's pods that are left out. Half of
	// one pod is none.
	maxEjected = 50
	// clientTableSize is the number of entries through which the hash of a client selects
	// a pod, a prime. With three pods it takes 1.5 KiB in Envoy and 50 µs for each change
	// of endpoints; Envoy's default, 65,537, takes 20 KiB and 750 µs. A cluster with more
	// pods than entries uses only some of them.
	clientTableSize = 4093
	// clientHeader has the visitor's address. Cloudflare's edge overwrites it.
	clientHeader = "cf-connecting-ip"
)

// Clusters and routes share these messages.
var (
	never = wrapperspb.UInt32(0)

	// refusingPods leaves out pods that refuse connections or do not answer in time. The
	// status of a response never counts, because visitors can provoke it.
	refusingPods = &clusterv3.OutlierDetection{
		SplitExternalLocalOriginErrors:         true,
		ConsecutiveLocalOriginFailure:          wrapperspb.UInt32(consecutiveFailures),
		EnforcingConsecutiveLocalOriginFailure: wrapperspb.UInt32(100),
		Interval:                               durationpb.New(ejectionInterval),
		BaseEjectionTime:                       durationpb.New(ejectionTime),
		MaxEjectionTime:                        durationpb.New(ejectionTime), // not longer each time
		MaxEjectionPercent:                     wrapperspb.UInt32(maxEjected),
		AlwaysEjectOneHost:                     boolValue(false),

		EnforcingConsecutive_5Xx:              never,
		EnforcingConsecutiveGatewayFailure:    never,
		EnforcingSuccessRate:                  never,
		EnforcingLocalOriginSuccessRate:       never,
		EnforcingFailurePercentage:            never,
		EnforcingFailurePercentageLocalOrigin: never,
	}

	clientTable = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{
		TableSize: wrapperspb.UInt64(clientTableSize),
	}}

	// hashClient selects a random pod for a request without the header.
	hashClient = []*routev3.RouteAction_HashPolicy{{PolicySpecifier: &routev3.RouteAction_HashPolicy_Header_{
		Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: clientHeader},
	}}}
)
