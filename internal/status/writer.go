package status

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Writer updates the statuses of objects.
type Writer struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server. The Writer uses it to retry after a conflict.
	Live client.Reader
	// ControllerName is the name of this controller in the status of routes.
	ControllerName gatewayv1.GatewayController
	// Now returns the transition time of conditions.
	Now func() time.Time
	// Notify is called once for each change that the Writer has written.
	Notify func(client.Object, Change)
}

// Write writes the report about a Gateway and its attached objects. It continues
// after an error, and returns all errors. It ignores objects that do not exist. It
// writes the status of the Gateway last, so that the other statuses are up to date
// when a client sees the new status of the Gateway.
func (w *Writer) Write(ctx context.Context, name types.NamespacedName, report gateway.Report) error {
	errs := []error{w.WriteAttached(ctx, report)}
	errs = append(errs, update(ctx, w, name, func(g *gatewayv1.Gateway) (bool, []Change) {
		if isForNewerGeneration(g, report.Gateway.Conditions) {
			return false, nil
		}
		before := g.Status
		merged, changed := MergeGateway(before, report.Gateway, w.now())
		g.Status = merged
		return changed, append(changes(before.Conditions, merged.Conditions, ""), listenerChanges(before.Listeners, merged.Listeners)...)
	}))
	return errors.Join(errs...)
}

// WriteAttached writes the statuses of the ListenerSets and routes in the report.
func (w *Writer) WriteAttached(ctx context.Context, report gateway.Report) error {
	var errs []error
	for _, set := range report.ListenerSets {
		errs = append(errs, update(ctx, w, set.NamespacedName, func(s *gatewayv1.ListenerSet) (bool, []Change) {
			if isForNewerGeneration(s, set.Status.Conditions) {
				return false, nil
			}
			before := s.Status
			merged, changed := MergeListenerSet(before, set.Status, w.now())
			s.Status = merged
			return changed, append(changes(before.Conditions, merged.Conditions, ""), listenerChanges(before.Listeners, merged.Listeners)...)
		}))
	}
	for _, route := range report.Routes {
		errs = append(errs, w.writeRoute(ctx, route, report.Owners))
	}
	return errors.Join(errs...)
}

func (w *Writer) writeRoute(ctx context.Context, route gateway.RouteStatus, owners map[gateway.Owner]bool) error {
	set := func(object metav1.Object) (bool, []Change) {
		for _, entry := range route.Parents {
			if isForNewerGeneration(object, entry.Conditions) {
				return false, nil
			}
		}
		spec, status, _ := gateway.CommonRoute(object)
		before := status.Parents
		merged, changed := MergeRoute(before, spec.ParentRefs, route, owners, w.ControllerName, w.now())
		status.Parents = merged
		return changed, parentChanges(before, merged, w.ControllerName, route.Namespace)
	}
	if route.Kind == gateway.KindGRPCRoute {
		return update(ctx, w, route.NamespacedName, func(r *gatewayv1.GRPCRoute) (bool, []Change) { return set(r) })
	}
	return update(ctx, w, route.NamespacedName, func(r *gatewayv1.HTTPRoute) (bool, []Change) { return set(r) })
}

// isForNewerGeneration reports whether a condition is for a newer generation than
// the object has. The object was then deleted and recreated after the decision,
// and another reconcile follows.
func isForNewerGeneration(object metav1.Object, conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.ObservedGeneration > object.GetGeneration() })
}

// WriteClass writes the status of a GatewayClass.
func (w *Writer) WriteClass(ctx context.Context, name string, status gatewayv1.GatewayClassStatus) error {
	return update(ctx, w, types.NamespacedName{Name: name}, func(c *gatewayv1.GatewayClass) (bool, []Change) {
		before := c.Status
		merged, changed := MergeClass(before, status, w.now())
		c.Status = merged
		return changed, changes(before.Conditions, merged.Conditions, "")
	})
}

func (w *Writer) now() metav1.Time { return metav1.NewTime(w.Now().Truncate(time.Second)) }

// update reads the object and calls set to change its status. It writes the status
// when set returns true. It reads from the cache first, and from the API server
// after a conflict.
func update[T any, P interface {
	*T
	client.Object
}](ctx context.Context, w *Writer, name types.NamespacedName, set func(P) (bool, []Change)) error {
	var reader client.Reader = w.Client
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		// A new object for each attempt: decoding into a used object would keep
		// fields that no longer exist.
		object := P(new(T))
		if err := reader.Get(ctx, name, object); err != nil {
			return err
		}
		reader = w.Live
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
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	kind := reflect.TypeFor[T]().Name()
	if apierrors.IsConflict(err) {
		return fmt.Errorf("update status of %s %s after repeated conflicts: %w", kind, name, err)
	}
	return fmt.Errorf("update status of %s %s: %w", kind, name, err)
}
