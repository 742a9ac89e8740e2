package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// ErrAccessPoliciesInstalled means that the controller must restart because the CRD of
// AccessPolicies was installed.
var ErrAccessPoliciesInstalled = errors.New("the controller must restart to watch AccessPolicies")

// AccessPolicies says whether the controller knows the AccessPolicies. It watches them if
// their CRD existed when it started. After the CRD is removed, the cache no longer says
// which AccessPolicies exist, so that they are unknown until a restart.
type AccessPolicies struct {
	// watched is the UID of the CRD when the controller started. It is empty if there was
	// none.
	watched types.UID
	logger  logr.Logger
	now     func() time.Time
	// removed reports whether the watched CRD was removed.
	removed atomic.Bool
}

// NewAccessPolicies returns the AccessPolicies for the CRDs that [CheckCRDs] has found. It
// logs what a missing CRD means.
func NewAccessPolicies(crds CRDs, logger logr.Logger) *AccessPolicies {
	if crds.AccessPolicies == "" {
		logger.Info("AccessPolicies are unknown: their CRD is missing; every hostname is served, and no protection by Cloudflare Access ends",
			"crd", accessPolicyCRD, "solution", "install the CRD; the controller then restarts")
	}
	return &AccessPolicies{watched: crds.AccessPolicies, logger: logger, now: time.Now}
}

// accessPolicyCRD is the name of the CRD.
var accessPolicyCRD = kinds.AccessPolicy.Resource().String()

// isWatched reports whether the controller has watched AccessPolicies from its start. It is
// true in tests without an AccessPolicies.
func (a *AccessPolicies) isWatched() bool { return a == nil || a.watched != "" }

// Kinds returns the kinds that the controller watches from its start.
func (a *AccessPolicies) Kinds() []kinds.Kind {
	return kinds.Select(func(k kinds.Kind) bool {
		return k.IsRequired() || k.GVK() == kinds.AccessPolicy.GVK() && a.isWatched()
	})
}

// areKnown reports whether the cache contains the AccessPolicies of the cluster.
func (a *AccessPolicies) areKnown(ctx context.Context, cached client.Reader) (bool, error) {
	if a == nil {
		return true, nil
	}
	if a.watched == "" || a.removed.Load() {
		return false, nil
	}
	installed, err := findAccessPolicyCRD(ctx, cached)
	if err != nil {
		return false, err
	}
	if installed == a.watched {
		return true, nil
	}
	if !a.removed.Swap(true) {
		a.logger.Error(errors.New("the CRD was removed"), "AccessPolicies are unknown; no protection by Cloudflare Access ends until the CRD exists again",
			"crd", accessPolicyCRD, "solution", "install the CRD; the controller then restarts")
	}
	return false, nil
}

// findAccessPolicyCRD returns the UID of the CRD in the cache. It returns "" if there is
// none, or if it is being deleted.
func findAccessPolicyCRD(ctx context.Context, cached client.Reader) (types.UID, error) {
	crd := kinds.CustomResourceDefinition.NewWatched().(client.Object)
	err := cached.Get(ctx, client.ObjectKey{Name: accessPolicyCRD}, crd, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read the CRD %s: %w", accessPolicyCRD, err)
	}
	if err != nil || crd.GetDeletionTimestamp() != nil {
		return "", nil
	}
	return crd.GetUID(), nil
}

// Watch returns [ErrAccessPoliciesInstalled] when the controller must restart: another CRD
// exists than when it started. Until synced returns true, a removed CRD also requires a
// restart, because the sync of all kinds waits for this one. Watch returns nil when the
// context is canceled. Like [Namespaces.Watch], it waits for 30 seconds.
func (a *AccessPolicies) Watch(ctx context.Context, cached client.Reader, synced func() bool) error {
	change := awaitChange(ctx, a.logger, a.now, func(ctx context.Context) (string, error) {
		return a.change(ctx, cached, synced())
	})
	if change == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrAccessPoliciesInstalled, change)
}

// change describes why the controller must restart, or returns "".
func (a *AccessPolicies) change(ctx context.Context, cached client.Reader, synced bool) (string, error) {
	if _, err := a.areKnown(ctx, cached); err != nil {
		return "", err
	}
	installed, err := findAccessPolicyCRD(ctx, cached)
	switch {
	case err != nil || installed == a.watched:
		return "", err
	case installed != "":
		return "the CRD " + accessPolicyCRD + " was installed", nil
	case !synced:
		return "the CRD " + accessPolicyCRD + " was removed", nil
	}
	return "", nil
}

// accessPolicyReader returns [state.ErrNoAccessPolicies] while AccessPolicies are unknown.
type accessPolicyReader struct {
	client.Reader
	policies *AccessPolicies
}

// List implements client.Reader.
func (r accessPolicyReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.AccessPolicyList); ok {
		known, err := r.policies.areKnown(ctx, r.Reader)
		if err != nil {
			return err
		}
		if !known {
			return state.ErrNoAccessPolicies
		}
	}
	return r.Reader.List(ctx, list, opts...)
}
