package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReconcileAnnotation is the annotation of a Tunnel that requests a reconcile. Each
// new value ends the controller's backoffs, and makes it read the configuration, the
// token and the connections again. The controller ignores a value with more than 1024
// bytes.
const ReconcileAnnotation = "tunnelgateway.dev/reconcile"

// RotateTokenAnnotation is the annotation of a Tunnel that requests a rotation of
// its token. Each new value causes one rotation. The controller ignores a value with
// more than 1024 bytes.
const RotateTokenAnnotation = "tunnelgateway.dev/rotate-token"

// PausedAnnotation is the annotation of a Gateway that stops all changes at
// Cloudflare when its value is "true". The controller ignores all other
// annotations of tenants' objects.
const PausedAnnotation = "tunnelgateway.dev/paused"

// RequestsPause reports whether the annotations of a Gateway request a pause. Its class can
// forbid it; see [PausingForbidden].
func RequestsPause(gateway metav1.Object) bool {
	return gateway.GetAnnotations()[PausedAnnotation] == "true"
}
