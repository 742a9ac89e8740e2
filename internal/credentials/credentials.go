// Package credentials determines the Cloudflare account for a Gateway's tunnel and where
// the API token for that account comes from. The controller and the plan command use the
// same rules.
package credentials

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// Default is the default Cloudflare account and its API token. A GatewayClass can
// override both in its TunnelConfiguration.
type Default struct {
	// Account is the account ID.
	Account string
	// Token is the API token if it is not in a Secret.
	Token string
	// Secret contains the API token under the key [v1alpha1.DefaultSecretKey].
	Secret types.NamespacedName
}

// Source is an account and where its API token comes from. Equal sources have the same
// account and token unless the Secret changes.
type Source struct {
	// Account is the account ID.
	Account string
	// Token is the API token if it is not in a Secret.
	Token string
	// Secret contains the API token under Key.
	Secret types.NamespacedName
	Key    string
}

// ForSettings returns the source for a Gateway with these settings. Nil settings are
// equivalent to those of a GatewayClass without parameters.
func (d Default) ForSettings(s *settings.Settings) Source {
	source := Source{Account: d.Account, Token: d.Token, Secret: d.Secret, Key: v1alpha1.DefaultSecretKey}
	if s == nil || s.Spec.Account == nil {
		return source
	}
	account := s.Spec.Account
	source.Account = ptr.Deref(account.AccountID, source.Account)
	if ref := account.APITokenSecretRef; ref != nil {
		source.Token, source.Key = "", ptr.Deref(ref.Key, v1alpha1.DefaultSecretKey)
		source.Secret = types.NamespacedName{Namespace: s.AccountNamespace, Name: ref.Name}
	}
	return source
}

// ForTunnel returns the source for a Tunnel in that namespace, and whether it is for the
// Tunnel's account. A Tunnel without credentials uses the default token, which is for the
// default account only.
func (d Default) ForTunnel(spec v1alpha1.TunnelSpec, namespace string) (Source, bool) {
	if ref := spec.Credentials; ref != nil {
		secret := types.NamespacedName{Namespace: namespace, Name: ref.Name}
		return Source{Account: spec.AccountID, Secret: secret, Key: ptr.Deref(ref.Key, v1alpha1.DefaultSecretKey)}, true
	}
	source := Source{Account: d.Account, Token: d.Token, Secret: d.Secret, Key: v1alpha1.DefaultSecretKey}
	return source, spec.AccountID == d.Account
}

// SecretReference returns the reference to the Secret with the API token for a Tunnel's
// spec, or nil for the default token.
func (d Default) SecretReference(s *settings.Settings) *v1alpha1.SecretKeyReference {
	if s == nil || s.Spec.Account == nil || s.Spec.Account.APITokenSecretRef == nil {
		return nil
	}
	ref := s.Spec.Account.APITokenSecretRef.DeepCopy()
	ref.Key = ptr.To(ptr.Deref(ref.Key, v1alpha1.DefaultSecretKey))
	return ref
}

// ForDNS returns the source of the API token for the zones of the account: the Secret in the
// settings, which is in the controller's namespace. It returns s and false if the settings
// name no Secret.
func (s Source) ForDNS(set settings.DNS, namespace string) (source Source, separate bool) {
	return s.inNamespace(set.APIToken, namespace)
}

// ForAccess returns the source of the API token for the applications of the account, like
// [Source.ForDNS].
func (s Source) ForAccess(set settings.Applications, namespace string) (source Source, separate bool) {
	return s.inNamespace(set.APIToken, namespace)
}

// inNamespace returns the source with the Secret that ref names in the namespace. It
// returns s and false if ref is nil.
func (s Source) inNamespace(ref *v1alpha1.SecretKeyReference, namespace string) (source Source, separate bool) {
	if ref == nil {
		return s, false
	}
	return Source{
		Account: s.Account, Key: ptr.Deref(ref.Key, v1alpha1.DefaultSecretKey), Secret: types.NamespacedName{Namespace: namespace, Name: ref.Name},
	}, true
}

// HasToken reports whether the source contains a token or refers to a Secret.
func (s Source) HasToken() bool { return s.Token != "" || s.Secret.Name != "" }

// TokenError means that no API token is available.
type TokenError struct {
	// Secret must contain the token; empty if the token does not come from a Secret.
	Secret types.NamespacedName
	// Reason describes the cause.
	Reason string
}

func (e *TokenError) Error() string {
	if e.Secret.Name == "" {
		return "cannot use the API token: " + e.Reason
	}
	return fmt.Sprintf("cannot read the API token from Secret %s: %s", e.Secret, e.Reason)
}
