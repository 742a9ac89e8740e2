package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// maxNameLength is well below what the API takes.
const maxNameLength = 96

// name returns the name of the Gateway's tunnel, the same for ever. The tunnel
// of that name is the Gateway's, whoever remembers it or not: a cluster that is
// built anew under its old ID finds its tunnels by it.
func (ts *tunnels) name(g *gatewayv1.Gateway) string {
	parts := []string{ts.clusterID, g.Namespace, g.Name}
	return cut(strings.Join(parts, "-"), strings.Join(parts, "/"), maxNameLength)
}

// cut shortens a name that is longer than length, and tells it apart from
// others by the hash of the key.
func cut(name, key string, length int) string {
	if len(name) <= length {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	suffix := "-" + hex.EncodeToString(sum[:5])
	// A part of a DNS name may not end with what the cut could leave.
	return strings.TrimRight(name[:length-len(suffix)], "-.") + suffix
}

// ensure finds or creates the Gateway's tunnel, and records it before its first
// document.
func (ts *tunnels) ensure(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if err := ts.claim(ctx, t, g); err != nil {
		return err
	}
	if t.record.Tunnel != "" {
		return ts.keep(ctx, t, g)
	}
	if err := ts.checkName(ctx, g); err != nil {
		return err
	}
	found, err := t.provider.EnsureTunnel(ctx, provider.TunnelSpec{Name: ts.name(g)})
	if err != nil {
		return err
	}
	if found.Created {
		t.remote = created(ts.now(), ts.nextRead())
		ts.event(g, corev1.EventTypeNormal, "TunnelCreated", "Create", fmt.Sprintf("Created tunnel %s (%s).", found.Name, found.ID))
	} else {
		t.remote = remote{}
		ts.event(g, corev1.EventTypeNormal, "TunnelFound", "Create",
			fmt.Sprintf("Found tunnel %s (%s) again; it gets the configuration of this Gateway.", found.Name, found.ID))
	}
	t.proven = true
	return ts.writeRecord(ctx, t, g, state.Record{
		Controller: ts.controllerName, Account: ts.credentials.ID, Tunnel: found.ID, Origin: state.OriginCreated,
	})
}

// keep makes sure that a recorded tunnel is this Gateway's alone: a copy of a
// Gateway, made under another name, has the original's record.
func (ts *tunnels) keep(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if t.record.Account != ts.credentials.ID {
		return &accountError{recorded: t.record.Account, configured: ts.credentials.ID}
	}
	other, err := ts.recordedBy(ctx, t.record.Tunnel, g)
	if err != nil {
		return err
	}
	if other == nil {
		return nil
	}
	err = ts.prove(ctx, t, g)
	_, stranger := errors.AsType[*strangerError](err)
	sameRight := t.record.Origin == state.OriginAdopted || ts.name(other) == ts.name(g)
	switch {
	case stranger, err == nil && sameRight && older(other, g):
		ts.event(g, corev1.EventTypeWarning, "TunnelTaken", "Create", fmt.Sprintf(
			"Tunnel %s, which this Gateway's record names, belongs to Gateway %s; this one gets a tunnel of its own.",
			t.record.Tunnel, client.ObjectKeyFromObject(other)))
		return ts.drop(ctx, t, g)
	}
	return err
}

// drop forgets the recorded tunnel. The next attempt looks for one by name.
func (ts *tunnels) drop(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	t.unknown()
	err := ts.writeRecord(ctx, t, g, state.Record{Controller: ts.controllerName, Account: ts.credentials.ID})
	if err != nil {
		return err
	}
	return ts.ensure(ctx, t, g)
}

// lost drops the record of a tunnel that is deleted, and makes a new one. We
// may have begun that ourselves, while the class was another controller's.
func (ts *tunnels) lost(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if t.record.Tunnel != t.deleted {
		ts.event(g, corev1.EventTypeWarning, "TunnelLost", "Create",
			fmt.Sprintf("Tunnel %s was deleted by somebody else; unless another of its name is there, a new one is made, with a new address.", t.record.Tunnel))
	}
	return ts.drop(ctx, t, g)
}

// prove makes sure, before anything is changed, that the recorded tunnel has
// the name of this Gateway's: whoever may edit a Gateway could write another's
// into the record.
func (ts *tunnels) prove(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if t.proven || t.record.Origin == state.OriginAdopted {
		return nil
	}
	found, err := t.provider.FindTunnel(ctx, ts.name(g))
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	if err != nil || found.ID != t.record.Tunnel {
		return &strangerError{tunnel: t.record.Tunnel, name: ts.name(g)}
	}
	t.proven = true
	return nil
}

// checkName refuses a Gateway whose name for the tunnel is that of an older
// one: namespace and name are joined, so "team-a/web" and "team/a-web" are the
// same.
func (ts *tunnels) checkName(ctx context.Context, g *gatewayv1.Gateway) error {
	var others gatewayv1.GatewayList
	if err := ts.client.List(ctx, &others, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("looking for another Gateway of the tunnel's name: %w", err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		if other.UID == g.UID || ts.name(other) != ts.name(g) {
			continue
		}
		ours, err := ts.ours(ctx, other)
		if err != nil {
			return err
		}
		if ours && (older(other, g) || recorded(other) != "") {
			return &takenError{name: ts.name(g), gateway: client.ObjectKeyFromObject(other)}
		}
	}
	return nil
}

// ours reports whether the Gateway is of a class of this controller.
func (ts *tunnels) ours(ctx context.Context, g *gatewayv1.Gateway) (bool, error) {
	var class gatewayv1.GatewayClass
	err := ts.client.Get(ctx, client.ObjectKey{Name: string(g.Spec.GatewayClassName)}, &class)
	return err == nil && class.Spec.ControllerName == ts.controllerName, client.IgnoreNotFound(err)
}

// recordedBy returns another Gateway whose record names the tunnel too, the
// oldest if there are several, or nil.
func (ts *tunnels) recordedBy(ctx context.Context, id provider.TunnelID, g *gatewayv1.Gateway) (*gatewayv1.Gateway, error) {
	var list gatewayv1.GatewayList
	err := ts.client.List(ctx, &list, client.MatchingFields{state.IndexTunnel: string(id)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("looking for another owner of the tunnel: %w", err)
	}
	var oldest *gatewayv1.Gateway
	for i := range list.Items {
		if other := &list.Items[i]; other.UID != g.UID && (oldest == nil || older(other, oldest)) {
			oldest = other
		}
	}
	return oldest, nil
}

func recorded(g *gatewayv1.Gateway) provider.TunnelID {
	record, _ := state.ReadRecord(g) // one that does not parse is no record
	return record.Tunnel
}

// older is the order in which Gateways have a right to a tunnel.
func older(a, b *gatewayv1.Gateway) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
}

// takenError: another Gateway has an older right to the tunnel's name.
type takenError struct {
	name    string
	gateway types.NamespacedName
}

func (e *takenError) Error() string {
	return fmt.Sprintf("tunnel %s belongs to Gateway %s, whose namespace and name give the same name of a tunnel; rename one of the two", e.name, e.gateway)
}

// strangerError: the record names a tunnel that has not the name of ours.
type strangerError struct {
	tunnel provider.TunnelID
	name   string
}

func (e *strangerError) Error() string {
	return fmt.Sprintf("tunnel %s, which the annotation %s names, is not called %s at Cloudflare, so it may be another's and is not touched; "+
		"give it that name again, or take the annotation off to get the tunnel of that name", e.tunnel, state.RecordAnnotation, e.name)
}
