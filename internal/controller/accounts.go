package controller

import (
	"context"
	"errors"
	"maps"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// account is a Cloudflare account with a provider for its API.
type account struct {
	id       string
	provider provider.Provider
	// version is a hash of the API token.
	version string
}

// accounts opens the Cloudflare accounts for Tunnels. It opens an account again when
// the API token has changed.
type accounts struct {
	defaults credentials.Default
	connect  func(account, token string) (provider.Provider, error)
	metadata client.Reader // the cache
	live     client.Reader

	mu       sync.Mutex
	bySource map[credentials.Source]*openAccount
	useCount int
}

func newAccounts(d dependencies, o Options) *accounts {
	return &accounts{
		defaults: o.Account, connect: o.Open, metadata: d.metadata, live: d.live, bySource: map[credentials.Source]*openAccount{},
	}
}

// openAccount is an account and the token that it was opened with.
type openAccount struct {
	token string
	// resourceVersion is the version of the Secret from which the token was read.
	resourceVersion string
	account         account
	lastUse         int // accounts.useCount at the last use
}

// checkCredentials reports whether there is an API token for the Tunnel's account.
func (a *accounts) checkCredentials(ctx context.Context, t *v1alpha1.Tunnel) tunnel.Credentials {
	source, ok := a.defaults.ForTunnel(t.Spec, t.Namespace)
	if !ok {
		return tunnel.Credentials{State: tunnel.CredentialsWrongAccount}
	}
	found, err := a.openSource(ctx, source)
	missing, isMissing := errors.AsType[*credentials.TokenError](err)
	switch {
	case isMissing:
		return tunnel.Credentials{State: tunnel.CredentialsMissing, Message: tunnel.Sentence(missing.Error())}
	case err != nil:
		return tunnel.Credentials{State: tunnel.CredentialsUnknown, Message: err.Error()}
	}
	return tunnel.Credentials{State: tunnel.CredentialsUsable, Version: found.version}
}

func (a *accounts) open(ctx context.Context, t *v1alpha1.Tunnel) (account, error) {
	source, ok := a.defaults.ForTunnel(t.Spec, t.Namespace)
	if !ok {
		return account{}, &tunnel.Failure{Reason: conditions.ReasonWrongAccount, Err: errors.New("the API token belongs to another account")}
	}
	return a.openSource(ctx, source)
}

// openSource returns the account for a source, opened with the current token.
func (a *accounts) openSource(ctx context.Context, source credentials.Source) (account, error) {
	if !source.HasToken() {
		return account{}, &credentials.TokenError{Reason: "no token is configured; start the controller with --cloudflare-api-token, or name a Secret in spec.account of the GatewayClass's TunnelConfiguration"}
	}
	last, ok := a.cached(source)
	switch {
	case source.Secret.Name != "":
		return a.fromSecret(ctx, source, last)
	case ok:
		return last.account, nil
	}
	return a.connectWithToken(source, last, source.Token, "")
}

// cached returns the account for a source as it was last opened.
func (a *accounts) cached(source credentials.Source) (openAccount, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.bySource[source]
	if found == nil {
		return openAccount{}, false
	}
	a.useCount++
	found.lastUse = a.useCount
	return *found, true
}

// fromSecret returns the account, opened with the current token in the Secret. It
// reads the Secret without holding the mutex.
func (a *accounts) fromSecret(ctx context.Context, source credentials.Source, last openAccount) (account, error) {
	cached := secrets.Metadata(source.Secret)
	err := a.metadata.Get(ctx, source.Secret, cached)
	if err == nil && cached.ResourceVersion == last.resourceVersion {
		return last.account, nil
	}
	token, resourceVersion, err := secrets.ReadToken(ctx, a.live, source)
	switch {
	case err != nil:
		return account{}, err
	case token == last.token:
		a.mu.Lock()
		defer a.mu.Unlock()
		if found := a.bySource[source]; found != nil && found.token == token {
			found.resourceVersion = resourceVersion
		}
		return last.account, nil
	}
	return a.connectWithToken(source, last, token, resourceVersion)
}

// connectWithToken opens the account with the token and caches it. If another worker has
// opened the account since last was read, connectWithToken returns that account, so that
// all workers use the same provider. If that account has an older token, the next call
// finds that the Secret has changed.
func (a *accounts) connectWithToken(source credentials.Source, last openAccount, token, resourceVersion string) (account, error) {
	p, err := a.connect(source.Account, token)
	if err != nil {
		return account{}, &credentials.TokenError{Secret: source.Secret, Reason: err.Error()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.useCount++
	if current := a.bySource[source]; current != nil && (current.token == token || current.token != last.token) {
		current.lastUse = a.useCount
		return current.account, nil
	}
	opened := &openAccount{lastUse: a.useCount, token: token, resourceVersion: resourceVersion}
	opened.account = account{id: source.Account, provider: p, version: tokenVersion(provider.Token(token))}
	a.bySource[source] = opened
	return opened.account, nil
}

// retain closes the accounts whose source no Tunnel uses, apart from the default one
// and those to keep, by ID.
func (a *accounts) retain(tunnels []v1alpha1.Tunnel, kept map[string]bool) {
	used := map[credentials.Source]bool{a.defaults.ForSettings(nil): true}
	for i := range tunnels {
		if source, ok := a.defaults.ForTunnel(tunnels[i].Spec, tunnels[i].Namespace); ok {
			used[source] = true
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.bySource, func(s credentials.Source, o *openAccount) bool { return !used[s] && !kept[o.account.id] })
}

// all returns every open account once, with the token that was used last.
func (a *accounts) all() []account {
	a.mu.Lock()
	defer a.mu.Unlock()
	latest := map[string]*openAccount{}
	for _, o := range a.bySource {
		if other := latest[o.account.id]; other == nil || other.lastUse < o.lastUse {
			latest[o.account.id] = o
		}
	}
	var all []account
	for _, o := range latest {
		all = append(all, o.account)
	}
	return all
}
