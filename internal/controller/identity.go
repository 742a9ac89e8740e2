package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
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
	return connector.Shorten(strings.Join(parts, "-"), maxNameLength, strings.Join(parts, "/"))
}

// tunnelName is the name, unless the settings give another one.
func (ts *tunnels) tunnelName(t *tunnel, g *gatewayv1.Gateway) string {
	return cmp.Or(t.settings.TunnelName(), ts.name(g))
}

// ensure finds, adopts or creates the Gateway's tunnel, and records it before
// its first document.
func (ts *tunnels) ensure(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if err := ts.claim(ctx, t, g); err != nil {
		return err
	}
	switch existing := t.settings.ExistingTunnel(); {
	case t.record.Tunnel != "":
		return ts.keep(ctx, t, g)
	case existing != "":
		return ts.adopt(ctx, t, g, existing)
	}
	if err := ts.checkName(ctx, t, g); err != nil {
		return err
	}
	found, isNew, err := findOrCreate(ctx, t.account.provider, ts.tunnelName(t, g))
	if err != nil {
		return err
	}
	if t.settings.TunnelName() != "" {
		if err := ts.checkFree(ctx, g, found.ID); err != nil {
			return err
		}
	}
	if isNew {
		t.remote = created(ts.now(), ts.nextRead())
		ts.event(g, corev1.EventTypeNormal, "TunnelCreated", "Create", fmt.Sprintf("Created tunnel %s (%s).", found.Name, found.ID))
	} else {
		t.remote = remote{}
		ts.event(g, corev1.EventTypeNormal, "TunnelFound", "Create",
			fmt.Sprintf("Found tunnel %s (%s) again; it gets the configuration of this Gateway.", found.Name, found.ID))
	}
	t.proven = found.Name
	record := t.emptyRecord(ts.controllerName)
	record.Tunnel, record.Origin, record.Name = found.ID, state.OriginCreated, t.settings.TunnelName()
	return ts.writeRecord(ctx, t, g, record)
}

// findOrCreate returns the live tunnel of the name, and whether this call created
// it. After a create whose answer was lost it looks again: the name was free just
// before.
func findOrCreate(ctx context.Context, p provider.Provider, name string) (t provider.Tunnel, created bool, err error) {
	ctx = provider.WithTurn(ctx, 2)
	t, err = p.FindTunnel(ctx, name)
	if errors.Is(err, provider.ErrNotFound) {
		created = true
		t, err = p.CreateTunnel(ctx, name)
		_, lost := errors.AsType[*provider.UnavailableError](err)
		if lost || errors.Is(err, provider.ErrNameExists) {
			found, findErr := p.FindTunnel(ctx, name)
			if findErr != nil {
				return provider.Tunnel{}, false, err
			}
			t, created, err = found, lost, nil
		}
	}
	if err == nil && t.Local {
		err = provider.ErrLocallyManaged
	}
	return t, created, err
}

// emptyRecord is one without a tunnel.
func (t *tunnel) emptyRecord(controller gatewayv1.GatewayController) state.Record {
	return state.Record{Controller: controller, Account: t.account.id, Policy: t.wantedPolicy(), HTTP2: t.record.HTTP2}
}

// adopt records a tunnel that was made elsewhere, when it exists.
func (ts *tunnels) adopt(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, id provider.TunnelID) error {
	if err := ts.checkFree(ctx, g, id); err != nil {
		return err
	}
	_, _, err := t.account.provider.Configuration(ctx, id)
	if errors.Is(err, provider.ErrNotFound) {
		return &missingError{tunnel: id}
	}
	if err != nil {
		return err
	}
	ts.event(g, corev1.EventTypeNormal, "TunnelAdopted", "Create", fmt.Sprintf("Adopted tunnel %s.", id))
	record := t.emptyRecord(ts.controllerName)
	record.Tunnel, record.Origin = id, state.OriginAdopted
	return ts.writeRecord(ctx, t, g, record)
}

// checkFree refuses a tunnel that an older Gateway has.
func (ts *tunnels) checkFree(ctx context.Context, g *gatewayv1.Gateway, id provider.TunnelID) error {
	other, err := ts.recordedBy(ctx, id, g)
	if err == nil && other != nil && older(other, g) {
		return &takenError{name: string(id), gateway: client.ObjectKeyFromObject(other), given: true}
	}
	return err
}

// keep makes sure that a recorded tunnel is the one that is wanted, and this
// Gateway's alone: a copy of a Gateway, made under another name, has the
// original's record.
func (ts *tunnels) keep(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if t.record.Account != t.account.id {
		return &accountError{recorded: t.record.Account, configured: t.account.id}
	}
	if !t.isWanted() {
		return &otherTunnelError{tunnel: t.record.Tunnel, wanted: cmp.Or(string(t.settings.ExistingTunnel()), ts.tunnelName(t, g))}
	}
	if record := t.record; record.Policy != t.wantedPolicy() {
		record.Policy = t.wantedPolicy()
		if err := ts.writeRecord(ctx, t, g, record); err != nil {
			return err
		}
	}
	other, err := ts.recordedBy(ctx, t.record.Tunnel, g)
	if err != nil || other == nil {
		return err
	}
	err = ts.prove(ctx, t, g)
	_, stranger := errors.AsType[*strangerError](err)
	sameRight := t.record.Origin == state.OriginAdopted || t.settings.TunnelName() != "" || ts.name(other) == ts.name(g)
	switch {
	case stranger, err == nil && sameRight && older(other, g):
		ts.event(g, corev1.EventTypeWarning, "TunnelTaken", "Create", fmt.Sprintf(
			"Tunnel %s, which this Gateway's record names, belongs to Gateway %s.", t.record.Tunnel, client.ObjectKeyFromObject(other)))
		return ts.drop(ctx, t, g)
	}
	return err
}

// isWanted reports whether the recorded tunnel is the one that the settings ask
// for: an adopted one is named by them.
func (t *tunnel) isWanted() bool {
	if existing := t.settings.ExistingTunnel(); existing != "" {
		return existing == t.record.Tunnel
	}
	return t.record.Origin != state.OriginAdopted
}

// drop forgets the recorded tunnel. The next attempt looks for one by name.
func (ts *tunnels) drop(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	t.unknown()
	if err := ts.writeRecord(ctx, t, g, t.emptyRecord(ts.controllerName)); err != nil {
		return err
	}
	return ts.ensure(ctx, t, g)
}

// lost drops the record of a tunnel that is deleted, and makes a new one. We
// may have begun that ourselves, while the class was another controller's.
func (ts *tunnels) lost(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if t.record.Origin == state.OriginAdopted {
		return &missingError{tunnel: t.record.Tunnel}
	}
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
	name := ts.tunnelName(t, g)
	if t.proven == name || t.record.Origin == state.OriginAdopted {
		return nil
	}
	found, err := t.account.provider.FindTunnel(ctx, name)
	if err != nil && !errors.Is(err, provider.ErrNotFound) {
		return err
	}
	if err != nil || found.ID != t.record.Tunnel {
		return &strangerError{tunnel: t.record.Tunnel, name: name}
	}
	t.proven = name
	return nil
}

// checkName refuses a Gateway whose name for the tunnel is that of an older
// one: namespace and name are joined, so "team-a/web" and "team/a-web" are the
// same.
func (ts *tunnels) checkName(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if t.settings.TunnelName() != "" {
		return nil // whose it is shows when it is found
	}
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
	given   bool // by the settings
}

func (e *takenError) Error() string {
	if e.given {
		return fmt.Sprintf("tunnel %s belongs to Gateway %s, whose settings ask for it too; give this Gateway another one in spec.tunnel", e.name, e.gateway)
	}
	return fmt.Sprintf("tunnel %s belongs to Gateway %s, whose namespace and name give the same name of a tunnel; rename one of the two", e.name, e.gateway)
}

// otherTunnelError: the settings ask for another tunnel than the Gateway has.
type otherTunnelError struct {
	tunnel provider.TunnelID
	wanted string
}

func (e *otherTunnelError) Error() string {
	return fmt.Sprintf("the Gateway has tunnel %s, and its settings ask for %s; put the settings back, "+
		"or take the annotation %s off to change over, which leaves the former tunnel as it is", e.tunnel, e.wanted, state.RecordAnnotation)
}

// missingError: the tunnel that is to be adopted is not there.
type missingError struct{ tunnel provider.TunnelID }

func (e *missingError) Error() string {
	return fmt.Sprintf("tunnel %s, which the settings name in tunnel.existing.id, does not exist in the account", e.tunnel)
}

// localError: the tunnel that is wanted is locally managed.
type localError struct {
	tunnel   string // name or ID
	existing bool   // named by the settings
}

func (e *localError) Error() string {
	// One that has the name of ours would be ours, were it not for that.
	remedy := "rename it at Cloudflare to have another one made; after a migration to remote management it would be this Gateway's, and its configuration replaced"
	if e.existing {
		remedy = "migrate it to remote management in Cloudflare's dashboard, or name another one in tunnel.existing.id, or take that out to have one made"
	}
	return fmt.Sprintf("tunnel %s is locally managed: its connectors take their configuration from a file and ignore any other, so it is left alone; %s", e.tunnel, remedy)
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
