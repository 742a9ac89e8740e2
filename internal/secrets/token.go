package secrets

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
)

// ReadToken returns the API token in the source's Secret, and the Secret's resource
// version. It returns a [*credentials.TokenError] if the Secret does not exist or
// contains no token.
func ReadToken(ctx context.Context, r client.Reader, s credentials.Source) (token, version string, err error) {
	var secret corev1.Secret
	err = r.Get(ctx, s.Secret, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return "", "", &credentials.TokenError{Secret: s.Secret, Reason: "it does not exist"}
	case err != nil:
		return "", "", fmt.Errorf("read Secret %s with the API token: %w", s.Secret, err)
	}
	token = strings.TrimSpace(string(secret.Data[s.Key]))
	if token == "" {
		return "", "", &credentials.TokenError{Secret: s.Secret, Reason: fmt.Sprintf("it has no key %q", s.Key)}
	}
	return token, secret.ResourceVersion, nil
}
