package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
)

const (
	// changeCheckInterval is how often the configured namespaces and the CRD of AccessPolicies
	// are checked.
	changeCheckInterval = 5 * time.Second
	// minRunTime is how long the controller runs at least before it exits because of a
	// change.
	minRunTime = 30 * time.Second
)

// ErrNamespacesChanged means that the controller must restart because it can now work
// in other namespaces.
var ErrNamespacesChanged = errors.New("the controller must restart because its namespaces have changed")

// Namespaces is a configured list of namespaces. It excludes namespaces that do not
// exist or in which the controller lacks a permission, so that one namespace's owner
// cannot stop the controller from working in the others.
type Namespaces struct {
	// Served are the namespaces in which the controller can work.
	Served []string

	live    client.Client
	logger  logr.Logger
	watched []schema.GroupResource
	listed  []string
	now     func() time.Time
}

// FindNamespaces returns the listed namespaces in which the controller can work. For
// each other namespace it logs the cause and the solution. It returns an error if the
// controller can work in none of the listed namespaces, because an empty list means all
// namespaces.
//
// watched are the kinds that the controller watches.
func FindNamespaces(ctx context.Context, live client.Client, logger logr.Logger, listed []string, watched []kinds.Kind) (*Namespaces, error) {
	tenantKinds := slices.DeleteFunc(slices.Clone(watched), func(k kinds.Kind) bool { return !isTenantKind(k) })
	n, causes, err := findNamespaces(ctx, live, logger, listed, tenantKinds)
	if err != nil {
		return nil, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(causes)) {
		logger.Error(errors.New(causes[namespace]), "ignoring namespace", "namespace", namespace, "solution", namespaceSolution)
	}
	if len(listed) > 0 && len(n.Served) == 0 {
		return nil, fmt.Errorf("the controller cannot work in any of its namespaces: %s; %s", joinCauses(causes), namespaceSolution)
	}
	return n, nil
}

// isTenantKind reports whether the controller must be able to watch the kind to work in a
// namespace. It needs no Secrets: without them, it does not validate certificates.
func isTenantKind(kind kinds.Kind) bool {
	return !kind.ClusterScoped && !kind.OwnNamespace && kind.GVK() != kinds.Secret.GVK()
}

// FindSecretNamespaces returns the listed namespaces in which the controller can read
// Secrets. For each other namespace it logs the cause and the solution.
func FindSecretNamespaces(ctx context.Context, live client.Client, logger logr.Logger, listed []string) (*Namespaces, error) {
	n, causes, err := findNamespaces(ctx, live, logger, listed, []kinds.Kind{kinds.Secret})
	if err != nil {
		return nil, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(causes)) {
		logger.Error(errors.New(causes[namespace]), "not validating certificates in namespace", "namespace", namespace, "solution", namespaceSolution)
	}
	return n, nil
}

// findNamespaces returns the listed namespaces in which the controller can watch the
// kinds, and the cause for each other namespace.
func findNamespaces(ctx context.Context, live client.Client, logger logr.Logger, listed []string, watched []kinds.Kind) (*Namespaces, map[string]string, error) {
	n := &Namespaces{live: live, logger: logger, listed: listed, now: time.Now}
	for _, kind := range watched {
		n.watched = append(n.watched, kind.Resource())
	}
	causes := map[string]string{}
	for _, namespace := range listed {
		exists, err := n.exists(ctx, namespace)
		if err != nil {
			return nil, nil, err
		}
		cause, err := n.findProblem(ctx, namespace, exists)
		if err != nil {
			return nil, nil, err
		}
		if cause == "" {
			n.Served = append(n.Served, namespace)
		} else {
			causes[namespace] = cause
		}
	}
	return n, causes, nil
}

// namespaceSolution tells an administrator how to make a namespace usable.
const namespaceSolution = "create the namespace and run helm upgrade, which creates the Role and the RoleBinding in it; or remove the namespace from the list"

func joinCauses(causes map[string]string) string {
	var all []string
	for _, namespace := range slices.Sorted(maps.Keys(causes)) {
		all = append(all, namespace+": "+causes[namespace])
	}
	return strings.Join(all, "; ")
}

// exists reports whether the namespace exists in the API server.
func (n *Namespaces) exists(ctx context.Context, namespace string) (bool, error) {
	err := n.live.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	if err != nil && !isNotFound(err, namespace) {
		return false, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return err == nil, nil
}

// findProblem returns why the controller cannot work in the namespace, or "".
func (n *Namespaces) findProblem(ctx context.Context, namespace string, exists bool) (string, error) {
	if !exists {
		return "the namespace does not exist", nil
	}
	missing, err := missingPermissions(ctx, n.live, namespace, n.watched)
	if err != nil || len(missing) == 0 {
		return "", err
	}
	return "the controller has no permission to " + strings.Join(missing, ", "), nil
}

// Includes reports whether the namespace is in the configured list, even if the
// namespace does not exist. An empty list includes all namespaces.
func (n *Namespaces) Includes(namespace string) bool {
	return len(n.listed) == 0 || slices.Contains(n.listed, namespace)
}

// Watch returns [ErrNamespacesChanged] when the controller must restart: it can now work
// in a namespace that it has ignored, or a namespace that it serves no longer exists.
// Until synced returns true, a lost permission in a served namespace also requires a
// restart, because the sync of all namespaces waits for this one. Watch reads namespaces
// from the cache and returns nil when the context is canceled.
//
// Watch returns the error only after it has seen the same change twice and the
// controller has run for at least 30 seconds, so that a tenant cannot stop the
// controller by continually changing a namespace.
func (n *Namespaces) Watch(ctx context.Context, cached client.Reader, synced func() bool) error {
	if len(n.listed) == 0 {
		return nil
	}
	change := awaitChange(ctx, n.logger, n.now, func(ctx context.Context) (string, error) {
		return n.change(ctx, cached, synced())
	})
	if change == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNamespacesChanged, change)
}

// awaitChange calls find every few seconds, and returns the change that it has found twice
// in succession after the minimum run time, or "" when the context ends.
func awaitChange(ctx context.Context, logger logr.Logger, now func() time.Time, find func(context.Context) (string, error)) string {
	earliest, seen := now().Add(minRunTime), ""
	tick := time.NewTicker(changeCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-tick.C:
		}
		var change string
		err := recovery.Call(ctx, func() (err error) {
			change, err = find(ctx)
			return err
		})
		if err != nil {
			if ctx.Err() == nil {
				logger.Info("failed to check whether the controller must restart", "cause", err.Error())
			}
			continue
		}
		if change != "" && change == seen && !now().Before(earliest) {
			return change
		}
		seen = change
	}
}

// change describes how the usable namespaces differ from the served ones, or returns
// "". After the sync, it matters only whether a served namespace exists: its watches
// resume automatically when a lost permission is restored.
func (n *Namespaces) change(ctx context.Context, cached client.Reader, synced bool) (string, error) {
	var changes []string
	for _, namespace := range n.listed {
		err := cached.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read namespace %s from the cache: %w", namespace, err)
		}
		served, exists := slices.Contains(n.Served, namespace), err == nil
		if served && exists && synced {
			continue
		}
		cause, err := n.findProblem(ctx, namespace, exists)
		switch {
		case err != nil:
			return "", err
		case served && cause != "":
			changes = append(changes, namespace+" can no longer be served: "+cause)
		case !served && cause == "":
			changes = append(changes, namespace+" can now be served")
		}
	}
	return strings.Join(changes, "; "), nil
}
