package status

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// objectName identifies an object whose status is written.
type objectName struct {
	kind string
	types.NamespacedName
}

// String returns the kind and the name, as messages contain them.
func (o objectName) String() string { return o.kind + " " + o.NamespacedName.String() }

// write is one object's desired status.
type write struct {
	object objectName
	// desired is the report's part about the object. Two writes for the same object with
	// equal values write the same status.
	desired any
	// check reports whether the status in the cache differs from the desired status, and
	// returns the object's resource version in the cache.
	check func(context.Context) (changed bool, version string)
	// attempt writes the status unless it is up to date. It stops if isNewest returns
	// false.
	attempt func(ctx context.Context, isNewest func() bool) (attempted, error)
}

// attempted is the object as an attempt to write its status has read it.
type attempted struct {
	object  client.Object // nil if it could not be read
	version string
}

// attachedWrites returns the writes for the ListenerSets, routes and policies in the report
// that the comparison does not exclude.
func (w *Writer) attachedWrites(report gateway.Report, c comparison) []write {
	var writes []write
	for _, set := range differing(c, report.ListenerSets, func(r *gateway.Report) []gateway.ListenerSetStatus { return r.ListenerSets }, nameOfSet, isSameSet) {
		writes = append(writes, w.listenerSetWrite(set))
	}
	for _, route := range c.differingRoutes(report.Routes) {
		writes = append(writes, w.routeWrite(route, report.Owners))
	}
	for _, policy := range differing(c, report.Policies, func(r *gateway.Report) []gateway.PolicyStatus { return r.Policies }, nameOfPolicy, isSamePolicy) {
		writes = append(writes, w.policyWrite(policy, report.Owners))
	}
	for _, policy := range differing(c, report.AccessPolicies, func(r *gateway.Report) []gateway.AccessPolicyStatus { return r.AccessPolicies }, nameOfAccessPolicy, isSameAccessPolicy) {
		writes = append(writes, w.accessPolicyWrite(policy, report.Owners))
	}
	return writes
}

func nameOfSet(set gateway.ListenerSetStatus) objectName {
	return objectName{gateway.KindListenerSet, set.NamespacedName}
}

func nameOfRoute(route *gateway.RouteStatus) objectName {
	return objectName{route.Kind, route.NamespacedName}
}

func nameOfPolicy(policy gateway.PolicyStatus) objectName {
	return objectName{gateway.KindBackendTLSPolicy, policy.NamespacedName}
}

func nameOfAccessPolicy(policy gateway.AccessPolicyStatus) objectName {
	return objectName{gateway.KindAccessPolicy, policy.NamespacedName}
}

func (w *Writer) gatewayWrite(name types.NamespacedName, status gatewayv1.GatewayStatus) write {
	return newWrite(w, objectName{gateway.KindGateway, name}, status, func(g *gatewayv1.Gateway) (bool, []Change) {
		if isForNewerGeneration(g, status.Conditions) {
			return false, nil
		}
		before := g.Status
		merged, changed := MergeGateway(before, status, w.now())
		g.Status = merged
		return changed, append(changes(before.Conditions, merged.Conditions, ""), listenerChanges(before.Listeners, merged.Listeners)...)
	})
}

func (w *Writer) listenerSetWrite(set gateway.ListenerSetStatus) write {
	return newWrite(w, nameOfSet(set), set.Status, func(s *gatewayv1.ListenerSet) (bool, []Change) {
		if isForNewerGeneration(s, set.Status.Conditions) {
			return false, nil
		}
		before := s.Status
		merged, changed := MergeListenerSet(before, set.Status, w.now())
		s.Status = merged
		return changed, append(changes(before.Conditions, merged.Conditions, ""), listenerChanges(before.Listeners, merged.Listeners)...)
	})
}

func (w *Writer) routeWrite(route *gateway.RouteStatus, owners map[gateway.Owner]bool) write {
	set := func(object metav1.Object) (bool, []Change) {
		for _, entry := range route.Parents {
			if isForNewerGeneration(object, entry.Conditions) {
				return false, nil
			}
		}
		if route.Orphan != nil && object.GetGeneration() > route.Orphan.Generation {
			return false, nil // the route may have a parent again; another reconcile follows
		}
		spec, status, _ := gateway.CommonRoute(object)
		before := status.Parents
		merged, changed := MergeRoute(before, spec.ParentRefs, route, owners, w.ControllerName, w.now())
		if isForOlderGeneration(object, route.Parents) && losesLastEntry(before, merged, w.ControllerName) {
			return false, nil // another reconcile follows, which determines whether the route is an orphan
		}
		status.Parents = merged
		found := parentChanges(before, merged, w.ControllerName, route.Namespace)
		return changed, append(found, orphanChanges(before, merged, w.ControllerName, route.Orphan)...)
	}
	name, desired := nameOfRoute(route), routeReport{route.Parents, owners, route.Orphan}
	if route.Kind == gateway.KindGRPCRoute {
		return newWrite(w, name, desired, func(r *gatewayv1.GRPCRoute) (bool, []Change) { return set(r) })
	}
	return newWrite(w, name, desired, func(r *gatewayv1.HTTPRoute) (bool, []Change) { return set(r) })
}

// routeReport is a report's part about a route.
type routeReport struct {
	Parents []gatewayv1.RouteParentStatus
	Owners  map[gateway.Owner]bool
	Orphan  *gateway.Orphan
}

// isForNewerGeneration reports whether a condition is for a newer generation than
// the object has. The object was then deleted and recreated after the decision,
// and another reconcile follows.
func isForNewerGeneration(object metav1.Object, conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.ObservedGeneration > object.GetGeneration() })
}

// isForOlderGeneration reports whether a condition is for an older generation than the
// object has.
func isForOlderGeneration(object metav1.Object, entries []gatewayv1.RouteParentStatus) bool {
	return slices.ContainsFunc(entries, func(entry gatewayv1.RouteParentStatus) bool {
		return slices.ContainsFunc(entry.Conditions, func(c metav1.Condition) bool { return c.ObservedGeneration < object.GetGeneration() })
	})
}

// newWrite returns the write for an object. set changes the object's status, and reports
// whether it changes.
func newWrite[T any, P interface {
	*T
	client.Object
}](w *Writer, name objectName, desired any, set func(P) (bool, []Change)) write {
	return write{
		object: name, desired: desired,
		check: func(ctx context.Context) (bool, string) {
			// The reader shares the object with the cache: set replaces its status, but
			// changes nothing that the status refers to.
			object := P(new(T))
			if err := w.Client.Get(ctx, name.NamespacedName, object, client.UnsafeDisableDeepCopy); err != nil {
				return !apierrors.IsNotFound(err), ""
			}
			version := object.GetResourceVersion()
			changed, _ := set(object)
			return changed, version
		},
		attempt: func(ctx context.Context, isNewest func() bool) (attempted, error) {
			last, err := update(ctx, w, name.NamespacedName, set, isNewest)
			if client.IgnoreNotFound(err) == nil {
				err = nil
			}
			if apierrors.IsConflict(err) {
				err = fmt.Errorf("update status of %s after repeated conflicts: %w", name, err)
			} else if err != nil {
				err = fmt.Errorf("update status of %s: %w", name, err)
			}
			return last, err
		},
	}
}

// errOutdated means that a newer report exists.
var errOutdated = errors.New("the report is outdated")

// update reads the object and calls set to change its status. It writes the status
// when set returns true. It reads from the cache first, and from the API server
// after a conflict.
func update[T any, P interface {
	*T
	client.Object
}](ctx context.Context, w *Writer, name types.NamespacedName, set func(P) (bool, []Change), isNewest func() bool) (last attempted, err error) {
	var reader client.Reader = w.Client
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		// A new object for each attempt: decoding into a used object would keep
		// fields that no longer exist.
		object := P(new(T))
		if err := reader.Get(ctx, name, object); err != nil {
			return err
		}
		reader, last = w.Live, attempted{object, object.GetResourceVersion()}
		// After the read: a newer status that is written from now on causes a conflict.
		if !isNewest() {
			return errOutdated
		}
		changed, changes := set(object)
		if !changed {
			return nil
		}
		if err := w.Client.Status().Update(ctx, object); err != nil {
			return err
		}
		for _, change := range changes {
			w.Notify(object, change)
		}
		return nil
	})
	return last, err
}
