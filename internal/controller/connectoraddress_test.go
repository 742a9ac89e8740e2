package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A connector pod that gets the address of a backend removes it from all Services, in one
// publication.
func TestConnectorAddressesLeaveAllServices(t *testing.T) {
	h := newAssignmentHarness(t)
	h.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "connector"},
		Status:     corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.244.0.1"}}},
	})
	found := h.envoys.fromConnectorPod(t.Context(), nil)
	if len(found) != 1 || found[0].gateway != h.key.NamespacedName {
		t.Fatalf("the pod affects %v, want %v once", found, h.key)
	}
	if err := h.envoys.publishEndpoints(t.Context(), found[0]); err != nil {
		t.Fatal(err)
	}
	if len(h.xds.endpoints) != 1 || len(h.xds.endpoints[0]) != 2 {
		t.Fatalf("published %v, want both Services once", h.xds.endpoints)
	}
	for cluster, assignment := range h.xds.endpoints[0] {
		if len(assignment.Endpoints) > 0 {
			t.Errorf("cluster %s has the endpoints %v, want none", cluster, assignment.Endpoints)
		}
	}
}
