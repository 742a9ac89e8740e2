package envoy

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

const (
	// retriesOfUnsent are the failures before a request reaches the backend.
	retriesOfUnsent = "connect-failure,refused-stream"
	// retriesByCode are all failures of a request whose rule has status codes. The backend may
	// have processed such a request. A timeout of one attempt counts as a reset.
	retriesByCode = "retriable-status-codes,connect-failure,refused-stream,reset,reset-before-request"
	// maxAttempts is the largest number of retries that a rule can ask for.
	maxAttempts = 10
	// hostSelections is how often Envoy selects an endpoint for a retry before it uses the
	// previous endpoint again.
	hostSelections = 5
	// minErrorCode and maxErrorCode limit the status codes, like the CRD.
	minErrorCode, maxErrorCode = 400, 599
)

// Most routes share the first two messages, and all clusters the last one.
var (
	// retryOnce repeats a request once that did not reach the backend. It never repeats a
	// request after a reset, because the backend may have processed it.
	retryOnce = &routev3.RetryPolicy{RetryOn: retriesOfUnsent, NumRetries: wrapperspb.UInt32(1)}
	// retryElsewhere is like retryOnce and uses another endpoint than the previous
	// attempt, if there is one. It takes 1.2 KiB in Envoy for each route.
	retryElsewhere = &routev3.RetryPolicy{
		RetryOn: retryOnce.RetryOn, NumRetries: retryOnce.NumRetries, HostSelectionRetryMaxAttempts: hostSelections,
		RetryHostPredicate: []*routev3.RetryPolicy_RetryHostPredicate{{
			Name:       "envoy.retry_host_predicates.previous_hosts",
			ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: pack(&previoushostsv3.PreviousHostsPredicate{})},
		}},
	}
	// retryBudget limits the concurrent retries of a Service, so that retries do not overload
	// its pods when most requests fail.
	retryBudget = &clusterv3.CircuitBreakers_Thresholds_RetryBudget{
		BudgetPercent: &typev3.Percent{Value: 20}, MinRetryConcurrency: wrapperspb.UInt32(10),
	}
)

// addRetry adds the values of a retry that Envoy cannot express, and the values that the CRD
// rejects.
func (p *parts) addRetry(r *gatewayv1.HTTPRouteRetry) {
	if r == nil {
		return
	}
	if r.Backoff != nil {
		p.add(fmt.Sprintf("retry.backoff: retries can begin before %s have passed", *r.Backoff))
	}
	if n := ptr.Deref(r.Attempts, 1); n < 1 || n > maxAttempts {
		p.add(fmt.Sprintf("retry.attempts: %d is not between 1 and %d", n, maxAttempts))
	}
	for _, code := range r.Codes {
		if code < minErrorCode || code > maxErrorCode {
			p.add(fmt.Sprintf("retry.codes: %d is not between %d and %d", code, minErrorCode, maxErrorCode))
		}
	}
}

// priority returns the priority of requests. The clusters have a retry budget for the high
// priority only: other routes repeat only requests that did not reach the backend.
func priority(r *routing.Retry) corev3.RoutingPriority {
	if r == nil {
		return corev3.RoutingPriority_DEFAULT
	}
	return corev3.RoutingPriority_HIGH
}

// retryPolicy returns the policy for an entry. A retry without status codes repeats only
// requests that did not reach the backend.
func (r *renderer) retryPolicy(e *routing.Entry) *routev3.RetryPolicy {
	policy := retryOnce
	if r.hasPods(e) {
		policy = retryElsewhere
	}
	retry := e.Action.Forward.Retry
	if retry == nil {
		return policy
	}
	policy = proto.CloneOf(policy)
	policy.NumRetries = wrapperspb.UInt32(uint32(retry.Attempts)) //nolint:gosec // 1 to maxAttempts
	if len(retry.Codes) > 0 {
		policy.RetryOn = retriesByCode
		for _, code := range retry.Codes {
			policy.RetriableStatusCodes = append(policy.RetriableStatusCodes, uint32(code)) //nolint:gosec // an HTTP status
		}
	}
	return policy
}

// hasPods reports whether a backend of the entry has pods as endpoints. A Service with an
// address is one endpoint for Envoy, so that its retries cannot use another endpoint.
func (r *renderer) hasPods(e *routing.Entry) bool {
	backends := e.Action.Forward.Backends
	for i := range backends {
		if b := &backends[i]; b.Status == 0 && r.clusters.hasPods(e, b.Backend) {
			return true
		}
	}
	return false
}

func withTimeout(p *routev3.RetryPolicy, t *routing.Timeouts) *routev3.RetryPolicy {
	if t.Backend == nil || *t.Backend == 0 {
		return p
	}
	p = proto.CloneOf(p)
	p.PerTryTimeout = durationpb.New(*t.Backend)
	return p
}
