package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReconcileAnnotation on a Tunnel requests a reconcile. Each new value ends the
// controller's backoffs, and makes it read the configuration, the token and the
// connections again. The controller ignores a value with more than 1024 bytes.
const ReconcileAnnotation = "tunnelgateway.dev/reconcile"

// RotateTokenAnnotation on a Tunnel requests a token rotation. Each new value causes
// one rotation. The controller ignores a value with more than 1024 bytes.
const RotateTokenAnnotation = "tunnelgateway.dev/rotate-token"

// DataPlaneAnnotation on a GatewayClass selects the data plane of its Gateways: the value
// is a [DataPlane]. spec.dataPlane in the GatewayClass's TunnelConfiguration takes
// precedence.
const DataPlaneAnnotation = "tunnelgateway.dev/data-plane"

// AllowDeletionAnnotation on a Gateway confirms that it may be deleted although
// ListenerSets are attached, when its value is "true". Only the chart's admission policy
// reads it.
const AllowDeletionAnnotation = "tunnelgateway.dev/allow-deletion"

// PausedAnnotation on a Gateway stops all changes at Cloudflare when its value is
// "true". The controller ignores all other annotations on tenants' objects.
const PausedAnnotation = "tunnelgateway.dev/paused"

// RequestsPause reports whether a Gateway has an annotation that requests a pause. The
// GatewayClass can forbid pauses; see [PausingForbidden].
func RequestsPause(gateway metav1.Object) bool {
	return gateway.GetAnnotations()[PausedAnnotation] == "true"
}
