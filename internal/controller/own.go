package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// claim puts finalizer and record on the Gateway, in one write and before
// there is anything that could be orphaned, and puts back what somebody took
// off. It is decided on the live object: the cache may not know yet what an
// earlier leader recorded.
func (ts *tunnels) claim(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if ts.claimed(t, g) {
		return nil
	}
	var record state.Record
	var held error
	err := changeFinalizers(ctx, ts.client, ts.live, g, func(o client.Object) bool {
		live, _ := state.ReadRecord(o) // one that does not parse is no record
		if record, held = ts.toRecord(t, live); held != nil {
			return false
		}
		added := controllerutil.AddFinalizer(o, state.Finalizer)
		changed := o.GetAnnotations()[state.RecordAnnotation] != record.String()
		setRecord(o, record)
		return added || changed
	})
	switch {
	case apierrors.IsNotFound(err):
		return errGone
	case err != nil:
		return err
	case held != nil:
		return held
	}
	if record != t.record {
		// It is that of an earlier leader, or a user took off a wrong one.
		t.record = record
		t.unknown()
	}
	return nil
}

// toRecord returns what the live object's record has to be, given what it is.
func (ts *tunnels) toRecord(t *tunnel, live state.Record) (state.Record, error) {
	switch {
	case live.Controller != "" && live.Controller != ts.controllerName:
		return state.Record{}, &heldError{controller: live.Controller}
	case t.recorded && (live.Controller != "" || !t.fault.needsPerson):
		// What this process wrote is the newest. Only who was asked to may take it
		// off.
		return t.record, nil
	case live.Controller == ts.controllerName:
		return live, nil
	}
	return t.emptyRecord(ts.controllerName), nil
}

// claimed reports whether the cached Gateway has finalizer and record already.
func (ts *tunnels) claimed(t *tunnel, g *gatewayv1.Gateway) bool {
	return t.record.Controller == ts.controllerName &&
		controllerutil.ContainsFinalizer(g, state.Finalizer) &&
		g.Annotations[state.RecordAnnotation] == t.record.String()
}

// heldBy reports whether the Gateway has our finalizer; without a record nobody
// can tell whose it is.
func heldBy(controllerName gatewayv1.GatewayController, g *gatewayv1.Gateway) bool {
	record, _ := state.ReadRecord(g) // one that does not parse is no record
	return controllerutil.ContainsFinalizer(g, state.Finalizer) && (record.Controller == "" || record.Controller == controllerName)
}

// holds reports whether the Gateway is kept by us: it has the finalizer, and
// the record names this controller. Where the record is lost, the class tells.
func (ts *tunnels) holds(loaded *state.Loaded) bool {
	if loaded.Gateway == nil || !controllerutil.ContainsFinalizer(loaded.Gateway, state.Finalizer) {
		return false
	}
	holder := ts.of(loaded).record.Controller
	return holder == ts.controllerName || holder == "" && loaded.Ours
}

// writeRecord puts the record into the annotation of this very Gateway, not of
// one that was made anew under its name.
func (ts *tunnels) writeRecord(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, record state.Record) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         g.UID,
		"annotations": map[string]string{state.RecordAnnotation: record.String()},
	}})
	if err != nil {
		return fmt.Errorf("marshalling the record: %w", err)
	}
	target := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}}
	if err := ts.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("recording the tunnel on the Gateway: %w", err)
	}
	t.record, t.recorded = record, true
	return nil
}

func setRecord(o client.Object, record state.Record) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[state.RecordAnnotation] = record.String()
	o.SetAnnotations(annotations)
}

// unclaim takes finalizer and record off the Gateway.
func (ts *tunnels) unclaim(ctx context.Context, g *gatewayv1.Gateway) error {
	err := changeFinalizers(ctx, ts.client, ts.live, g, func(o client.Object) bool {
		annotations := maps.Clone(o.GetAnnotations())
		delete(annotations, state.RecordAnnotation)
		o.SetAnnotations(annotations)
		return controllerutil.RemoveFinalizer(o, state.Finalizer)
	})
	return client.IgnoreNotFound(err)
}

// changeFinalizers changes the live object, when change says that there is
// something to write. The list of finalizers is replaced as a whole, so the
// write insists on the version that was read: another's finalizer must not get
// lost. An object that is gone, or was made anew, is not found.
func changeFinalizers(ctx context.Context, c client.Client, live client.Reader, object client.Object, change func(client.Object) bool) error {
	current := object.DeepCopyObject().(client.Object)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := live.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
			return err
		}
		if current.GetUID() != object.GetUID() {
			return apierrors.NewNotFound(schema.GroupResource{Group: gatewayv1.GroupName, Resource: fmt.Sprintf("%T", object)}, object.GetName())
		}
		before := current.DeepCopyObject().(client.Object)
		if !change(current) {
			return nil
		}
		return c.Patch(ctx, current, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("changing the finalizers of %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
