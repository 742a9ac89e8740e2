package integration

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// formatCondition returns a condition as "Status Reason", or "none" if it is
// not set.
func formatCondition[T ~string](conditions []metav1.Condition, kind T) string {
	c := meta.FindStatusCondition(conditions, string(kind))
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

// gatewayCondition reads the Gateway and returns one of its conditions.
func gatewayCondition(g *gatewayv1.Gateway, kind gatewayv1.GatewayConditionType) func() string {
	return func() string { return formatCondition(latest(g).Status.Conditions, kind) }
}

func programmed(g *gatewayv1.Gateway) func() string {
	return gatewayCondition(g, gatewayv1.GatewayConditionProgrammed)
}

// gatewayMessage returns the message from the Gateway's Programmed condition.
func gatewayMessage(g *gatewayv1.Gateway) func() string {
	return func() string {
		c := meta.FindStatusCondition(latest(g).Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
		if c == nil {
			return ""
		}
		return c.Message
	}
}

func listenerSetCondition(s *gatewayv1.ListenerSet, kind gatewayv1.ListenerSetConditionType) func() string {
	return func() string { return formatCondition(latest(s).Status.Conditions, kind) }
}

// routeAccepted returns the condition Accepted in a route's status entry for the
// parent, or "no entry".
func routeAccepted(r *gatewayv1.HTTPRoute, parent string) func() string {
	return func() string {
		if conditions := routeConditions(r, parent); conditions != nil {
			return formatCondition(conditions, gatewayv1.RouteConditionAccepted)
		}
		return "no entry"
	}
}

// routeConditions returns the conditions in a route's status entry for the
// parent, or nil if there is no entry.
func routeConditions(r *gatewayv1.HTTPRoute, parent string) []metav1.Condition {
	for _, entry := range latest(r).Status.Parents {
		if string(entry.ParentRef.Name) == parent {
			return entry.Conditions
		}
	}
	return nil
}

// routeControllers returns the names of the controllers with an entry in the route's
// status.
func routeControllers(r *gatewayv1.HTTPRoute) []string {
	var names []string
	for _, entry := range latest(r).Status.Parents {
		names = append(names, string(entry.ControllerName))
	}
	return names
}
