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
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
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

// Of returns where the account of a Gateway comes from. Settings that are not
// known are those of a class without any.
func (d Default) Of(settings *gateway.Settings) Source {
	from := Source{Account: d.Account, Token: d.Token, Secret: d.Secret, Key: v1alpha1.DefaultSecretKey}
	if settings == nil || settings.Spec.Account == nil {
		return from
	}
	own := settings.Spec.Account
	from.Account = ptr.Deref(own.AccountID, from.Account)
	if ref := own.APITokenSecretRef; ref != nil {
		from.Token, from.Key = "", ptr.Deref(ref.Key, v1alpha1.DefaultSecretKey)
		from.Secret = types.NamespacedName{Namespace: settings.AccountNamespace, Name: ref.Name}
	}
	return from
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
		return "", "", &TokenError{Secret: s.Secret, Why: "it does not exist"}
	case err != nil:
		return "", "", fmt.Errorf("reading Secret %s with the API token: %w", s.Secret, err)
	}
	token = strings.TrimSpace(string(secret.Data[s.Key]))
	if token == "" {
		return "", "", &TokenError{Secret: s.Secret, Why: fmt.Sprintf("it has no key %q", s.Key)}
	}
	return token, secret.ResourceVersion, nil
}

// TokenError says why there is no API token to work with.
type TokenError struct {
	// Secret is where it should be; empty when it comes from elsewhere.
	Secret types.NamespacedName
	Why    string
}

func (e *TokenError) Error() string {
	if e.Secret.Name == "" {
		return "the API token cannot be used: " + e.Why
	}
	return fmt.Sprintf("the API token cannot be taken from Secret %s: %s", e.Secret, e.Why)
}
