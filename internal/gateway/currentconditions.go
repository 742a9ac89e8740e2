package gateway

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ConditionsByListener returns the conditions in one owner's listener statuses, by
// listener name. A Gateway listener and a ListenerSet entry have the same fields in their
// status.
func ConditionsByListener[S gatewayv1.ListenerStatus | gatewayv1.ListenerEntryStatus](statuses []S) map[gatewayv1.SectionName][]metav1.Condition {
	conditions := make(map[gatewayv1.SectionName][]metav1.Condition, len(statuses))
	for i := range statuses {
		status := gatewayv1.ListenerStatus(statuses[i])
		conditions[status.Name] = status.Conditions
	}
	return conditions
}
