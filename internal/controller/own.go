package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// claim puts finalizer and record on the Gateway, in one write and before
// there is anything that could be orphaned.
func (ts *tunnels) claim(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if holder := t.record.Controller; holder != "" && holder != ts.controllerName {
		return &heldError{controller: holder}
	}
	record := t.record
	if record.Controller == "" {
		record = state.Record{Controller: ts.controllerName, Account: ts.account}
	}
	err := ts.changeFinalizers(ctx, g, func(o client.Object) bool {
		added := controllerutil.AddFinalizer(o, state.Finalizer)
		if added || t.record.Controller == "" {
			setRecord(o, record)
			return true
		}
		return false
	})
	if err != nil {
		return err
	}
	t.record = record
	return nil
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

// writeRecord puts the record into the Gateway's annotation.
func (ts *tunnels) writeRecord(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, record state.Record) error {
	changed := g.DeepCopy()
	setRecord(changed, record)
	if err := ts.client.Patch(ctx, changed, client.MergeFrom(g)); err != nil {
		return fmt.Errorf("recording the tunnel on the Gateway: %w", err)
	}
	t.record = record
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
	return ts.changeFinalizers(ctx, g, func(o client.Object) bool {
		annotations := maps.Clone(o.GetAnnotations())
		delete(annotations, state.RecordAnnotation)
		o.SetAnnotations(annotations)
		return controllerutil.RemoveFinalizer(o, state.Finalizer)
	})
}

func (ts *tunnels) changeFinalizers(ctx context.Context, g *gatewayv1.Gateway, change func(client.Object) bool) error {
	return changeFinalizers(ctx, ts.client, ts.live, g, change)
}

// changeFinalizers changes the list as a whole, so it insists on the version
// that it read: another's finalizer must not get lost.
func changeFinalizers(ctx context.Context, c client.Client, live client.Reader, object client.Object, change func(client.Object) bool) error {
	if !change(object.DeepCopyObject().(client.Object)) {
		return nil
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		// Reading into an object that is not empty would keep what is gone.
		current := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
		if err := live.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
			return err
		}
		before := current.DeepCopyObject().(client.Object)
		if current.GetUID() != object.GetUID() || !change(current) {
			return nil
		}
		return c.Patch(ctx, current, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the finalizers of %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// letGo deletes the Gateway's tunnel if we made it, and leaves one that we did
// not make as it is. It returns why that is not done yet, or "", and when to
// come back.
func (ts *tunnels) letGo(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) (string, time.Duration) {
	if wait := t.fault.wait(ts.now()); wait > 0 {
		return t.fault.message, wait
	}
	err := ts.deleteTunnel(ctx, t, g)
	if err == nil {
		return "", 0
	}
	wait := t.fault.add(err, ts.now())
	t.fault.message = fmt.Sprintf("The Gateway is kept until its tunnel is deleted. %s It is tried again in %s.", explain(err), wait.Round(time.Second))
	logFault(ctx, err, "the tunnel is not deleted", t.record.Tunnel, wait)
	if t.fault.count == 1 {
		ts.event(g, corev1.EventTypeWarning, "DeletionFailed", "Delete", t.fault.message)
	}
	return t.fault.message, wait
}

func (ts *tunnels) deleteTunnel(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	record, err := ts.recordForDeletion(ctx, t, g)
	if err != nil || record.Tunnel == "" {
		return err
	}
	if record.Account != ts.account {
		return &accountError{recorded: record.Account, configured: ts.account}
	}
	if record.Origin != state.OriginCreated {
		ts.event(g, corev1.EventTypeNormal, "TunnelKept", "Delete", fmt.Sprintf("Tunnel %s was not made for this Gateway and is left as it is.", record.Tunnel))
		return nil
	}
	if err := ts.provider.DeleteTunnel(ctx, record.Tunnel); err != nil {
		return err
	}
	log.FromContext(ctx).Info("deleted the tunnel", "tunnel", record.Tunnel)
	return nil
}

// recordForDeletion returns the record, also of a tunnel whose creation broke
// off before it was recorded: such a tunnel has no rules.
func (ts *tunnels) recordForDeletion(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) (state.Record, error) {
	if t.record.Tunnel != "" {
		return t.record, nil
	}
	found, err := ts.provider.FindTunnel(ctx, ts.name(g))
	if errors.Is(err, provider.ErrNotFound) {
		return state.Record{}, nil
	}
	if err != nil {
		return state.Record{}, err
	}
	if err := ts.read(ctx, t, found.ID); err != nil {
		return state.Record{}, err
	}
	if len(t.remote.Ingress) > 0 {
		return state.Record{Account: ts.account, Tunnel: found.ID, Origin: state.OriginAdopted}, nil
	}
	return state.Record{Account: ts.account, Tunnel: found.ID, Origin: state.OriginCreated}, nil
}
