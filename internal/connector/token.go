package connector

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// TokenKey is the tunnel token's key in the token Secret.
const TokenKey = "token"

// TokenSecret returns the Secret with the token for the Tunnel's connectors. It has the
// same name, owner and labels as the other objects. It has no labels or annotations
// from the Gateway: annotations could make other controllers copy the Secret.
func TokenSecret(t *v1alpha1.Tunnel, token provider.Token) *corev1ac.SecretApplyConfiguration {
	return owned(Input{Tunnel: t}, corev1ac.Secret(name(t), t.Namespace)).
		WithData(map[string][]byte{TokenKey: []byte(token)})
}
