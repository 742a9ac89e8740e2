package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// letGo gives back what the Gateway has at Cloudflare and in its namespace, in
// an order that can be taken up again after every step: the tunnel's stale
// connections, the tunnel, the Secret with its token. It returns why that is
// not done yet, or "", and when to come back.
func (ts *tunnels) letGo(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) (string, time.Duration) {
	if !t.leaving {
		// Whatever kept a push waiting does not keep the deletion waiting.
		t.leaving, t.fault = true, fault{}
	}
	if p, err := ts.credentials.provider(ctx); err == nil {
		t.use(p)
	}
	if wait := max(t.fault.wait(ts.now(), ""), t.turn.wait(ts.now(), "")); wait > 0 && !retained(g) {
		return cmp.Or(t.fault.message, messageKept), wait
	}
	err := ts.giveBack(provider.WithPriority(ctx, provider.PriorityDeletion), t, g)
	if err == nil {
		return "", 0
	}
	if wait, turn := itsTurn(err); turn {
		t.turn = awaited{until: ts.now().Add(wait)}
		return cmp.Or(t.fault.message, messageKept), wait
	}
	return ts.failed(ctx, t, g, err, &t.fault, attempt{
		outcome: messageKept, event: "DeletionFailed", action: "Delete", log: "the tunnel is not deleted",
	})
}

var messageKept = fmt.Sprintf("The Gateway is kept until its tunnel is deleted; its annotation %s: %s lets it go at once and leaves the tunnel.",
	state.DeletionPolicyAnnotation, state.DeletionRetain)

func (ts *tunnels) giveBack(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	switch policy := deletionPolicy(g); {
	case policy == state.DeletionRetain:
		ts.event(g, corev1.EventTypeNormal, "TunnelKept", "Delete",
			fmt.Sprintf("Tunnel %s and its configuration are left as they are, as the annotation %s asks.", ts.name(g), state.DeletionPolicyAnnotation))
	case policy != state.DeletionDelete:
		return &policyError{value: string(policy)}
	case paused(g):
		return &pausedError{}
	default:
		if err := ts.deleteTunnel(ctx, t, g); err != nil {
			return err
		}
	}
	return ts.deleteToken(ctx, g)
}

// deletionPolicy returns what is to become of the tunnel.
func deletionPolicy(g *gatewayv1.Gateway) state.DeletionPolicy {
	if value, ok := g.Annotations[state.DeletionPolicyAnnotation]; ok {
		return state.DeletionPolicy(value)
	}
	return state.DeletionDelete
}

func retained(g *gatewayv1.Gateway) bool { return deletionPolicy(g) == state.DeletionRetain }

// deleteTunnel deletes the Gateway's tunnel if we made it.
func (ts *tunnels) deleteTunnel(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	record := t.record
	if record.Tunnel != "" && record.Account != ts.credentials.ID {
		return &accountError{recorded: record.Account, configured: ts.credentials.ID}
	}
	if record.Origin == state.OriginAdopted {
		ts.event(g, corev1.EventTypeNormal, "TunnelKept", "Delete", fmt.Sprintf("Tunnel %s was not made for this Gateway and is left as it is.", record.Tunnel))
		return nil
	}
	p, err := ts.credentials.provider(ctx)
	if err != nil {
		return err
	}
	t.use(p)
	id, err := ts.toDelete(ctx, t, g)
	if err != nil || id == "" {
		return err
	}
	// From here on nobody knows whether it is there, should the class come back.
	t.unknown()
	t.deleted = id
	if err := p.DeleteTunnel(ctx, id); err != nil {
		return err
	}
	log.FromContext(ctx).Info("deleted the tunnel", "tunnel", id)
	return nil
}

// toDelete returns the tunnel that has the Gateway's name for it, recorded or
// not: the creation may have broken off before it was recorded. There is none
// when it is another Gateway's.
func (ts *tunnels) toDelete(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) (provider.TunnelID, error) {
	if t.proven {
		return t.record.Tunnel, nil
	}
	found, err := t.provider.FindTunnel(ctx, ts.name(g))
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return "", err
	}
	if t.record.Tunnel != "" && found.ID != t.record.Tunnel {
		log.FromContext(ctx).Info("the recorded tunnel is gone, or is not called as the Gateway's: it is left alone",
			"tunnel", t.record.Tunnel, "name", ts.name(g))
	}
	if found.ID == "" {
		return "", nil
	}
	err = ts.checkName(ctx, g)
	if _, taken := errors.AsType[*takenError](err); taken {
		return "", nil
	}
	return found.ID, err
}

// policyError: the Gateway asks for a deletion that does not exist.
type policyError struct{ value string }

func (e *policyError) Error() string {
	return fmt.Sprintf("the annotation %s is %q, and not %s or %s", state.DeletionPolicyAnnotation, e.value, state.DeletionDelete, state.DeletionRetain)
}

// pausedError: a paused Gateway is being deleted.
type pausedError struct{}

func (*pausedError) Error() string {
	return fmt.Sprintf("the Gateway is paused, so its tunnel is not touched; take the annotation %s off", state.PausedAnnotation)
}
