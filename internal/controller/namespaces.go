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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// namespaceCheckInterval is the time between two looks at the listed namespaces.
	namespaceCheckInterval = 5 * time.Second
	// minRunTime is how long the controller runs at least before it ends because
	// of a namespace.
	minRunTime = 30 * time.Second
)

// ErrNamespacesChanged says that the controller has to be started again, to work
// in other namespaces of its list than now.
var ErrNamespacesChanged = errors.New("the controller has to start again to work in other namespaces")

// Namespaces are the namespaces of a list. The owner of one of them must not be
// able to keep the controller from working in the others: those that do not
// exist, or in which the controller lacks a permission, are left out.
type Namespaces struct {
	// Served are the namespaces that are not left out.
	Served []string

	live    client.Client
	logger  logr.Logger
	watched []resource
	listed  []string
	now     func() time.Time
}

// FindNamespaces returns which of the listed namespaces the controller can work
// in, and logs why it cannot work in each other one, and what to do. An empty list
// stands for all namespaces, so it is an error if none of a list can be served.
func FindNamespaces(ctx context.Context, live client.Client, logger logr.Logger, listed []string) (*Namespaces, error) {
	kinds := slices.DeleteFunc(inputKinds(), func(object client.Object) bool { return kindOf(object) == "Secret" })
	n, causes, err := findNamespaces(ctx, live, logger, listed, kinds)
	if err != nil {
		return nil, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(causes)) {
		logger.Error(errors.New(causes[namespace]), "a namespace of the list is left out: nothing in it is served", "namespace", namespace, "remedy", namespaceFix)
	}
	if len(listed) > 0 && len(n.Served) == 0 {
		return nil, fmt.Errorf("the controller can work in none of its namespaces: %s; %s", listCauses(causes), namespaceFix)
	}
	return n, nil
}

// FindSecretNamespaces returns in which of the listed namespaces the controller can
// read Secrets, and logs why it cannot in each other one.
func FindSecretNamespaces(ctx context.Context, live client.Client, logger logr.Logger, listed []string) (*Namespaces, error) {
	n, causes, err := findNamespaces(ctx, live, logger, listed, []client.Object{secretMetadata(types.NamespacedName{})})
	if err != nil {
		return nil, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(causes)) {
		logger.Error(errors.New(causes[namespace]), "the certificates in a namespace are not checked", "namespace", namespace, "remedy", namespaceFix)
	}
	return n, nil
}

// findNamespaces returns in which of the listed namespaces the kinds can be
// watched, and why not in each other one.
func findNamespaces(ctx context.Context, live client.Client, logger logr.Logger, listed []string, kinds []client.Object) (*Namespaces, map[string]string, error) {
	n := &Namespaces{live: live, logger: logger, listed: listed, now: time.Now}
	for _, object := range kinds {
		found, err := resourceOf(object, live.Scheme(), live.RESTMapper())
		if err != nil {
			return nil, nil, err
		}
		if found.namespaced {
			n.watched = append(n.watched, found)
		}
	}
	causes := map[string]string{}
	for _, namespace := range listed {
		there, err := n.exists(ctx, namespace)
		if err != nil {
			return nil, nil, err
		}
		cause, err := n.findProblem(ctx, namespace, there)
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

// namespaceFix tells an administrator what to do.
const namespaceFix = "create the namespace and run helm upgrade, which creates the Role and the RoleBinding in it; or remove the namespace from the list"

func listCauses(causes map[string]string) string {
	var all []string
	for _, namespace := range slices.Sorted(maps.Keys(causes)) {
		all = append(all, namespace+": "+causes[namespace])
	}
	return strings.Join(all, "; ")
}

// exists reports whether the API server has the namespace.
func (n *Namespaces) exists(ctx context.Context, namespace string) (bool, error) {
	err := n.live.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	if err != nil && !isNotFound(err, namespace) {
		return false, fmt.Errorf("reading namespace %s: %w", namespace, err)
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

// Includes reports whether the namespace is in scope. A namespace of the list stays in
// scope when it does not exist: its Gateways are then gone.
func (n *Namespaces) Includes(namespace string) bool {
	return len(n.listed) == 0 || slices.Contains(n.listed, namespace)
}

// Watch returns [ErrNamespacesChanged] when the controller has to start again,
// because a namespace that it left out can be served now, or one that it serves
// is gone. Until synced reports that everything has been read, a namespace that
// cannot be read any more counts too, because all others wait for it. Watch
// returns nil when the context ends. Namespaces are read from the cache.
//
// Watch has to see a change twice, and the controller has to have run for a while,
// so that a tenant cannot stop it by changing a namespace all the time.
func (n *Namespaces) Watch(ctx context.Context, cached client.Reader, synced func() bool) error {
	if len(n.listed) == 0 {
		return nil
	}
	earliest, seen := n.now().Add(minRunTime), ""
	tick := time.NewTicker(namespaceCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		change, err := n.change(ctx, cached, synced())
		if err != nil {
			if ctx.Err() == nil {
				n.logger.Info("cannot check whether the namespaces have changed", "cause", err.Error())
			}
			continue
		}
		if change != "" && change == seen && !n.now().Before(earliest) {
			return fmt.Errorf("%w: %s", ErrNamespacesChanged, change)
		}
		seen = change
	}
}

// change describes how the namespaces differ from those that are served, or
// returns "". Only the existence of a namespace matters once it has been read:
// its watches resume by themselves when a permission returns.
func (n *Namespaces) change(ctx context.Context, cached client.Reader, synced bool) (string, error) {
	var changes []string
	for _, namespace := range n.listed {
		err := cached.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("looking for namespace %s: %w", namespace, err)
		}
		served, there := slices.Contains(n.Served, namespace), err == nil
		if served && there && synced {
			continue
		}
		cause, err := n.findProblem(ctx, namespace, there)
		switch {
		case err != nil:
			return "", err
		case served && cause != "":
			changes = append(changes, namespace+" has to be left out: "+cause)
		case !served && cause == "":
			changes = append(changes, namespace+" can be served")
		}
	}
	return strings.Join(changes, "; "), nil
}
