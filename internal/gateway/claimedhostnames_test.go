package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A route has a warning for an exact hostname exactly when its requests belong to
// listeners that do not admit the route, and neither a route condition reports it nor
// another Gateway may serve the route.
func TestClaimedHostnamesAreTheHostnamesOfOtherListeners(t *testing.T) {
	warned := 0
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		result := gateway.Build(s, randomOptions)
		messages := map[*gateway.Route]string{}
		for i := range result.ClaimedHostnames {
			c := &result.ClaimedHostnames[i]
			messages[c.Route] = c.Message()
			wantNoOtherSet(t, s, c)
		}
		warned += len(messages)
		for _, route := range result.Routes {
			if isLeftOut(route) {
				continue // the messages depend on permissions, which other properties check
			}
			for _, hostname := range exactHostnames(route) {
				claimants := result.Trace(routing.Request{Host: hostname, Path: "/"}).Claimants
				want := result.Table != nil && len(claimants) > 0 && !isAttached(route, claimants) && isAttached(route, result.Listeners) && !isRefused(route) && !hasOtherParent(s, route)
				if got := strings.Contains(messages[route], fmt.Sprintf("%q", hostname)); got != want {
					t.Errorf("%s %s: warning for %s: %t, want %t: %s", route.Kind, route.NamespacedName, hostname, got, want, messages[route])
				}
			}
		}
	})
	if warned == 0 {
		t.Errorf("no random cluster has a claimed hostname")
	}
}

func exactHostnames(route *gateway.Route) []string {
	var exact []string
	for _, hostname := range route.Hostnames {
		if !strings.HasPrefix(string(hostname), "*") && !slices.Contains(exact, string(hostname)) {
			exact = append(exact, string(hostname))
		}
	}
	// The messages list five hostnames for each claimant.
	return exact[:min(5, len(exact))]
}

// isLeftOut reports whether the route is not served under every hostname.
func isLeftOut(route *gateway.Route) bool {
	return slices.ContainsFunc(route.Parents, func(p gateway.Parent) bool { return route.DescribeLeftOut(&p) != "" })
}

// hasOtherParent reports whether the route names a Gateway or ListenerSet outside the
// snapshot's Gateway, which may serve its hostnames.
func hasOtherParent(s *gateway.Snapshot, route *gateway.Route) bool {
	known := map[gateway.Owner]bool{{Kind: gateway.KindGateway, NamespacedName: client.ObjectKeyFromObject(s.Gateway)}: true}
	for _, set := range s.ListenerSets {
		known[gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(set)}] = true
	}
	isOther := func(ref gatewayv1.ParentReference) bool {
		owner, ok := gateway.OwnerOf(ref, route.Namespace)
		return ok && !known[owner]
	}
	for _, r := range s.HTTPRoutes {
		if route.Kind == gateway.KindHTTPRoute && client.ObjectKeyFromObject(r) == route.NamespacedName {
			return slices.ContainsFunc(r.Spec.ParentRefs, isOther)
		}
	}
	for _, r := range s.GRPCRoutes {
		if route.Kind == gateway.KindGRPCRoute && client.ObjectKeyFromObject(r) == route.NamespacedName {
			return slices.ContainsFunc(r.Spec.ParentRefs, isOther)
		}
	}
	return false
}

// isRefused reports whether the route exceeds a limit.
func isRefused(route *gateway.Route) bool {
	return slices.ContainsFunc(route.Parents, func(p gateway.Parent) bool {
		return p.Rejected != nil && len(p.Listeners) > 0 && p.Rejected.Reason == conditions.ReasonLimitExceeded
	})
}

// wantNoOtherSet checks that the message for the route owner names no ListenerSet in
// another namespace, except the parents of the route.
func wantNoOtherSet(t *testing.T, s *gateway.Snapshot, c *gateway.ClaimedHostnames) {
	t.Helper()
	message := c.RouteMessage()
	for _, set := range s.ListenerSets {
		isParent := slices.ContainsFunc(c.Route.Parents, func(p gateway.Parent) bool {
			return p.Owner.Kind == gateway.KindListenerSet && p.Owner.Namespace == set.Namespace && p.Owner.Name == set.Name
		})
		if set.Namespace != c.Route.Namespace && !isParent && strings.Contains(message, "ListenerSet "+set.Namespace+"/"+set.Name) {
			t.Errorf("the message for %s reveals ListenerSet %s/%s: %s", c.Route.NamespacedName, set.Namespace, set.Name, message)
		}
	}
}
