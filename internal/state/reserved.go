package state

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// ReservedAddresses returns the canonical addresses of the controller's pod and of the
// connector pods, which are the pods in the namespace that the reader knows. No backend may
// lead to them: tenants can write the EndpointSlices of their Services. A plan knows no
// pods.
func ReservedAddresses(ctx context.Context, r client.Reader, namespace string, controllerPod []netip.Addr) (map[string]bool, error) {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the connector pods: %w", err)
	}
	addresses := map[string]bool{}
	for _, ip := range controllerPod {
		addresses[ip.Unmap().String()] = true
	}
	for i := range pods.Items {
		if HasEnded(&pods.Items[i]) {
			continue
		}
		for _, ip := range pods.Items[i].Status.PodIPs {
			addresses[routing.CanonicalIP(ip.IP)] = true
		}
	}
	return addresses, nil
}

// HasEnded reports whether all the pod's containers have ended. Another pod can then
// have its addresses.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// loadReserved reads the addresses that no backend may have.
func (l Loader) loadReserved(ctx context.Context, s *gateway.Snapshot) error {
	var err error
	s.Reserved, err = ReservedAddresses(ctx, l.Reader, l.ControllerNamespace, l.ControllerPod)
	return err
}
