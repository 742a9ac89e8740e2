package authority

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
)

// The keys in the Secret with the authorities. Times have the form RFC 3339.
const (
	activeCertificateKey = "ca.crt"
	activeKeyKey         = "ca.key"
	nextCertificateKey   = "next.crt"
	nextKeyKey           = "next.key"
	nextSinceKey         = "next-distributed-since"
	previousKey          = "previous.crt"
	previousUntilKey     = "previous-until"
)

const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "tunnel-gateway"
)

// encode returns the Secret's data.
func (s *authorities) encode() (map[string][]byte, error) {
	data := map[string][]byte{}
	var err error
	if data[activeCertificateKey], data[activeKeyKey], err = s.active.encode(); err != nil {
		return nil, err
	}
	if s.next != nil {
		if data[nextCertificateKey], data[nextKeyKey], err = s.next.encode(); err != nil {
			return nil, err
		}
	}
	if !s.nextSince.IsZero() {
		data[nextSinceKey] = []byte(s.nextSince.UTC().Format(time.RFC3339))
	}
	if len(s.previous) > 0 {
		data[previousKey] = encodeCertificates(s.previous...)
		data[previousUntilKey] = []byte(s.previousUntil.UTC().Format(time.RFC3339))
	}
	return data, nil
}

// parseData returns the authorities in the Secret's data. If it can read only the
// active authority, it returns this authority and an error.
func parseData(data map[string][]byte) (*authorities, error) {
	active, err := parseSigner(data[activeCertificateKey], data[activeKeyKey])
	if err != nil {
		return nil, fmt.Errorf("read keys %s and %s: %w", activeCertificateKey, activeKeyKey, err)
	}
	s, err := parseOthers(data)
	if err != nil {
		return &authorities{active: active}, err
	}
	s.active = active
	return s, nil
}

// parseOthers returns the authorities without the active one.
func parseOthers(data map[string][]byte) (*authorities, error) {
	s := &authorities{}
	var err error
	if len(data[nextCertificateKey])+len(data[nextKeyKey]) > 0 {
		if s.next, err = parseSigner(data[nextCertificateKey], data[nextKeyKey]); err != nil {
			return nil, fmt.Errorf("read keys %s and %s: %w", nextCertificateKey, nextKeyKey, err)
		}
	}
	if s.next != nil {
		if s.nextSince, err = parseTime(data[nextSinceKey]); err != nil {
			return nil, fmt.Errorf("read key %s: %w", nextSinceKey, err)
		}
	}
	if s.previous, err = parseAuthorities(data[previousKey]); err != nil {
		return nil, fmt.Errorf("read key %s: %w", previousKey, err)
	}
	if s.previousUntil, err = parseTime(data[previousUntilKey]); err != nil || (s.previousUntil.IsZero() != (len(s.previous) == 0)) {
		return nil, errors.Join(fmt.Errorf("key %s does not match key %s", previousUntilKey, previousKey), err)
	}
	return s, nil
}

// parseTime returns the time, or the zero time for an empty text.
func parseTime(text []byte) (time.Time, error) {
	if len(text) == 0 {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, string(text))
}

// stored is what the Secret contained.
type stored struct {
	*authorities
	resourceVersion string
}

// errNone is the error from a server without authorities.
var errNone = errors.New("no Tunnel has a certificate yet")

// existing is like current, but never creates the first authorities: no client can connect
// before a Tunnel has a certificate.
func (a *Authority) existing(ctx context.Context) (*authorities, error) {
	if a.stored.Load() == nil {
		switch err := a.o.Metadata.Get(ctx, a.key(), secrets.Metadata(a.key())); {
		case apierrors.IsNotFound(err):
			return nil, errNone
		case err != nil:
			return nil, fmt.Errorf("read the metadata of Secret %s: %w", a.key(), err)
		}
	}
	return a.current(ctx)
}

// current returns the authorities with a valid active one. It reads or creates them if
// this process has none.
func (a *Authority) current(ctx context.Context) (*authorities, error) {
	if s := a.stored.Load(); s != nil && isValid(s.active.certificate, a.o.Now()) {
		return s.authorities, nil
	}
	return a.synchronize(ctx, nil)
}

// synchronizationTimeout limits reading and writing the Secret.
const synchronizationTimeout = 30 * time.Second

// synchronize reads the Secret, advances the authorities, and writes them if the Secret
// does not contain them. distributed is the bundle that the Secrets of all Tunnels
// contain; nil if they differ, or if this is unknown. Concurrent calls share the first
// call's result.
func (a *Authority) synchronize(ctx context.Context, distributed []byte) (*authorities, error) {
	result := a.flight.DoChan("", func() (any, error) {
		// Other callers wait for the result, so the first caller must not cancel it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), synchronizationTimeout)
		defer cancel()
		return a.attempt(ctx, distributed)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*authorities), nil
	}
}

// maxAttempts limits the attempts to write the Secret while other processes write it.
const maxAttempts = 5

// attempt synchronizes until no other process has written the Secret in the meantime.
func (a *Authority) attempt(ctx context.Context, distributed []byte) (*authorities, error) {
	var err error
	for range maxAttempts {
		var s *stored
		if s, err = a.synchronizeOnce(ctx, distributed); err == nil {
			a.stored.Store(s)
			return s.authorities, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return nil, err
}

func (a *Authority) synchronizeOnce(ctx context.Context, distributed []byte) (*stored, error) {
	secret, key := &corev1.Secret{}, a.key()
	err := a.o.Live.Get(ctx, key, secret)
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	found, err := a.choose(ctx, secret, exists)
	if err != nil {
		return nil, err
	}
	next, err := found.advance(a.o.Now(), found.hasBundle(distributed))
	if err != nil {
		return nil, err
	}
	data, err := next.encode()
	if err != nil {
		return nil, err
	}
	if exists && maps.EqualFunc(secret.Data, data, slices.Equal) {
		return &stored{authorities: next, resourceVersion: secret.ResourceVersion}, nil
	}
	version, err := a.save(ctx, secret, exists, data)
	return &stored{authorities: next, resourceVersion: version}, err
}

// choose returns the authorities in the Secret. If the Secret is missing or damaged, it
// returns the authorities in memory, else the undamaged authorities, else new
// authorities.
func (a *Authority) choose(ctx context.Context, secret *corev1.Secret, exists bool) (*authorities, error) {
	found, cause := parseData(secret.Data)
	remembered, logger := a.stored.Load(), log.FromContext(ctx).WithValues("secret", a.key().String())
	switch {
	case exists && cause == nil:
		return found, nil
	case exists && secret.Labels[managedByLabel] != managedBy:
		return nil, fmt.Errorf("secret %s exists and does not belong to this controller; delete it", a.key())
	case remembered != nil && exists:
		logger.Info("restoring the damaged certificate authority", "cause", cause.Error())
		return remembered.authorities, nil
	case remembered != nil:
		logger.Info("restoring the deleted certificate authority")
		return remembered.authorities, nil
	case found != nil:
		logger.Info("repairing the damaged certificate authority", "cause", cause.Error())
		return found, nil
	case exists:
		logger.Info("replacing the damaged certificate authority", "cause", cause.Error())
	default:
		logger.Info("creating the certificate authority")
	}
	return newAuthorities(a.o.Now())
}

// save writes the Secret, unless another process has written it since it was read, and
// returns its version.
func (a *Authority) save(ctx context.Context, secret *corev1.Secret, exists bool, data map[string][]byte) (string, error) {
	if !exists {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: a.o.Namespace, Name: a.o.Name, Labels: map[string]string{managedByLabel: managedBy},
		}, Data: data}
		if err := a.o.Client.Create(ctx, secret, a.o.FieldOwner); err != nil {
			return "", fmt.Errorf("create Secret %s: %w", a.key(), err)
		}
		return secret.ResourceVersion, nil
	}
	patch := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
	secret.Data = data
	if err := a.o.Client.Patch(ctx, secret, patch, a.o.FieldOwner); err != nil {
		return "", fmt.Errorf("patch Secret %s: %w", a.key(), err)
	}
	return secret.ResourceVersion, nil
}

func (a *Authority) key() types.NamespacedName {
	return types.NamespacedName{Namespace: a.o.Namespace, Name: a.o.Name}
}
