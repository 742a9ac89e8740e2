package controller

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
)

// signingKey is the Secret with the key that signs the comments of DNS records and the tags of
// applications. The controller creates it, and never changes it: a lost key is the
// administrator's to restore, because what it signed cannot be verified with another one.
type signingKey struct {
	client   client.Client
	metadata client.Reader // the cache
	live     client.Reader
	name     types.NamespacedName

	mu              sync.Mutex
	resourceVersion string
	key             []byte
}

func newSigningKey(d dependencies, o Options) *signingKey {
	return &signingKey{client: d.client, metadata: d.metadata, live: d.live, name: types.NamespacedName{Namespace: o.Namespace, Name: o.SigningKeySecret}}
}

// read returns the key. If the Secret does not exist, read creates it on request; otherwise
// it returns no key. It returns no key and a problem if the Secret contains no valid key,
// and an error if it could not be read or created.
func (k *signingKey) read(ctx context.Context, create bool) (key []byte, problem string, err error) {
	k.mu.Lock()
	version, last := k.resourceVersion, k.key
	k.mu.Unlock()
	cached := secrets.Metadata(k.name)
	if err := k.metadata.Get(ctx, k.name, cached); err == nil && version != "" && cached.ResourceVersion == version {
		return last, "", nil
	}
	secret := &corev1.Secret{}
	err = k.live.Get(ctx, k.name, secret)
	if isNotFound(err, k.name.Name) {
		if !create {
			return nil, "", nil
		}
		secret, err = k.create(ctx)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read Secret %s with the signing key: %w", k.name, err)
	}
	if key, err = secrets.SigningKey(secret); err != nil {
		return nil, fmt.Sprintf("Secret %s has no valid signing key: %s. Restore the key, or delete the Secret; with a new key, the controller no longer recognizes its DNS records and applications.", k.name, err), nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.resourceVersion, k.key = secret.ResourceVersion, key
	return k.key, "", nil
}

// create creates the Secret with a new key, or returns the Secret that another process has
// created meanwhile.
func (k *signingKey) create(ctx context.Context) (*corev1.Secret, error) {
	key := make([]byte, secrets.SigningKeySize)
	_, _ = rand.Read(key) // never returns an error
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.name.Namespace, Name: k.name.Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "tunnel-gateway"}},
		Data:       map[string][]byte{secrets.SigningKeyField: key},
	}
	err := k.client.Create(ctx, secret, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
		secret = &corev1.Secret{}
		return secret, k.live.Get(ctx, k.name, secret)
	}
	if err != nil {
		return nil, err
	}
	log.FromContext(ctx).Info("created the key that signs DNS records and applications", "secret", k.name.String())
	return secret, nil
}
