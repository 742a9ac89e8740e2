package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// apiTokens reads the API tokens for zones or for applications. It reads a token again when
// its Secret has changed.
type apiTokens struct {
	metadata client.Reader // the cache
	live     client.Reader

	mu   sync.Mutex
	read map[credentials.Source]readToken
}

func newAPITokens(d dependencies) *apiTokens {
	return &apiTokens{metadata: d.metadata, live: d.live, read: map[credentials.Source]readToken{}}
}

// readToken is a token that was read from a version of a Secret.
type readToken struct{ token, resourceVersion string }

// tokenSources are where the API tokens come from.
type tokenSources struct {
	// account is the source of the account's API token.
	account credentials.Source
	// own is the source of the token in the settings for zones or applications; the zero
	// value if they use the account's token.
	own credentials.Source
}

// have reports whether the Secret contains one of the tokens.
func (s tokenSources) have(secret types.NamespacedName) bool {
	return s.account.Secret == secret || s.own.Secret == secret
}

// openedAPI is an API as it was opened with the current tokens.
type openedAPI[P any] struct {
	account, apiToken, ownToken string
	provider                    P
	// version is a hash of the tokens.
	version string
}

// openFunc returns an API. apiToken is the account's API token, and ownToken the one in the
// settings for zones or applications; empty for the account's.
type openFunc[P any] func(account, apiToken, ownToken string) (P, error)

// openAPI returns the API, opened with the current tokens. last is what openAPI returned
// last, or nil. Without a token, openAPI returns nil and the reason. It returns an error if
// a Secret could not be read.
func openAPI[P any](ctx context.Context, t *apiTokens, open openFunc[P], sources tokenSources, last *openedAPI[P]) (*openedAPI[P], string, error) {
	a := &openedAPI[P]{account: sources.account.Account}
	var err error
	if a.apiToken, err = t.token(ctx, sources.account); err != nil {
		return nil, missingToken(err), otherThanMissing(err)
	}
	if sources.own != (credentials.Source{}) {
		if a.ownToken, err = t.token(ctx, sources.own); err != nil {
			return nil, missingToken(err), otherThanMissing(err)
		}
	}
	if last != nil && last.account == a.account && last.apiToken == a.apiToken && last.ownToken == a.ownToken {
		return last, "", nil
	}
	if a.provider, err = open(a.account, a.apiToken, a.ownToken); err != nil {
		return nil, tunnel.Sentence(err.Error()), nil
	}
	a.version = tokenVersion(provider.Token(a.apiToken + "\n" + a.ownToken))
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
func (t *apiTokens) token(ctx context.Context, source credentials.Source) (string, error) {
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

// retain forgets the tokens that are not used.
func (t *apiTokens) retain(used func(credentials.Source) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for source := range t.read {
		if !used(source) {
			delete(t.read, source)
		}
	}
}
