package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// clientSecret is the client certificate in a publication. Only the leader publishes, so
// only the leader reads private keys.
type clientSecret struct {
	certificate routing.ClientCertificate
	secret      *envoy.Secret
}

// resources returns the secrets for a publication.
func (s *clientSecret) resources() []*envoy.Secret {
	if s == nil {
		return nil
	}
	return []*envoy.Secret{s.secret}
}

// readClientSecret reads the client certificate from the API server, unless the last
// publication has it. The Secret can have changed since the decision: its event then leads
// to another decision, and meanwhile this one fails.
func (e *envoys) readClientSecret(ctx context.Context, last *clientSecret, wanted *routing.ClientCertificate) (*clientSecret, error) {
	switch {
	case wanted == nil:
		return nil, nil
	case last != nil && last.certificate == *wanted:
		return last, nil
	}
	var secret corev1.Secret
	if err := e.live.Get(ctx, wanted.Secret, &secret); err != nil {
		return nil, fmt.Errorf("read the client certificate for backends: %w", err)
	}
	pair, ok := gateway.ReadClientKeyPair(&secret)
	if !ok || pair.Fingerprint != wanted.Fingerprint {
		return nil, fmt.Errorf("the client certificate in Secret %s has changed since the decision", wanted.Secret)
	}
	return &clientSecret{*wanted, envoy.ClientCertificate(pair.Chain, pair.Key)}, nil
}
