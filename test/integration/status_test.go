package integration

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// formatCondition returns a condition as "Status Reason", or "none" if it is not set.
func say[T ~string](conditions []metav1.Condition, kind T) string {
	c := meta.FindStatusCondition(conditions, string(kind))
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

// gatewayCondition reads the Gateway and returns one of its conditions.
func gatewaySays(g *gatewayv1.Gateway, kind gatewayv1.GatewayConditionType) func() string {
	return func() string { return say(fresh(g).Status.Conditions, kind) }
}

func programmed(g *gatewayv1.Gateway) func() string {
	return gatewaySays(g, gatewayv1.GatewayConditionProgrammed)
}

// gatewayMessage returns the message of the Gateway's Programmed condition.
func gatewayMessage(g *gatewayv1.Gateway) func() string {
	return func() string {
		c := meta.FindStatusCondition(fresh(g).Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
		if c == nil {
			return ""
		}
		return c.Message
	}
}

func setSays(s *gatewayv1.ListenerSet, kind gatewayv1.ListenerSetConditionType) func() string {
	return func() string { return say(fresh(s).Status.Conditions, kind) }
}

// routeAccepted returns the condition Accepted in a route's status entry for the
// parent, or "no entry".
func routeSays(r *gatewayv1.HTTPRoute, parent string) func() string {
	return func() string {
		if conditions := conditionsFrom(r, parent); conditions != nil {
			return say(conditions, gatewayv1.RouteConditionAccepted)
		}
		return "no entry"
	}
}

// routeConditions returns the conditions in a route's status entry for the
// parent, or nil if there is no entry.
func conditionsFrom(r *gatewayv1.HTTPRoute, parent string) []metav1.Condition {
	for _, entry := range fresh(r).Status.Parents {
		if string(entry.ParentRef.Name) == parent {
			return entry.Conditions
		}
	}
	return nil
}

// routeControllers returns the names of the controllers with an entry in the route's status.
func controllers(r *gatewayv1.HTTPRoute) []string {
	var names []string
	for _, entry := range fresh(r).Status.Parents {
		names = append(names, string(entry.ControllerName))
	}
	return names
}
