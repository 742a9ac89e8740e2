package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// weightPolicyValues enables the policy in the namespaces with the sample's label.
const weightPolicyValues = "weightPolicy.enabled=true,weightPolicy.namespaceSelector.matchLabels.data-plane=ingress-rules"

// ingressRulesLabels are the labels on the namespaces whose routes the policy checks.
var ingressRulesLabels = map[string]string{"data-plane": "ingress-rules"}

// weightedRoute returns an HTTPRoute whose last rule has backends with the weights. A
// negative weight is not set, and defaults to 1.
func weightedRoute(namespace, name string, weights ...int32) *gatewayv1.HTTPRoute {
	backends := make([]gatewayv1.HTTPBackendRef, len(weights))
	for i, weight := range weights {
		backends[i].Name, backends[i].Port = "web", new(gatewayv1.PortNumber(80))
		if weight >= 0 {
			backends[i].Weight = &weight
		}
	}
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{}, {BackendRefs: backends}}
	return route
}

func (c *policyCluster) rejectsSeveralWeights(t *testing.T) {
	const refused = "ingress rules would return 500 for its requests"
	bound, earlier := newNamespace("bound"), weightedRoute("bound", "earlier", 90, 10)
	c.create(t, newNamespace("free"), bound, earlier)
	bound.Labels = ingressRulesLabels
	if err := c.kube.Update(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	dryRun := client.NewDryRunClient(c.kube)
	eventually(t, "the policy applies to the namespace", func() error {
		return wantRefusal(dryRun.Create(t.Context(), weightedRoute("bound", "probe", 90, 10)), refused)
	})
	for _, test := range []struct {
		namespace string
		weights   []int32
		want      string
	}{
		{"bound", []int32{90, 10}, refused}, {"bound", []int32{1, 0, 1}, refused}, {"bound", []int32{-1, -1}, refused}, {"bound", []int32{-1, 5}, refused},
		{"bound", []int32{100, 0}, ""}, {"bound", []int32{0, 100}, ""}, {"bound", []int32{0, 0}, ""}, {"bound", []int32{-1}, ""}, {"bound", nil, ""},
		{"free", []int32{90, 10}, ""},
	} {
		err := dryRun.Create(t.Context(), weightedRoute(test.namespace, "new", test.weights...))
		if err := wantRefusal(err, test.want); err != nil {
			t.Errorf("an HTTPRoute with the weights %v in namespace %s: %v", test.weights, test.namespace, err)
		}
	}
	calls := &gatewayv1.GRPCRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "bound", Name: "calls"}}
	calls.Spec.Rules = []gatewayv1.GRPCRouteRule{{}}
	for _, backend := range earlier.Spec.Rules[1].BackendRefs {
		calls.Spec.Rules[0].BackendRefs = append(calls.Spec.Rules[0].BackendRefs, gatewayv1.GRPCBackendRef{BackendRef: backend.BackendRef})
	}
	if err := wantRefusal(dryRun.Create(t.Context(), calls), refused); err != nil {
		t.Errorf("a GRPCRoute: %v", err)
	}
	earlier.Labels = map[string]string{"tier": "web"}
	if err := c.kube.Update(t.Context(), earlier); err != nil {
		t.Errorf("a label of a route from before the policy: %v", err)
	}
	earlier.Spec.Rules[1].BackendRefs[0].Weight = new(int32(80))
	if err := wantRefusal(c.kube.Update(t.Context(), earlier), refused); err != nil {
		t.Errorf("other weights of a route from before the policy: %v", err)
	}
}

// wantRefusal returns an error unless err is a rejection with the message, or nil if the
// message is empty.
func wantRefusal(err error, message string) error {
	switch {
	case message == "":
		return err
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), message):
		return nil
	default:
		return fmt.Errorf("got error %w, want a rejection with %q", err, message)
	}
}

// TestTheSampleIsThePolicyOfTheChart compares the sample with the policy that the chart
// creates for the same namespaces.
func TestTheSampleIsThePolicyOfTheChart(t *testing.T) {
	sample := objects(t, readPage(t, configDir+"/samples/canary/00-weight-policy.yaml"))
	rendered := objects(t, render(t, "--set", weightPolicyValues))
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		want, got := childMap(onlyObject(t, rendered, kind), "spec"), childMap(onlyObject(t, sample, kind), "spec")
		delete(want, "policyName")
		delete(got, "policyName")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the sample has another %s than the chart:\n%s", kind, diff)
		}
	}
}
