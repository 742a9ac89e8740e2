package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Account is the Cloudflare account in which tunnels are, and the API token for
// it, unless the TunnelConfiguration of a class names others.
type Account struct {
	ID string
	// Token is the API token, unless TokenSecret says where to find it.
	Token string
	// TokenSecret names the Secret that holds the API token under the key
	// [TokenKey]. A new token there is used at once.
	TokenSecret types.NamespacedName
}

// tokenSource is where an account and its API token come from.
type tokenSource struct {
	account string
	token   string // when it is in no Secret
	secret  types.NamespacedName
	key     string
}

// account is a Cloudflare account that can be worked on.
type account struct {
	id       string
	provider provider.Provider
}

// accounts opens the accounts of Gateways, and again when a token has changed.
type accounts struct {
	flags    Account
	open     func(account, token string) (provider.Provider, error)
	metadata client.Reader
	live     client.Reader

	mu     sync.Mutex
	opened map[tokenSource]*opened
	uses   int
	// secrets are those that were asked for a token.
	secrets map[types.NamespacedName]bool
}

// reads reports whether an API token is read from the Secret.
func (a *accounts) reads(secret types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.secrets[secret]
}

// opened is an account with the token that it was opened with.
type opened struct {
	token   string
	version string // of the Secret, when the token was read
	account account
	used    int // when, as a count: the latest is the one to trust
}

// sourceOf returns where the account of a Gateway comes from. Settings that are
// not known are those of a class without any.
func (a *accounts) sourceOf(settings *gateway.Settings) tokenSource {
	from := tokenSource{account: a.flags.ID, token: a.flags.Token, secret: a.flags.TokenSecret, key: TokenKey}
	if settings == nil || settings.Spec.Account == nil {
		return from
	}
	own := settings.Spec.Account
	from.account = ptr.Deref(own.AccountID, from.account)
	if ref := own.APITokenSecretRef; ref != nil {
		from.token, from.key = "", ptr.Deref(ref.Key, v1alpha1.DefaultSecretKey)
		from.secret = types.NamespacedName{Namespace: settings.AccountNamespace, Name: ref.Name}
	}
	return from
}

// recorded returns an account that was opened, for a Gateway whose settings are
// not known any more.
func (a *accounts) recorded(id string) (account, bool) {
	for _, known := range a.all() {
		if known.id == id {
			return known, true
		}
	}
	return account{}, false
}

// of returns the account of a Gateway, with the token as it is now.
func (a *accounts) of(ctx context.Context, settings *gateway.Settings) (account, error) {
	from := a.sourceOf(settings)
	if from.account == "" || from.token == "" && from.secret.Name == "" {
		return account{}, &credentialsError{why: "there is none, or no account ID; give them to the controller as flags, or in spec.account of the GatewayClass's TunnelConfiguration"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.opened[from]
	if a.uses++; known != nil {
		known.used = a.uses
	}
	if from.secret.Name != "" {
		return a.fromSecret(ctx, from, known)
	}
	if known != nil {
		return known.account, nil
	}
	return a.renew(from, from.token, "")
}

// fromSecret returns the account with the token that the Secret has now.
func (a *accounts) fromSecret(ctx context.Context, from tokenSource, known *opened) (account, error) {
	a.secrets[from.secret] = true
	cached := secretMetadata(from.secret)
	err := a.metadata.Get(ctx, from.secret, cached)
	if err == nil && known != nil && cached.ResourceVersion == known.version {
		return known.account, nil
	}
	token, version, err := a.read(ctx, from)
	switch {
	case err != nil:
		return account{}, err
	case known != nil && token == known.token:
		known.version = version
		return known.account, nil
	}
	return a.renew(from, token, version)
}

// read returns the token that the Secret holds, and the Secret's version.
func (a *accounts) read(ctx context.Context, from tokenSource) (token, version string, err error) {
	var secret corev1.Secret
	err = a.live.Get(ctx, from.secret, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return "", "", &credentialsError{secret: from.secret, why: "it does not exist"}
	case err != nil:
		return "", "", fmt.Errorf("reading Secret %s with the API token: %w", from.secret, err)
	}
	token = strings.TrimSpace(string(secret.Data[from.key]))
	if token == "" {
		return "", "", &credentialsError{secret: from.secret, why: fmt.Sprintf("it has no key %q", from.key)}
	}
	return token, secret.ResourceVersion, nil
}

// renew opens the account with a token.
func (a *accounts) renew(from tokenSource, token, version string) (account, error) {
	p, err := a.open(from.account, token)
	if err != nil {
		return account{}, &credentialsError{secret: from.secret, why: err.Error()}
	}
	now := &opened{used: a.uses, token: token, version: version, account: account{id: from.account, provider: p}}
	a.opened[from] = now
	return now.account, nil
}

// all returns the accounts that were opened, each once.
func (a *accounts) all() []account {
	a.mu.Lock()
	defer a.mu.Unlock()
	latest := map[string]*opened{}
	for _, o := range a.opened {
		if known := latest[o.account.id]; known == nil || known.used < o.used {
			latest[o.account.id] = o
		}
	}
	var all []account
	for _, o := range latest {
		all = append(all, o.account)
	}
	return all
}

func secretMetadata(name types.NamespacedName) *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret
}

// credentialsError: there is no API token to work with.
type credentialsError struct {
	secret types.NamespacedName
	why    string
}

func (e *credentialsError) Error() string {
	if e.secret.Name == "" {
		return "the API token cannot be used: " + e.why
	}
	return fmt.Sprintf("the API token cannot be taken from Secret %s: %s", e.secret, e.why)
}
