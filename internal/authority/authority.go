package authority

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// Options configure an Authority.
type Options struct {
	// Client writes Secrets, and reads Tunnels from the cache.
	Client client.Client
	// Metadata reads Secret metadata from the cache.
	Metadata client.Reader
	// Live reads Secrets from the API server.
	Live client.Reader
	// Namespace and Name identify the Secret with the certificate authorities. The
	// Tunnels are in the same namespace.
	Namespace, Name string
	// ClusterID is the cluster ID in the identities.
	ClusterID string
	// Now returns the current time.
	Now        func() time.Time
	FieldOwner client.FieldOwner
	// Due is called for each Tunnel whose Secret exists or existed and is not current. It
	// may be called again until Write has written the Secret.
	Due func(*v1alpha1.Tunnel)
}

// Authority issues the certificates for the controller and for the Envoys beside
// connectors.
type Authority struct {
	o Options
	// flight makes concurrent calls share one synchronization with the authorities'
	// Secret.
	flight singleflight.Group
	// stored is this Secret as last known; nil before the first read.
	stored atomic.Pointer[stored]

	mu sync.Mutex
	// issued contains the Secrets by Tunnel name.
	issued map[string]issued
	// server is the controller's certificate; nil before the first connection.
	server  *signer
	checked check
}

// check is what the last check of all Tunnels found. It is zero before the first check.
type check struct {
	at     time.Time
	bundle string
}

// New returns an Authority. It does not access the API server yet.
func New(o Options) *Authority { return &Authority{o: o, issued: map[string]issued{}} }

const (
	// checkInterval is how often the leader checks that the Secret with the authorities
	// is unchanged.
	checkInterval = time.Minute
	// tunnelInterval is how often the leader checks the Secrets of all Tunnels.
	tunnelInterval = time.Hour
)

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Authority) NeedLeaderElection() bool { return true }

// Start maintains the certificate authorities, and calls Due for Tunnels whose Secrets must
// be written, until the context is canceled. It implements manager.Runnable.
func (a *Authority) Start(ctx context.Context) error {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		// The manager does not recover from a panic.
		if err := recovery.Call(ctx, func() error { return a.maintain(ctx) }); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("failed to maintain the certificate authority", "cause", err.Error(), "retryAfter", checkInterval.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// maintain restores the Secret with the authorities if it has changed. Once an hour,
// and when the bundle has changed, it checks all Tunnels. Without the Secret there is
// nothing to maintain until a Tunnel has a certificate.
func (a *Authority) maintain(ctx context.Context) error {
	s, err := a.refresh(ctx)
	if err != nil {
		return err
	}
	if s == nil {
		tunnels, err := a.listIssued(ctx)
		if err != nil || len(tunnels) == 0 {
			return err
		}
		return a.checkTunnels(ctx)
	}
	last, now := a.lastCheck(), a.o.Now()
	if age := now.Sub(last.at); last.bundle == string(s.bundle()) && age >= 0 && age < tunnelInterval {
		return nil
	}
	return a.checkTunnels(ctx)
}

// refresh returns the authorities, or nil if neither the Secret exists nor this process
// knows any. It reads them if the Secret has changed.
func (a *Authority) refresh(ctx context.Context) (*authorities, error) {
	known, cached := a.stored.Load(), secrets.Metadata(a.key())
	err := a.o.Metadata.Get(ctx, a.key(), cached)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the metadata of Secret %s: %w", a.key(), err)
	}
	switch {
	case known == nil && err != nil:
		return nil, nil
	case known != nil && err == nil && cached.ResourceVersion == known.resourceVersion:
		return a.current(ctx)
	}
	return a.synchronize(ctx, nil)
}

// checkTunnels advances the authorities, and calls Due for Tunnels whose Secrets must be
// written.
func (a *Authority) checkTunnels(ctx context.Context) error {
	before, err := a.current(ctx)
	if err != nil {
		return err
	}
	tunnels, err := a.listIssued(ctx)
	if err != nil {
		return err
	}
	distributed, err := a.distributed(ctx, before, tunnels)
	s, failure := a.synchronize(ctx, distributed)
	if failure != nil {
		return errors.Join(err, failure)
	}
	now := a.o.Now()
	for n := range tunnels {
		if found, _ := a.issuedFor(&tunnels[n]); !found.isCurrent(s, now) && ctx.Err() == nil {
			a.o.Due(&tunnels[n])
		}
	}
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.checked = check{at: now, bundle: string(s.bundle())}
	}
	return err
}

// listIssued returns the Tunnels whose Secrets exist, or have existed. It omits Tunnels
// without Envoys, which are retained or have ingress rules again: their certificates
// are not renewed, and a successor does not wait for their bundles.
func (a *Authority) listIssued(ctx context.Context) ([]v1alpha1.Tunnel, error) {
	list := &v1alpha1.TunnelList{}
	if err := a.o.Client.List(ctx, list, client.InNamespace(a.o.Namespace)); err != nil {
		return nil, fmt.Errorf("list Tunnels: %w", err)
	}
	var tunnels []v1alpha1.Tunnel
	names := map[string]bool{}
	for n := range list.Items {
		t := &list.Items[n]
		if t.Status.Phase == v1alpha1.TunnelRetained || !tunnel.UsesIdentity(t) {
			continue
		}
		_, known := a.issuedFor(t)
		err := a.o.Metadata.Get(ctx, secretKey(t), secrets.Metadata(secretKey(t)))
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read the metadata of Secret %s: %w", secretKey(t), err)
		case err == nil || known:
			tunnels, names[t.Name] = append(tunnels, *t), true
		}
	}
	a.forgetOthers(names)
	return tunnels, nil
}

// distributed returns the bundle if the Secrets of all Tunnels contain it, and
// otherwise nil. It reads the Secrets whose metadata has changed.
func (a *Authority) distributed(ctx context.Context, s *authorities, tunnels []v1alpha1.Tunnel) ([]byte, error) {
	bundle := s.bundle()
	var errs []error
	for n := range tunnels {
		found, err := a.look(ctx, &tunnels[n])
		errs = append(errs, err)
		if err != nil || (found.tunnel != "" && !s.hasBundle(found.bundle)) {
			bundle = nil
		}
	}
	return bundle, errors.Join(errs...)
}

func (a *Authority) lastCheck() check {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.checked
}

// Expiry contains when certificates end.
type Expiry struct {
	// Authority is when the active certificate authority ends. It is zero before this
	// process has read it.
	Authority time.Time
	// Client is when the first client certificate ends. It is zero if there is none.
	Client time.Time
}

// Expiry returns when certificates end, for metrics.
func (a *Authority) Expiry() Expiry {
	var e Expiry
	if s := a.stored.Load(); s != nil {
		e.Authority = s.active.certificate.NotAfter
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.issued {
		if c := i.certificate; c != nil && (e.Client.IsZero() || c.NotAfter.Before(e.Client)) {
			e.Client = c.NotAfter
		}
	}
	return e
}
