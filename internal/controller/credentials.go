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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Account is the Cloudflare account in which the tunnels are, and the API token
// for it.
type Account struct {
	ID string
	// Token is the API token, unless TokenSecret says where to find it.
	Token string
	// TokenSecret names the Secret that holds the API token under the key
	// [TokenKey]. A new token there is used at once.
	TokenSecret types.NamespacedName
	// Open returns the provider for an account and a token.
	Open func(account, token string) (provider.Provider, error)
}

// credentials opens the provider of the account, and again when the token has
// changed.
type credentials struct {
	Account
	metadata client.Reader
	live     client.Reader

	mu      sync.Mutex
	version string // of the Secret, when the token was read
	opened  provider.Provider
}

func newCredentials(a Account, metadata, live client.Reader) *credentials {
	return &credentials{Account: a, metadata: metadata, live: live}
}

// provider returns the provider for the token as it is now.
func (c *credentials) provider(ctx context.Context) (provider.Provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.TokenSecret.Name == "" {
		if c.opened == nil {
			return c.open(c.Token, "")
		}
		return c.opened, nil
	}
	cached := secretMetadata(c.TokenSecret)
	err := c.metadata.Get(ctx, c.TokenSecret, cached)
	if err == nil && c.opened != nil && cached.ResourceVersion == c.version {
		return c.opened, nil
	}
	var secret corev1.Secret
	err = c.live.Get(ctx, c.TokenSecret, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &credentialsError{secret: c.TokenSecret, why: "it does not exist"}
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s with the API token: %w", c.TokenSecret, err)
	}
	token := strings.TrimSpace(string(secret.Data[TokenKey]))
	if token == "" {
		return nil, &credentialsError{secret: c.TokenSecret, why: fmt.Sprintf("it has no key %q", TokenKey)}
	}
	if c.opened != nil && token == c.Token {
		c.version = secret.ResourceVersion
		return c.opened, nil
	}
	return c.open(token, secret.ResourceVersion)
}

// open makes the provider for a token.
func (c *credentials) open(token, version string) (provider.Provider, error) {
	opened, err := c.Open(c.ID, token)
	if err != nil {
		return nil, &credentialsError{secret: c.TokenSecret, why: err.Error()}
	}
	c.opened, c.Token, c.version = opened, token, version
	return opened, nil
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
