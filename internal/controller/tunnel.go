package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// tunnels carries decisions to the provider, and remembers of each Gateway's
// tunnel what the API holds, so that nothing is sent or read without need.
type tunnels struct {
	client         client.Client
	live           client.Reader
	provider       provider.Provider
	events         events.EventRecorder
	controllerName gatewayv1.GatewayController
	account        string
	clusterID      string
	driftInterval  time.Duration
	now            func() time.Time

	mu        sync.Mutex
	byGateway map[types.NamespacedName]*tunnel
}

// tunnel is what is known of one Gateway's tunnel. Only the worker that has
// the Gateway's key touches it.
type tunnel struct {
	gateway types.UID
	record  state.Record

	// The document that the API holds; known is false when it has to be read.
	known   bool
	remote  provider.Configuration
	version provider.Version
	readAt  time.Time // when it is to be read again

	pace  pace
	fault fault
}

// of returns the tunnel of a loaded Gateway. What this process recorded is
// newer than the annotation in the cache may be.
func (ts *tunnels) of(loaded *state.Loaded) *tunnel {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	name := loadedName(loaded)
	t := ts.byGateway[name]
	if t == nil || t.gateway != loaded.Gateway.UID {
		t = &tunnel{gateway: loaded.Gateway.UID}
		ts.byGateway[name] = t
	}
	if t.record.Controller != ts.controllerName {
		t.record = loaded.Record
	}
	return t
}

func (ts *tunnels) forget(key state.Key) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.byGateway, key.NamespacedName)
}

// pacing returns how long the key's next push has to wait.
func (ts *tunnels) pacing(key state.Key) time.Duration {
	ts.mu.Lock()
	t := ts.byGateway[key.NamespacedName]
	ts.mu.Unlock()
	if t == nil || key.Kind != gateway.KindGateway {
		return 0
	}
	return t.pace.wait(ts.now())
}

// apply makes the tunnel exist and its document the wanted one. It returns how
// that went and when to come back.
func (ts *tunnels) apply(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, want provider.Configuration) (gateway.Push, time.Duration) {
	if wait := t.fault.wait(ts.now()); wait > 0 {
		return gateway.Push{State: gateway.PushFailed, Message: t.fault.message}, wait
	}
	err := ts.ensure(ctx, t, g)
	if err == nil {
		err = ts.configure(ctx, t, g, want)
	}
	if err != nil {
		wait := ts.failed(ctx, t, g, err)
		return gateway.Push{State: gateway.PushFailed, Message: t.fault.message}, wait
	}
	if t.fault.message != "" {
		ts.event(g, corev1.EventTypeNormal, "Recovered", "Push", "The tunnel's configuration is in effect again.")
	}
	t.fault = fault{}
	return gateway.Push{State: gateway.PushSucceeded}, ts.untilRead(t)
}

// failed notes a failed attempt, says so once, and returns when the next one is
// due.
func (ts *tunnels) failed(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, err error) time.Duration {
	before := t.fault.message
	wait := t.fault.add(err, ts.now())
	if !t.fault.unattended {
		// What the API holds is not known any more.
		t.known = false
	}
	if t.fault.message != before {
		logFault(ctx, err, "the tunnel is not up to date", t.record.Tunnel, wait)
	}
	if t.fault.count == 1 {
		ts.event(g, corev1.EventTypeWarning, "PushFailed", "Push", t.fault.message)
	}
	return wait
}

// logFault logs as an error what somebody has to look at, and a failure that may
// pass by itself as information.
func logFault(ctx context.Context, err error, message string, tunnel provider.TunnelID, again time.Duration) {
	logger := log.FromContext(ctx).WithValues("tunnel", tunnel, "again", again.String())
	if provider.IsTransient(err) {
		logger.Info(message, "cause", err.Error())
		return
	}
	logger.Error(err, message)
}

// ensure finds or creates the Gateway's tunnel, and records it before its first
// document.
func (ts *tunnels) ensure(ctx context.Context, t *tunnel, g *gatewayv1.Gateway) error {
	if err := ts.claim(ctx, t, g); err != nil {
		return err
	}
	if t.record.Account != ts.account {
		return &accountError{recorded: t.record.Account, configured: ts.account}
	}
	if t.record.Tunnel != "" {
		return nil
	}
	found, err := ts.provider.EnsureTunnel(ctx, provider.TunnelSpec{Name: ts.name(g)})
	if err != nil {
		return err
	}
	origin := state.OriginCreated
	if found.Created {
		t.known, t.remote, t.version, t.readAt = true, provider.Configuration{}, 0, ts.nextRead()
		ts.event(g, corev1.EventTypeNormal, "TunnelCreated", "Create", fmt.Sprintf("Created tunnel %s (%s).", found.Name, found.ID))
	} else {
		if err := ts.read(ctx, t, found.ID); err != nil {
			return err
		}
		// A tunnel of our name without rules is one whose creation broke off
		// before it was recorded.
		if len(t.remote.Ingress) > 0 {
			origin = state.OriginAdopted
		}
	}
	record := t.record
	record.Tunnel, record.Origin = found.ID, origin
	return ts.writeRecord(ctx, t, g, record)
}

// configure writes the document unless the tunnel has it already.
func (ts *tunnels) configure(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, want provider.Configuration) error {
	if !t.known || !ts.now().Before(t.readAt) {
		err := ts.read(ctx, t, t.record.Tunnel)
		if errors.Is(err, provider.ErrNotFound) {
			return ts.lost(ctx, t, g, err)
		}
		if err != nil {
			return err
		}
	}
	have, wanted := t.remote.Hash(), want.Hash()
	if have == wanted {
		if t.record.Knows(wanted) {
			return nil
		}
		return ts.writeRecord(ctx, t, g, t.record.Writing(wanted, ""))
	}
	record := t.record
	if len(t.remote.Ingress) > 0 && !record.Knows(have) {
		record.TakenOver = record.TakenOver || takeover(g)
		if !record.MayReplace() {
			return &foreignError{tunnel: record.Tunnel}
		}
		ts.event(g, corev1.EventTypeWarning, "ForeignEdit", "Push",
			fmt.Sprintf("The configuration of tunnel %s was changed by somebody else; it is put right.", record.Tunnel))
	}
	if err := ts.writeRecord(ctx, t, g, record.Writing(wanted, have)); err != nil {
		return err
	}
	return ts.write(ctx, t, want)
}

// write replaces the document.
func (ts *tunnels) write(ctx context.Context, t *tunnel, want provider.Configuration) error {
	want.Unmodelled = t.remote.Unmodelled
	t.pace.pushed(ts.now())
	version, err := ts.provider.Configure(ctx, t.record.Tunnel, want)
	if err != nil {
		return err
	}
	// A version that is not the next one means that somebody else wrote in
	// between; whose document came last has to be read.
	t.known = version == t.version+1
	t.remote, t.version = want, version
	log.FromContext(ctx).Info("wrote the tunnel's configuration", "tunnel", t.record.Tunnel, "rules", len(want.Ingress), "version", version)
	return nil
}

func (ts *tunnels) read(ctx context.Context, t *tunnel, id provider.TunnelID) error {
	remote, version, err := ts.provider.Configuration(ctx, id)
	if err != nil {
		return err
	}
	t.known, t.remote, t.version, t.readAt = true, remote, version, ts.nextRead()
	return nil
}

// lost drops the record of a tunnel that somebody deleted, so that the next
// attempt makes a new one.
func (ts *tunnels) lost(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, cause error) error {
	ts.event(g, corev1.EventTypeWarning, "TunnelLost", "Create",
		fmt.Sprintf("Tunnel %s was deleted by somebody else; a new one is made, with a new address.", t.record.Tunnel))
	if err := ts.writeRecord(ctx, t, g, state.Record{Controller: t.record.Controller, Account: t.record.Account}); err != nil {
		return err
	}
	return cause
}

// nextRead spreads the reads of many tunnels.
func (ts *tunnels) nextRead() time.Time {
	jitter := time.Duration(rand.Int64N(int64(ts.driftInterval)/5 + 1)) // #nosec G404 -- not for security
	return ts.now().Add(ts.driftInterval - jitter)
}

func (ts *tunnels) untilRead(t *tunnel) time.Duration {
	if !t.known {
		return time.Second
	}
	return max(t.readAt.Sub(ts.now()), time.Second)
}

// maxNameLength is well below what the API takes.
const maxNameLength = 96

// name returns the name of the Gateway's tunnel, unique in the account and the
// same for ever.
func (ts *tunnels) name(g *gatewayv1.Gateway) string {
	name := strings.Join([]string{ts.clusterID, g.Namespace, g.Name}, "-")
	if len(name) <= maxNameLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:5])
	return name[:maxNameLength-len(suffix)] + suffix
}

func takeover(g *gatewayv1.Gateway) bool { return g.Annotations[state.TakeoverAnnotation] == "true" }

func (ts *tunnels) event(g *gatewayv1.Gateway, kind, reason, action, note string) {
	ts.events.Eventf(g, nil, kind, reason, action, "%s", note)
}

func loadedName(loaded *state.Loaded) types.NamespacedName {
	return client.ObjectKeyFromObject(loaded.Gateway)
}
