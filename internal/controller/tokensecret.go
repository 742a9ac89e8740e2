package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// tokenSecrets reads and writes the Secrets that contain tunnel tokens for connectors.
// The controller watches only Secret metadata and reads their data one by one.
type tokenSecrets struct {
	client   client.Client
	metadata client.Reader // the cache
	live     client.Reader
}

// tokenRead is what was last read from a token Secret for a tunnel.
type tokenRead struct {
	resourceVersion, tunnelID string
	secret                    tunnel.TokenSecret
}

// check returns the state of the Tunnel's token Secret. It reads the data only if the
// Secret or the tunnel ID has changed since the last read.
func (t tokenSecrets) check(ctx context.Context, object *v1alpha1.Tunnel, last *tokenRead) tunnel.TokenSecret {
	key := connectorKey(object)
	cached := secrets.Metadata(key)
	err := t.metadata.Get(ctx, key, cached)
	if err == nil && cached.ResourceVersion == last.resourceVersion && object.Status.TunnelID == last.tunnelID {
		return last.secret
	}
	secret := &corev1.Secret{}
	switch err := t.live.Get(ctx, key, secret); {
	case isNotFound(err, key.Name):
		return tunnel.TokenSecret{State: tunnel.TokenMissing}
	case err != nil:
		return tunnel.TokenSecret{State: tunnel.TokenUnknown}
	case !connector.IsManagedBy(secret, object):
		return tunnel.TokenSecret{State: tunnel.TokenNameConflict}
	}
	result := tunnel.TokenSecret{State: tunnel.TokenMissing}
	token := provider.Token(secret.Data[connector.TokenKey])
	if account, id, err := token.Credentials(); err == nil && account == object.Spec.AccountID && string(id) == object.Status.TunnelID {
		result = tunnel.TokenSecret{State: tunnel.TokenPresent, Version: tokenVersion(token)}
	}
	*last = tokenRead{resourceVersion: secret.ResourceVersion, tunnelID: object.Status.TunnelID, secret: result}
	return result
}

// tokenVersion returns a hash that identifies a token without disclosing it.
func tokenVersion(token provider.Token) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}

// write applies the token Secret, unless another owner's Secret has its name. It
// forgets the last read: the cache may still contain the version from before the write.
func (t tokenSecrets) write(ctx context.Context, object *v1alpha1.Tunnel, desired *corev1ac.SecretApplyConfiguration, last *tokenRead) error {
	*last = tokenRead{}
	current, key := &corev1.Secret{}, connectorKey(object)
	err := t.live.Get(ctx, key, current)
	switch {
	case err != nil && !isNotFound(err, key.Name):
		return fmt.Errorf("read Secret %s: %w", key, err)
	case err == nil && !connector.IsManagedBy(current, object):
		return tunnel.ObjectTaken(object, "Secret", key)
	}
	if err := t.client.Apply(ctx, desired, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply Secret %s: %w", key, err)
	}
	return nil
}
