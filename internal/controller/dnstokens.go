package controller

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// dnsTokens opens the DNS API with the API tokens for zones. It reads a token again when
// its Secret has changed.
type dnsTokens struct {
	open      func(account, apiToken, dnsToken string) (provider.DNS, error)
	metadata  client.Reader // the cache
	live      client.Reader
	namespace string

	mu   sync.Mutex
	read map[credentials.Source]readToken
}

// readToken is a token that was read from a version of a Secret.
type readToken struct{ token, resourceVersion string }

// zoneAccess is the DNS API as it was opened for a zone.
type zoneAccess struct {
	account, apiToken, dnsToken string
	provider                    provider.DNS
	// version is a hash of the tokens.
	version string
}

// source returns where a zone's token for DNS comes from: the Secret in the settings, or
// the account's token.
func (t *dnsTokens) source(class zoneClass) (credentials.Source, bool) {
	return class.source.ForDNS(class.class.Settings, t.namespace)
}

// access returns the DNS API for the zones of the class, opened with the current tokens.
// last is the zone's last access, which can be nil. Without a token, access returns nil
// and the reason. It returns an error if a Secret could not be read.
func (t *dnsTokens) access(ctx context.Context, class zoneClass, last *zoneAccess) (*zoneAccess, string, error) {
	a := &zoneAccess{account: class.source.Account}
	var err error
	if a.apiToken, err = t.token(ctx, class.source); err != nil {
		return nil, missingToken(err), otherThanMissing(err)
	}
	if source, separate := t.source(class); separate {
		if a.dnsToken, err = t.token(ctx, source); err != nil {
			return nil, missingToken(err), otherThanMissing(err)
		}
	}
	if last != nil && last.account == a.account && last.apiToken == a.apiToken && last.dnsToken == a.dnsToken {
		return last, "", nil
	}
	if a.provider, err = t.open(a.account, a.apiToken, a.dnsToken); err != nil {
		return nil, tunnel.Sentence(err.Error()), nil
	}
	a.version = tokenVersion(provider.Token(a.apiToken + "\n" + a.dnsToken))
	return a, "", nil
}

// missingToken returns why there is no token, or "" for another error.
func missingToken(err error) string {
	if missing, ok := errors.AsType[*credentials.TokenError](err); ok {
		return tunnel.Sentence(missing.Error())
	}
	return ""
}

// otherThanMissing returns the error unless it means that there is no token.
func otherThanMissing(err error) error {
	if _, ok := errors.AsType[*credentials.TokenError](err); ok {
		return nil
	}
	return err
}

// token returns the source's current token. It reads a Secret without holding the mutex.
func (t *dnsTokens) token(ctx context.Context, source credentials.Source) (string, error) {
	switch {
	case !source.HasToken():
		return "", &credentials.TokenError{Reason: "no token is configured for the account"}
	case source.Secret.Name == "":
		return source.Token, nil
	}
	t.mu.Lock()
	last, known := t.read[source]
	t.mu.Unlock()
	cached := secrets.Metadata(source.Secret)
	if err := t.metadata.Get(ctx, source.Secret, cached); err == nil && known && cached.ResourceVersion == last.resourceVersion {
		return last.token, nil
	}
	token, resourceVersion, err := secrets.ReadToken(ctx, t.live, source)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		delete(t.read, source)
		return "", err
	}
	t.read[source] = readToken{token, resourceVersion}
	return token, nil
}

// retain forgets the tokens that no zone uses.
func (t *dnsTokens) retain(used func(credentials.Source) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for source := range t.read {
		if !used(source) {
			delete(t.read, source)
		}
	}
}
