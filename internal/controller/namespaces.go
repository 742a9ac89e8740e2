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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// namespacesInterval is the time between two looks at the listed namespaces.
	namespacesInterval = 5 * time.Second
	// shortestRun is how long the controller runs at least before it ends because
	// of a namespace.
	shortestRun = 30 * time.Second
)

// ErrNamespacesChanged says that the controller has to be started again, to work
// in other namespaces of its list than now.
var ErrNamespacesChanged = errors.New("the controller has to start again to work in other namespaces")

// Namespaces are those that the controller was told to work in. Whoever has one
// of them must not be able to keep the controller from the others: those that
// are not there, or in which it may not read everything, are left out.
type Namespaces struct {
	// Served are the ones that the controller works in.
	Served []string
	// Roles are the names of the controller's own Roles, which it keeps while it
	// needs them.
	Roles []string

	live    client.Client
	logger  logr.Logger
	watched []resource
	listed  []string
	now     func() time.Time
}

// FindNamespaces returns which of the listed namespaces the controller can work
// in, and logs of each other one why not and what to do. None at all is an
// error: without namespaces, a cache is one of the whole cluster.
func FindNamespaces(ctx context.Context, live client.Client, logger logr.Logger, listed []string) (*Namespaces, error) {
	n := &Namespaces{live: live, logger: logger, listed: listed, now: time.Now}
	for _, object := range watchedKinds() {
		found, err := resourceOf(object, live.Scheme(), live.RESTMapper())
		if err != nil {
			return nil, err
		}
		if found.namespaced {
			n.watched = append(n.watched, found)
		}
	}
	causes := map[string]string{}
	for _, namespace := range listed {
		there, err := n.exists(ctx, namespace)
		if err != nil {
			return nil, err
		}
		found, cause, err := n.examine(ctx, namespace, there)
		if err != nil {
			return nil, err
		}
		if cause == "" {
			n.Served, n.Roles = append(n.Served, namespace), append(n.Roles, found.roles...)
			continue
		}
		causes[namespace] = cause
		logger.Error(errors.New(cause), "a namespace of the list is left out: nothing in it is served", "namespace", namespace, "remedy", remedy)
	}
	if len(listed) > 0 && len(n.Served) == 0 {
		return nil, fmt.Errorf("the controller can work in none of its namespaces: %s; %s", listCauses(causes), remedy)
	}
	slices.Sort(n.Roles)
	n.Roles = slices.Compact(n.Roles)
	return n, nil
}

// remedy is for whoever runs the controller.
const remedy = "make the namespace, then helm upgrade, which makes the Role and the RoleBinding in it; or take it off controller.namespaces"

func listCauses(causes map[string]string) string {
	var all []string
	for _, namespace := range slices.Sorted(maps.Keys(causes)) {
		all = append(all, namespace+": "+causes[namespace])
	}
	return strings.Join(all, "; ")
}

// exists looks for the namespace at the API server, with a list: more is not
// granted.
func (n *Namespaces) exists(ctx context.Context, namespace string) (bool, error) {
	var list corev1.NamespaceList
	err := n.live.List(ctx, &list, client.MatchingFields{metav1.ObjectNameField: namespace})
	if err != nil {
		return false, fmt.Errorf("looking for namespace %s: %w", namespace, err)
	}
	return len(list.Items) > 0, nil
}

// examine returns what the controller may do in the namespace, and why it cannot
// work in it, or "". One that is being deleted will do as long as everything in
// it can be read: it may have Gateways that are to be let go.
func (n *Namespaces) examine(ctx context.Context, namespace string, there bool) (rights, string, error) {
	if !there {
		return rights{}, "the namespace does not exist", nil
	}
	found, err := rightsIn(ctx, n.live, namespace, n.watched)
	if err != nil || len(found.missing) == 0 {
		return found, "", err
	}
	return found, "the controller has no right to " + strings.Join(found.missing, ", "), nil
}

// Watch returns [ErrNamespacesChanged] when the controller has to start again:
// a namespace that it left out can be worked in now, or one that it works in is
// gone. Until synced says that everything has been read, one that cannot be read
// any more counts as well: it keeps all others waiting. It returns nil when the
// context ends. Namespaces are read from the cache.
//
// A change has to be seen twice, and the controller to have run for a while, so
// that nobody can keep it from working by changing a namespace all the time.
func (n *Namespaces) Watch(ctx context.Context, cached client.Reader, synced func() bool) error {
	if len(n.listed) == 0 {
		return nil
	}
	earliest, seen := n.now().Add(shortestRun), ""
	tick := time.NewTicker(namespacesInterval)
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
				n.logger.Info("cannot look whether the namespaces have changed", "cause", err.Error())
			}
			continue
		}
		if change != "" && change == seen && !n.now().Before(earliest) {
			return fmt.Errorf("%w: %s", ErrNamespacesChanged, change)
		}
		seen = change
	}
}

// change says in what the namespaces differ from those that are served, or "".
// Of one that has been read only its existence matters: what the controller may
// not read for a while, it goes on reading by itself.
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
		_, cause, err := n.examine(ctx, namespace, there)
		switch {
		case err != nil:
			return "", err
		case served && cause != "":
			changes = append(changes, namespace+" has to be left out: "+cause)
		case !served && cause == "":
			changes = append(changes, namespace+" can be worked in")
		}
	}
	return strings.Join(changes, "; "), nil
}
