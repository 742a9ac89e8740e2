package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// letGo gives back what the Gateway has at Cloudflare and in its namespace, in
// an order that can be taken up again after every step: the connectors, the
// tunnel's stale connections, the tunnel, the Secret with its token. It returns why that is
// not done yet, or "", and when to come back.
func (ts *tunnels) letGo(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, settings *gateway.Settings) (string, time.Duration) {
	t.settings = settings
	if !t.leaving {
		// Whatever kept a push waiting does not keep the deletion waiting.
		t.leaving, t.fault, t.turn = true, fault{}, awaited{}
	}
	_ = ts.use(ctx, t) // one that cannot be opened is told when it is needed
	if wait := max(t.fault.wait(ts.now(), ""), t.turn.wait(ts.now(), "")); wait > 0 && t.policy(g) != state.DeletionRetain {
		return cmp.Or(t.fault.message, messageKept), wait
	}
	err := ts.giveBack(provider.WithTurn(provider.WithPriority(ctx, provider.PriorityDeletion), deletionRequests), t, g)
	if err == nil {
		return "", 0
	}
	if stopping, ok := errors.AsType[*stoppingError](err); ok {
		return fmt.Sprintf("%s At present %v.", messageKept, stopping), stopInterval
	}
	if wait, turn := itsTurn(err); turn {
		t.turn = awaited{until: ts.now().Add(wait)}
		return cmp.Or(t.fault.message, messageKept), wait
	}
	return ts.failed(ctx, t, g, err, &t.fault, attempt{
		outcome: messageKept, event: "DeletionFailed", action: "Delete", log: "the tunnel is not deleted",
	})
}

// deletionRequests is how many requests a deletion usually takes: it looks for
// the tunnel by its name, reads it, and deletes it.
const deletionRequests = 3

var messageKept = fmt.Sprintf("The Gateway is kept until its tunnel is deleted; its annotation %s: %s lets it go at once and leaves the tunnel.",
	state.DeletionPolicyAnnotation, state.DeletionRetain)

func (ts *tunnels) giveBack(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	policy := t.policy(g)
	switch {
	case policy != state.DeletionRetain && policy != state.DeletionDelete:
		return &policyError{value: string(policy)}
	case policy == state.DeletionDelete && paused(g):
		return &pausedError{}
	}
	// A tunnel cannot be deleted under its connectors.
	if err := ts.connectors.stop(ctx, g, policy == state.DeletionDelete); err != nil {
		return err
	}
	if policy == state.DeletionRetain {
		ts.event(g, corev1.EventTypeNormal, "TunnelKept", "Delete",
			fmt.Sprintf("Tunnel %s and its configuration are left as they are.", cmp.Or(string(t.record.Tunnel), ts.tunnelName(t, g))))
	} else if err := ts.deleteTunnel(ctx, t, g); err != nil {
		return err
	}
	return ts.deleteToken(ctx, g)
}

// policy returns what is to become of the tunnel: as the Gateway's annotation
// says, or the settings, as they are or were last; else a tunnel that we made is
// deleted.
func (t *tunnel) policy(g *gatewayv1.Gateway) state.DeletionPolicy {
	if value, ok := g.Annotations[state.DeletionPolicyAnnotation]; ok {
		return state.DeletionPolicy(value)
	}
	byOrigin := state.DeletionDelete
	if t.record.Origin == state.OriginAdopted {
		byOrigin = state.DeletionRetain
	}
	if t.settings == nil {
		return cmp.Or(t.record.Policy, byOrigin)
	}
	return cmp.Or(t.wantedPolicy(), byOrigin)
}

// wantedPolicy is what the settings say, or "".
func (t *tunnel) wantedPolicy() state.DeletionPolicy {
	if t.settings == nil || t.settings.Spec.Tunnel == nil {
		return ""
	}
	return state.DeletionPolicy(ptr.Deref(t.settings.Spec.Tunnel.DeletionPolicy, ""))
}

// deleteTunnel deletes the Gateway's tunnel.
func (ts *tunnels) deleteTunnel(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if err := ts.use(ctx, t); err != nil {
		return err
	}
	if record := t.record; record.Tunnel != "" && record.Account != t.account.id {
		return &accountError{recorded: record.Account, configured: t.account.id}
	}
	id, err := ts.toDelete(ctx, t, g)
	if err != nil || id == "" {
		return err
	}
	// From here on nobody knows whether it is there, should the class come back.
	t.unknown()
	t.deleted = id
	err = deleteTunnel(ctx, t.account.provider, id)
	if errors.Is(err, provider.ErrLocallyManaged) {
		ts.event(g, corev1.EventTypeWarning, "TunnelKept", "Delete", fmt.Sprintf("Tunnel %s is locally managed and is left as it is.", id))
		return nil
	}
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("deleted the tunnel", "tunnel", id)
	return nil
}

// deleteTunnel deletes a tunnel with its stale connections. A locally managed
// tunnel is not touched.
func deleteTunnel(ctx context.Context, p provider.Provider, id provider.TunnelID) error {
	t, err := p.Tunnel(ctx, id)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case t.Local:
		return provider.ErrLocallyManaged
	}
	refused := p.DeleteTunnel(ctx, id)
	if !errors.Is(refused, provider.ErrConnected) {
		return refused
	}
	connectors, err := p.Connections(ctx, id)
	if err != nil {
		return err
	}
	for _, connector := range connectors {
		if connector.Connected {
			return refused
		}
		if err := p.Disconnect(ctx, id, connector.ID); err != nil {
			return err
		}
	}
	if len(connectors) == 0 {
		return refused
	}
	return p.DeleteTunnel(ctx, id)
}

// toDelete returns the Gateway's tunnel when it still has one of the names that
// it can have. One that is not recorded, because its creation broke off before,
// is found by the name that no other Gateway has; never by one that somebody
// gave it.
func (ts *tunnels) toDelete(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) (provider.TunnelID, error) {
	recorded := t.record.Tunnel
	if recorded != "" && (t.proven != "" || t.record.Origin == state.OriginAdopted) {
		return ts.unlessAnothers(ctx, t, g)
	}
	own, err := ts.findToDelete(ctx, t, g)
	switch {
	case err != nil || own == "" || own == recorded:
		return own, err
	case t.settings.TunnelName() != "":
		return "", nil
	}
	err = ts.checkName(ctx, t, g)
	if _, taken := errors.AsType[*takenError](err); taken {
		return "", nil // it is another Gateway's
	}
	return own, err
}

// unlessAnothers returns the recorded tunnel. The record alone does not say that
// one was adopted, and another Gateway may have it by now.
func (ts *tunnels) unlessAnothers(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) (provider.TunnelID, error) {
	recorded := t.record.Tunnel
	other, err := ts.recordedBy(ctx, recorded, g)
	if err != nil {
		return "", err
	}
	known := t.record.Origin != state.OriginAdopted || t.settings.ExistingTunnel() == recorded || t.settings == nil && t.recorded
	if other == nil && known {
		return recorded, nil
	}
	ts.event(g, corev1.EventTypeWarning, "TunnelKept", "Delete", fmt.Sprintf("Tunnel %s may be another's and is left as it is.", recorded))
	return "", nil
}

// findToDelete returns the recorded tunnel when it has one of the names that it
// can have, and else the one that has the Gateway's own name.
func (ts *tunnels) findToDelete(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) (provider.TunnelID, error) {
	var last provider.TunnelID
	for _, name := range slices.Compact([]string{ts.tunnelName(t, g), cmp.Or(t.record.Name, ts.name(g)), ts.name(g)}) {
		found, err := t.account.provider.FindTunnel(ctx, name)
		if err != nil && !errors.Is(err, provider.ErrNotFound) {
			return "", err
		}
		if t.record.Tunnel != "" && found.ID == t.record.Tunnel {
			return found.ID, nil
		}
		last = found.ID
	}
	if t.record.Tunnel != "" {
		ts.event(g, corev1.EventTypeWarning, "TunnelKept", "Delete", fmt.Sprintf(
			"Tunnel %s is gone, or is not called %s; it is left alone.", t.record.Tunnel, ts.tunnelName(t, g)))
	}
	return last, nil
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
