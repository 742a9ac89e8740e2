package connector

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// IdentitySecretName names the Secret with the certificate by which the Tunnel's Envoys
// identify themselves to the controller.
func IdentitySecretName(t *v1alpha1.Tunnel) string { return name(t) + "-xds" }

// IdentitySecret returns the Secret with the certificate for the Tunnel's Envoys. It
// has the same owner and labels as the other objects. Like the token Secret, it has no
// labels or annotations from the Gateway.
func IdentitySecret(t *v1alpha1.Tunnel, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return owned(Input{Tunnel: t}, corev1ac.Secret(IdentitySecretName(t), t.Namespace)).WithData(data)
}
