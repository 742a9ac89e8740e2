// Package credentials says in which Cloudflare account the tunnel of a Gateway
// is, and where the API token for that account comes from. The controller and
// plan follow the same rule; what either does with a token is its own business.
package credentials

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// Default is the Cloudflare account in which tunnels are, and the API token for
// it, unless the TunnelConfiguration of a class names others.
type Default struct {
	Account string
	// Token is the API token, unless Secret says where to find it.
	Token string
	// Secret names the Secret that holds the API token under the key
	// [v1alpha1.DefaultSecretKey].
	Secret types.NamespacedName
}

// Source is where an account and its API token come from. Equal sources are the
// same account with the same token, as long as the Secret does not change.
type Source struct {
	Account string
	Token   string // when it is in no Secret
	Secret  types.NamespacedName
	Key     string // of the Secret
}

// ForSettings returns where the account of a Gateway comes from. Nil settings count as
// those of a class without parameters.
func (d Default) ForSettings(s *settings.Settings) Source {
	from := Source{Account: d.Account, Token: d.Token, Secret: d.Secret, Key: v1alpha1.DefaultSecretKey}
	if s == nil || s.Spec.Account == nil {
		return from
	}
	own := s.Spec.Account
	from.Account = ptr.Deref(own.AccountID, from.Account)
	if ref := own.APITokenSecretRef; ref != nil {
		from.Token, from.Key = "", ptr.Deref(ref.Key, v1alpha1.DefaultSecretKey)
		from.Secret = types.NamespacedName{Namespace: s.AccountNamespace, Name: ref.Name}
	}
	return from
}

// ForTunnel returns where the API token of a Tunnel in that namespace comes from, and
// false when there is none for its account: a Tunnel without credentials of its
// own uses the default token, which is for the default account only.
func (d Default) ForTunnel(spec v1alpha1.TunnelSpec, namespace string) (Source, bool) {
	if ref := spec.Credentials; ref != nil {
		secret := types.NamespacedName{Namespace: namespace, Name: ref.Name}
		return Source{Account: spec.AccountID, Secret: secret, Key: ptr.Deref(ref.Key, v1alpha1.DefaultSecretKey)}, true
	}
	own := Source{Account: d.Account, Token: d.Token, Secret: d.Secret, Key: v1alpha1.DefaultSecretKey}
	return own, spec.AccountID == d.Account
}

// SecretReference returns what a Tunnel's spec says of the source, or nil for the
// default token.
func (d Default) SecretReference(s *settings.Settings) *v1alpha1.SecretKeyReference {
	if s == nil || s.Spec.Account == nil || s.Spec.Account.APITokenSecretRef == nil {
		return nil
	}
	ref := s.Spec.Account.APITokenSecretRef.DeepCopy()
	ref.Key = ptr.To(ptr.Deref(ref.Key, v1alpha1.DefaultSecretKey))
	return ref
}

// HasToken reports whether the source says where the token is.
func (s Source) HasToken() bool { return s.Token != "" || s.Secret.Name != "" }

// ReadToken returns the token that the source's Secret holds, and the Secret's
// version. A Secret that does not exist, or has no token, is a [*TokenError].
func (s Source) ReadToken(ctx context.Context, r client.Reader) (token, version string, err error) {
	var secret corev1.Secret
	err = r.Get(ctx, s.Secret, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return "", "", &TokenError{Secret: s.Secret, Reason: "it does not exist"}
	case err != nil:
		return "", "", fmt.Errorf("reading Secret %s with the API token: %w", s.Secret, err)
	}
	token = strings.TrimSpace(string(secret.Data[s.Key]))
	if token == "" {
		return "", "", &TokenError{Secret: s.Secret, Reason: fmt.Sprintf("it has no key %q", s.Key)}
	}
	return token, secret.ResourceVersion, nil
}

// TokenError says why there is no API token to work with.
type TokenError struct {
	// Secret is where it should be; empty when it comes from elsewhere.
	Secret types.NamespacedName
	Reason string
}

func (e *TokenError) Error() string {
	if e.Secret.Name == "" {
		return "the API token cannot be used: " + e.Reason
	}
	return fmt.Sprintf("the API token cannot be taken from Secret %s: %s", e.Secret, e.Reason)
}
