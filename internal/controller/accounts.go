package controller

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// account is a Cloudflare account that can be worked on.
type account struct {
	id       string
	provider provider.Provider
	// version identifies the API token.
	version string
}

// accounts opens the accounts of Gateways, and again when a token has changed.
type accounts struct {
	defaults credentials.Default
	connect  func(account, token string) (provider.Provider, error)
	metadata client.Reader
	live     client.Reader

	mu       sync.Mutex
	bySource map[credentials.Source]*openAccount
	useCount int
	// secretsRead are those that were asked for a token.
	secretsRead map[types.NamespacedName]bool
}

// readsSecret reports whether an API token is read from the Secret.
func (a *accounts) readsSecret(secret types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.secretsRead[secret]
}

// openAccount is an account with the token that it was opened with.
type openAccount struct {
	token string
	// resourceVersion is that of the Secret when the token was read.
	resourceVersion string
	account         account
	lastUse         int // when, as a count: the latest is the one to trust
}

// checkCredentials says whether there is an API token for the account of the Tunnel.
func (a *accounts) checkCredentials(ctx context.Context, t *v1alpha1.Tunnel) tunnel.Credentials {
	source, ok := a.defaults.ForTunnel(t.Spec, t.Namespace)
	if !ok {
		return tunnel.Credentials{State: tunnel.CredentialsWrongAccount}
	}
	opened, err := a.openSource(ctx, source)
	missing, isMissing := errors.AsType[*credentials.TokenError](err)
	switch {
	case isMissing:
		return tunnel.Credentials{State: tunnel.CredentialsMissing, Message: tunnel.Sentence(missing.Error())}
	case err != nil:
		return tunnel.Credentials{State: tunnel.CredentialsUnknown, Message: err.Error()}
	}
	return tunnel.Credentials{State: tunnel.CredentialsUsable, Version: opened.version}
}

// open returns the account of the Tunnel.
func (a *accounts) open(ctx context.Context, t *v1alpha1.Tunnel) (account, error) {
	source, ok := a.defaults.ForTunnel(t.Spec, t.Namespace)
	if !ok {
		return account{}, &tunnel.Failure{Reason: tunnel.ReasonWrongAccount, Err: errors.New("the API token is for another account")}
	}
	return a.openSource(ctx, source)
}

// openSource returns the account of a source, with the token as it is now.
func (a *accounts) openSource(ctx context.Context, from credentials.Source) (account, error) {
	if !from.HasToken() {
		return account{}, &credentials.TokenError{Reason: "there is none; give one to the controller, or name its Secret in spec.account of the TunnelConfiguration of the GatewayClass"}
	}
	known, ok := a.cached(from)
	switch {
	case from.Secret.Name != "":
		return a.fromSecret(ctx, from, known)
	case ok:
		return known.account, nil
	}
	return a.connectWithToken(from, from.Token, "")
}

// cached returns the account of a source as it was opened last.
func (a *accounts) cached(from credentials.Source) (openAccount, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.bySource[from]
	if found == nil {
		return openAccount{}, false
	}
	a.useCount++
	found.lastUse = a.useCount
	return *found, true
}

// fromSecret returns the account with the token that the Secret has now. The
// Secret is read without holding the mutex.
func (a *accounts) fromSecret(ctx context.Context, from credentials.Source, known openAccount) (account, error) {
	a.mu.Lock()
	a.secretsRead[from.Secret] = true
	a.mu.Unlock()
	cached := secretMetadata(from.Secret)
	err := a.metadata.Get(ctx, from.Secret, cached)
	if err == nil && cached.ResourceVersion == known.resourceVersion {
		return known.account, nil
	}
	token, resourceVersion, err := from.ReadToken(ctx, a.live)
	switch {
	case err != nil:
		return account{}, err
	case token == known.token:
		a.mu.Lock()
		defer a.mu.Unlock()
		if found := a.bySource[from]; found != nil {
			found.resourceVersion = resourceVersion
		}
		return known.account, nil
	}
	return a.connectWithToken(from, token, resourceVersion)
}

// connectWithToken opens the account with a token.
func (a *accounts) connectWithToken(from credentials.Source, token, resourceVersion string) (account, error) {
	p, err := a.connect(from.Account, token)
	if err != nil {
		return account{}, &credentials.TokenError{Secret: from.Secret, Reason: err.Error()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.useCount++
	now := &openAccount{lastUse: a.useCount, token: token, resourceVersion: resourceVersion}
	now.account = account{id: from.Account, provider: p, version: tokenVersion(provider.Token(token))}
	a.bySource[from] = now
	return now.account, nil
}

// all returns the accounts that were opened, each once.
func (a *accounts) all() []account {
	a.mu.Lock()
	defer a.mu.Unlock()
	latest := map[string]*openAccount{}
	for _, o := range a.bySource {
		if known := latest[o.account.id]; known == nil || known.lastUse < o.lastUse {
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
