package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
)

// One route with 113 expensive expressions costs a connector 2.5 GB and every request
// of every tenant seconds.
func TestExpensiveExpressionsAreNotServed(t *testing.T) {
	s := teamsSnapshot(2)
	route := s.HTTPRoutes[0]
	route.Spec.Rules[0].Matches = nil
	for i := range 113 {
		route.Spec.Rules[0].Matches = append(route.Spec.Rules[0].Matches, gatewayv1.HTTPRouteMatch{
			Path: pathMatch(gatewayv1.PathMatchRegularExpression, fmt.Sprintf("/%d(.?){999}", i)),
		})
	}
	for _, rule := range ingress.Rules(gateway.Build(s, options).Table) {
		if strings.Contains(rule.Path, "999") {
			t.Errorf("the expression %s is served", rule.Path)
		}
	}
}

// One HTTPRoute with 128 matches, attached to 32 ListenerSets of 64 listeners, has
// 262,144 rules.
func TestOneRouteCannotFillATunnel(t *testing.T) {
	s := teamsSnapshot(2)
	setLimits(s, v1alpha1.Limits{ListenersPerNamespace: new(int32(100000))})
	attachToManyListeners(s)
	if rules := len(ingress.Rules(gateway.Build(s, options).Table)); rules > 1001 {
		t.Errorf("the tunnel has %d rules", rules)
	}
}

func attachToManyListeners(s *gateway.Snapshot) {
	s.Namespaces["attacker"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attacker"}}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "attacker", Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(dayOne.Add(time.Hour))}
	}
	route := &gatewayv1.HTTPRoute{ObjectMeta: meta("wide")}
	for i := range 128 {
		route.Spec.Rules = append(route.Spec.Rules, gatewayv1.HTTPRouteRule{Matches: []gatewayv1.HTTPRouteMatch{{
			Path: pathMatch(gatewayv1.PathMatchExact, fmt.Sprintf("/%d", i)),
		}}})
	}
	for i := range 32 {
		name := fmt.Sprintf("set-%d", i)
		set := &gatewayv1.ListenerSet{ObjectMeta: meta(name)}
		set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Name: "shared", Namespace: new(gatewayv1.Namespace("infra"))}
		for j := range 64 {
			set.Spec.Listeners = append(set.Spec.Listeners, teamListener(fmt.Sprintf("l%d", j), fmt.Sprintf("h%d-%d.attacker.example.com", i, j)))
		}
		s.ListenerSets = append(s.ListenerSets, set)
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, gatewayv1.ParentReference{
			Kind: new(gatewayv1.Kind(gateway.KindListenerSet)), Name: gatewayv1.ObjectName(name),
		})
	}
	s.HTTPRoutes = append(s.HTTPRoutes, route)
}
