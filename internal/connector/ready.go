package connector

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TypeConnectorsReady is the type of the condition on a Gateway that says
// whether its connectors are ready.
const TypeConnectorsReady = "tunnelgateway.dev/ConnectorsReady"

// Ready says from a Deployment, as it was read, how ready the connectors are.
func Ready(d *appsv1.Deployment) (status metav1.ConditionStatus, reason, message string) {
	if d == nil {
		return metav1.ConditionFalse, "Pending", "The connectors are not there yet."
	}
	return metav1.ConditionTrue, "Ready", ""
}
