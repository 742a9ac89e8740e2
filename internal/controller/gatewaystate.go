package controller

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// gatewayReader determines from the API server whether a Gateway exists and belongs to
// this controller. That is unknown unless the API server itself confirms it: a response
// from a proxy, a missing permission or a kind that is not served must not cause a tunnel
// to be deleted.
type gatewayReader struct {
	live           client.Reader
	controllerName gatewayv1.GatewayController
	// inScope reports whether the controller is configured to work in the namespace,
	// which may not exist.
	inScope func(namespace string) bool
}

// read returns the Gateway's current state in the API server.
func (r gatewayReader) read(ctx context.Context, name types.NamespacedName) tunnel.Gateway {
	if !r.inScope(name.Namespace) {
		return tunnel.Gateway{State: tunnel.GatewayUnknown}
	}
	gateway := &gatewayv1.Gateway{}
	err := r.live.Get(ctx, name, gateway)
	switch {
	case err == nil:
		return r.describe(ctx, gateway)
	case isNotFound(err, name.Name), r.namespaceGone(ctx, name.Namespace):
		return tunnel.Gateway{State: r.goneOrUnknown(ctx)}
	}
	log.FromContext(ctx).Info("cannot determine whether the Gateway exists; keeping its tunnel", "cause", err.Error())
	return tunnel.Gateway{State: tunnel.GatewayUnknown}
}

// describe returns the state for a Gateway that was read from the API server.
func (r gatewayReader) describe(ctx context.Context, gateway *gatewayv1.Gateway) tunnel.Gateway {
	found := tunnel.Gateway{State: tunnel.GatewayExists, UID: gateway.UID, Paused: v1alpha1.RequestsPause(gateway)}
	if !gateway.DeletionTimestamp.IsZero() {
		found.State = r.goneOrUnknown(ctx)
		return found
	}
	class := &gatewayv1.GatewayClass{}
	switch err := r.live.Get(ctx, types.NamespacedName{Name: string(gateway.Spec.GatewayClassName)}, class); {
	case err != nil:
		found.State = tunnel.GatewayUnknown
	case class.Spec.ControllerName != r.controllerName:
		found.State = tunnel.GatewayNotManaged
	}
	return found
}

// namespaceGone reports whether the namespace does not exist.
func (r gatewayReader) namespaceGone(ctx context.Context, namespace string) bool {
	return isNotFound(r.live.Get(ctx, types.NamespacedName{Name: namespace}, &corev1.Namespace{}), namespace)
}

// goneOrUnknown returns the state for a Gateway that does not exist or is being
// deleted. The state is unknown if the Gateway CRD does not exist or is being deleted,
// because Kubernetes deletes all Gateways with the CRD.
func (r gatewayReader) goneOrUnknown(ctx context.Context) tunnel.GatewayState {
	crds := kinds.CustomResourceDefinition.NewMetadataList()
	err := r.live.List(ctx, crds, client.MatchingFields{metav1.ObjectNameField: kinds.Gateway.Resource().String()})
	if err != nil || len(crds.Items) == 0 || !crds.Items[0].DeletionTimestamp.IsZero() {
		return tunnel.GatewayUnknown
	}
	return tunnel.GatewayGone
}

// isNotFound reports whether the API server itself returned that the object with the
// name does not exist. It returns false for a 404 response from a proxy or for a kind
// that is not served.
func isNotFound(err error, name string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name
}
