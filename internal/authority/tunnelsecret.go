package authority

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// issued describes a Tunnel's Secret as it was last read or written. It contains no private
// key.
type issued struct {
	// tunnel is the UID of the Tunnel for which the Secret was checked.
	tunnel          types.UID
	resourceVersion string
	// certificate is the client certificate; nil if it is damaged or for another Tunnel.
	certificate *x509.Certificate
	// bundle contains the authorities, as PEM.
	bundle []byte
	// complete reports whether everything that does not depend on the time is as desired.
	complete bool
}

// isCurrent reports whether the Secret needs no write.
func (i issued) isCurrent(s *authorities, now time.Time) bool {
	return i.complete && s.hasBundle(i.bundle) && i.isUsable(s, now)
}

// isUsable reports whether the certificate can stay.
func (i issued) isUsable(s *authorities, now time.Time) bool {
	if i.certificate == nil || isDue(i.certificate, now) {
		return false
	}
	_, err := i.certificate.Verify(x509.VerifyOptions{
		Roots: s.pool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

// IsCurrent reports whether the Tunnel's Secret needs no write: its certificate is for
// this Tunnel, from a known authority and not due for renewal, and everything else is
// as desired. It reads the Secret only if its metadata has changed since the last read.
func (a *Authority) IsCurrent(ctx context.Context, t *v1alpha1.Tunnel) (bool, error) {
	s, err := a.current(ctx)
	if err != nil {
		return false, err
	}
	found, err := a.look(ctx, t)
	if err != nil {
		return false, err
	}
	return found.isCurrent(s, a.o.Now()), nil
}

// look returns what is known about the Tunnel's Secret. The result is empty if the
// Secret does not exist or belongs to another owner.
func (a *Authority) look(ctx context.Context, t *v1alpha1.Tunnel) (issued, error) {
	key := secretKey(t)
	known, isKnown := a.issuedFor(t)
	cached := secrets.Metadata(key)
	err := a.o.Metadata.Get(ctx, key, cached)
	if err == nil && isKnown && known.resourceVersion == cached.ResourceVersion {
		return known, nil
	}
	secret := &corev1.Secret{} // the cache may be behind, so that it does not show that the Secret is missing
	err = a.o.Live.Get(ctx, key, secret)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return issued{}, fmt.Errorf("read Secret %s: %w", key, err)
	case err != nil || !connector.IsManagedBy(secret, t):
		a.forget(t.Name)
		return issued{}, nil
	}
	found, err := a.inspect(t, secret)
	if err != nil {
		return issued{}, err
	}
	a.remember(t, found)
	return found, nil
}

// inspect returns what the Secret contains.
func (a *Authority) inspect(t *v1alpha1.Tunnel, secret *corev1.Secret) (issued, error) {
	files, err := envoy.SDSFiles()
	if err != nil {
		return issued{}, err
	}
	desired := connector.IdentitySecret(t, nil)
	result := issued{
		tunnel: t.UID, resourceVersion: secret.ResourceVersion, bundle: secret.Data[envoy.CAFile],
		certificate: certificateOf(secret, a.identityOf(t)),
		complete:    metav1.GetControllerOf(secret).UID == t.UID,
	}
	for name, text := range files {
		result.complete = result.complete && bytes.Equal(secret.Data[name], text)
	}
	for key, value := range desired.Labels {
		result.complete = result.complete && secret.Labels[key] == value
	}
	return result, nil
}

// certificateOf returns the client certificate in the Secret, or nil if the Secret does not
// contain a certificate for the identity and its private key.
func certificateOf(secret *corev1.Secret, i Identity) *x509.Certificate {
	pair, err := tls.X509KeyPair(secret.Data[envoy.CertificateFile], secret.Data[envoy.KeyFile])
	if err != nil || len(pair.Certificate) != 1 {
		return nil
	}
	if found, err := identityIn(pair.Leaf); err != nil || found != i {
		return nil
	}
	return pair.Leaf
}

// Write writes the Tunnel's Secret if it is not current. Write keeps a certificate that
// is not due for renewal. If a Secret with this name belongs to another owner, Write
// returns a *tunnel.Failure with [conditions.ReasonObjectTaken].
func (a *Authority) Write(ctx context.Context, t *v1alpha1.Tunnel) error {
	s, err := a.current(ctx)
	if err != nil {
		return err
	}
	secret, key := &corev1.Secret{}, secretKey(t)
	found := issued{}
	err = a.o.Live.Get(ctx, key, secret)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read Secret %s: %w", key, err)
	case err == nil && !connector.IsManagedBy(secret, t):
		return tunnel.ObjectTaken(t, "Secret", key)
	case err == nil:
		if found, err = a.inspect(t, secret); err != nil {
			return err
		}
	}
	now := a.o.Now()
	if found.isCurrent(s, now) {
		a.remember(t, found)
		return nil
	}
	if !found.isUsable(s, now) {
		secret.Data = nil
	}
	return a.apply(ctx, t, s, secret.Data)
}

// apply applies the Tunnel's Secret. It issues a certificate unless data contains one.
func (a *Authority) apply(ctx context.Context, t *v1alpha1.Tunnel, s *authorities, data map[string][]byte) error {
	files, err := envoy.SDSFiles()
	if err != nil {
		return err
	}
	certificate, key := data[envoy.CertificateFile], data[envoy.KeyFile]
	if certificate == nil {
		client, err := s.active.issueClient(a.identityOf(t), a.o.Now())
		if err != nil {
			return err
		}
		if certificate, key, err = client.encode(); err != nil {
			return err
		}
	}
	content := maps.Clone(files)
	content[envoy.CertificateFile], content[envoy.KeyFile], content[envoy.CAFile] = certificate, key, s.bundle()
	if err := a.o.Client.Apply(ctx, connector.IdentitySecret(t, content), a.o.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply Secret %s: %w", secretKey(t), err)
	}
	return nil
}

func secretKey(t *v1alpha1.Tunnel) types.NamespacedName {
	return types.NamespacedName{Namespace: t.Namespace, Name: connector.IdentitySecretName(t)}
}

// The mutex protects what is known about the Secrets of Tunnels.

func (a *Authority) issuedFor(t *v1alpha1.Tunnel) (issued, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, ok := a.issued[t.Name]
	return i, ok && i.tunnel == t.UID
}

func (a *Authority) remember(t *v1alpha1.Tunnel, i issued) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.issued[t.Name] = i
}

func (a *Authority) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.issued, name)
}

// forgetOthers forgets the Secrets of all Tunnels except the named ones.
func (a *Authority) forgetOthers(names map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.issued, func(name string, _ issued) bool { return !names[name] })
}
