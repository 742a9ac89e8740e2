package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// TokenKey is the key under which the Secret of a Gateway holds the token of
// its tunnel.
const TokenKey = "token"

// tokenInterval is how often Cloudflare is asked for a token that nothing seems
// to be wrong with.
const tokenInterval = 24 * time.Hour

// token is what is known of the Secret that holds the tunnel's token.
type token struct {
	// hash identifies the token that the Secret holds; empty until it is known.
	hash string
	// version is the Secret's resourceVersion at which it was found right.
	version string
	// suspect: the token may have been replaced at Cloudflare.
	suspect bool
	// askAt is when Cloudflare is asked for the token without any suspicion:
	// running connectors do not mind that it was replaced, new ones do.
	askAt time.Time
	turn  awaited
	fault fault
}

// keepToken makes sure that the Gateway's Secret holds the token of its tunnel,
// and returns when to come back. The hostnames that are served do not depend on
// it, so a failure is told by an event and tried again by itself.
func (ts *tunnels) keepToken(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) time.Duration {
	if wait := max(t.token.fault.wait(ts.now(), ""), t.token.turn.wait(ts.now(), "")); wait > 0 {
		return wait
	}
	err := ts.writeToken(ctx, t, g)
	if wait, turn := itsTurn(err); turn {
		t.token.turn.until = ts.now().Add(wait)
		return wait
	}
	if err == nil || ctx.Err() != nil {
		t.token.fault = fault{}
		return ts.driftInterval
	}
	_, wait := ts.failed(ctx, t, g, err, &t.token.fault, attempt{
		outcome: "The tunnel's token is not in its Secret.", event: "TokenFailed", action: "Connect",
		log: "the tunnel's token is not in its Secret",
	})
	return wait
}

// writeToken reads the Secret when it is not the one that was found right, and
// the token from the API only when the Secret does not have it.
func (ts *tunnels) writeToken(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	t.token.suspect = t.token.suspect || !t.token.askAt.IsZero() && !ts.now().Before(t.token.askAt)
	if !t.token.suspect && ts.tokenStands(ctx, t, g) {
		return nil
	}
	secret, err := ts.readToken(ctx, g)
	if err != nil {
		return err
	}
	held := provider.Token(secret.Data[TokenKey])
	if t.token.suspect || !isFor(held, t.record) {
		if held, err = ts.askToken(ctx, t, g); err != nil {
			return err
		}
	} else if t.token.askAt.IsZero() {
		t.token.askAt = ts.now().Add(tokenInterval/2 + rand.N(tokenInterval/2)) // #nosec G404 -- not for security
	}
	return ts.applyToken(ctx, t, secret, tokenSecret(g, held))
}

// tokenStands reports whether the Secret is as it was when it was found right.
func (ts *tunnels) tokenStands(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) bool {
	cached := secretMetadata(tokenSecretKey(g))
	err := ts.client.Get(ctx, tokenSecretKey(g), cached)
	return err == nil && cached.ResourceVersion == t.token.version &&
		contains(cached.Labels, tokenLabels(g)) && contains(cached.Annotations, tokenAnnotations(g))
}

// readToken returns the Gateway's Secret, an empty one when there is none.
func (ts *tunnels) readToken(ctx context.Context, g *gatewayv1.Gateway) (*corev1.Secret, error) {
	key, secret := tokenSecretKey(g), &corev1.Secret{}
	err := ts.live.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return &corev1.Secret{}, nil
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	case !metav1.IsControlledBy(secret, g):
		return nil, &secretTakenError{secret: key.String()}
	}
	return secret, nil
}

// askToken asks Cloudflare for the token: without haste when there is one that
// may be as good, and never for that of a tunnel that is not the Gateway's,
// whatever its record says.
func (ts *tunnels) askToken(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) (provider.Token, error) {
	if !t.isWanted() {
		return "", &otherTunnelError{tunnel: t.record.Tunnel, wanted: cmp.Or(string(t.settings.ExistingTunnel()), ts.tunnelName(t, g))}
	}
	if err := ts.prove(ctx, t, g); err != nil {
		return "", err
	}
	if t.token.suspect {
		ctx = provider.WithPriority(ctx, provider.PriorityDrift)
	}
	held, err := t.account.provider.Token(ctx, t.record.Tunnel)
	if err == nil {
		t.token.askAt = ts.now().Add(tokenInterval)
	}
	return held, err
}

// isFor reports whether the token is one of the recorded tunnel.
func isFor(held provider.Token, record state.Record) bool {
	account, tunnel, err := held.Credentials()
	return err == nil && account == record.Account && tunnel == record.Tunnel
}

// applyToken writes the Secret unless it is as wanted.
func (ts *tunnels) applyToken(ctx context.Context, t *tunnel, current, wanted *corev1.Secret) error {
	if current.ResourceVersion == "" {
		if err := ts.client.Create(ctx, wanted); err != nil {
			return fmt.Errorf("creating Secret %s: %w", client.ObjectKeyFromObject(wanted), err)
		}
		current = wanted
	} else if string(current.Data[TokenKey]) != string(wanted.Data[TokenKey]) || !contains(current.Labels, wanted.Labels) || !contains(current.Annotations, wanted.Annotations) {
		merged := current.DeepCopy()
		merged.Data = wanted.Data
		for name, value := range wanted.Labels {
			metav1.SetMetaDataLabel(&merged.ObjectMeta, name, value)
		}
		for name, value := range wanted.Annotations {
			metav1.SetMetaDataAnnotation(&merged.ObjectMeta, name, value)
		}
		if err := ts.client.Update(ctx, merged); err != nil {
			return fmt.Errorf("updating Secret %s: %w", client.ObjectKeyFromObject(wanted), err)
		}
		current = merged
		log.FromContext(ctx).Info("wrote the tunnel's new token", "secret", wanted.Name)
	}
	sum := sha256.Sum256(wanted.Data[TokenKey])
	t.token.hash = hex.EncodeToString(sum[:8])
	t.token.version, t.token.suspect = current.ResourceVersion, false
	return nil
}

func contains(all, some map[string]string) bool {
	for name, value := range some {
		if got, ok := all[name]; !ok || got != value {
			return false
		}
	}
	return true
}

const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "tunnel-gateway"
)

// tokenSecret is the Secret of a Gateway: owned by it, and with the labels and
// annotations that its spec.infrastructure asks for.
func tokenSecret(g *gatewayv1.Gateway, value provider.Token) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: tokenSecretName(g.Name), Labels: tokenLabels(g), Annotations: tokenAnnotations(g),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: gatewayv1.GroupVersion.String(), Kind: gateway.KindGateway, Name: g.Name, UID: g.UID,
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
			}},
		},
		Data: map[string][]byte{TokenKey: []byte(value)},
	}
}

func tokenAnnotations(g *gatewayv1.Gateway) map[string]string {
	annotations := map[string]string{}
	if g.Spec.Infrastructure != nil {
		for name, annotation := range g.Spec.Infrastructure.Annotations {
			annotations[string(name)] = string(annotation)
		}
	}
	return annotations
}

func tokenLabels(g *gatewayv1.Gateway) map[string]string {
	labels := map[string]string{}
	if g.Spec.Infrastructure != nil {
		for name, label := range g.Spec.Infrastructure.Labels {
			labels[string(name)] = string(label)
		}
	}
	maps.Copy(labels, map[string]string{managedByLabel: managedBy, gatewayv1.GatewayNameLabelKey: connector.Shorten(g.Name, 63, g.Name)})
	return labels
}

const tokenSuffix = "-tunnel-token"

// tokenSecretName is the name of the Secret of a Gateway.
func tokenSecretName(gatewayName string) string {
	const longest = 253
	return connector.Shorten(gatewayName, longest-len(tokenSuffix), gatewayName) + tokenSuffix
}

func tokenSecretKey(g *gatewayv1.Gateway) client.ObjectKey {
	return client.ObjectKey{Namespace: g.Namespace, Name: tokenSecretName(g.Name)}
}

// deleteToken deletes the Gateway's Secret.
func (ts *tunnels) deleteToken(ctx context.Context, g *gatewayv1.Gateway) error {
	secret := secretMetadata(tokenSecretKey(g))
	if err := ts.live.Get(ctx, tokenSecretKey(g), secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(secret, g) {
		return nil
	}
	err := ts.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
	return client.IgnoreNotFound(err)
}

// secretTakenError: a Secret of the name is there and is not the Gateway's.
type secretTakenError struct{ secret string }

func (e *secretTakenError) Error() string {
	return fmt.Sprintf("Secret %s exists and does not belong to the Gateway; delete or rename it", e.secret)
}
