package controller

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// account is a Cloudflare account that can be worked on.
type account struct {
	id       string
	provider provider.Provider
}

// accounts opens the accounts of Gateways, and again when a token has changed.
type accounts struct {
	flags    credentials.Default
	open     func(account, token string) (provider.Provider, error)
	metadata client.Reader
	live     client.Reader

	mu     sync.Mutex
	opened map[credentials.Source]*opened
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
	from := a.flags.Of(settings)
	if from.Account == "" || !from.HasToken() {
		return account{}, &credentialsError{credentials.TokenError{Why: "there is none, or no account ID; give them to the controller as flags, or in spec.account of the GatewayClass's TunnelConfiguration"}}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.opened[from]
	if a.uses++; known != nil {
		known.used = a.uses
	}
	if from.Secret.Name != "" {
		return a.fromSecret(ctx, from, known)
	}
	if known != nil {
		return known.account, nil
	}
	return a.renew(from, from.Token, "")
}

// fromSecret returns the account with the token that the Secret has now.
func (a *accounts) fromSecret(ctx context.Context, from credentials.Source, known *opened) (account, error) {
	a.secrets[from.Secret] = true
	cached := secretMetadata(from.Secret)
	err := a.metadata.Get(ctx, from.Secret, cached)
	if err == nil && known != nil && cached.ResourceVersion == known.version {
		return known.account, nil
	}
	token, version, err := from.ReadToken(ctx, a.live)
	unusable, ok := errors.AsType[*credentials.TokenError](err)
	switch {
	case ok:
		return account{}, &credentialsError{*unusable}
	case err != nil:
		return account{}, err
	case known != nil && token == known.token:
		known.version = version
		return known.account, nil
	}
	return a.renew(from, token, version)
}

// renew opens the account with a token.
func (a *accounts) renew(from credentials.Source, token, version string) (account, error) {
	p, err := a.open(from.Account, token)
	if err != nil {
		return account{}, &credentialsError{credentials.TokenError{Secret: from.Secret, Why: err.Error()}}
	}
	now := &opened{used: a.uses, token: token, version: version, account: account{id: from.Account, provider: p}}
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
type credentialsError struct{ credentials.TokenError }
