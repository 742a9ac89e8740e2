package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
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
	byGateway map[state.Key]*tunnel
	owners    map[provider.TunnelID]state.Key
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

	// inEffect is the hash of the document that is certain to be in effect.
	inEffect string
	// unanswered is that of the document whose write failed.
	unanswered string

	pace    pace
	fault   fault
	leaving bool // the Gateway is being let go
}

// of returns the tunnel of a loaded Gateway. What this process recorded is
// newer than the annotation in the cache may be.
func (ts *tunnels) of(loaded *state.Loaded) *tunnel {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	key := loadedKey(loaded.Gateway)
	t := ts.byGateway[key]
	if t == nil || t.gateway != loaded.Gateway.UID {
		t = &tunnel{gateway: loaded.Gateway.UID}
		ts.byGateway[key] = t
	}
	if t.record.Controller != ts.controllerName {
		t.record = loaded.Record
	}
	return t
}

func (ts *tunnels) forget(key state.Key) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.byGateway, key)
	maps.DeleteFunc(ts.owners, func(_ provider.TunnelID, owner state.Key) bool { return owner == key })
}

// ownTunnel returns the tunnel, or nothing when another controller holds it.
func (ts *tunnels) ownTunnel(t *tunnel) provider.TunnelID {
	if t.record.Controller != ts.controllerName {
		return ""
	}
	return t.record.Tunnel
}

// take reserves the tunnel for the Gateway, or says whose it is: the names of
// two Gateways may give the same name of a tunnel, and the first one keeps it.
func (ts *tunnels) take(ctx context.Context, g *gatewayv1.Gateway, id provider.TunnelID) error {
	var others gatewayv1.GatewayList
	if err := ts.client.List(ctx, &others, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("looking for another owner of the tunnel: %w", err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		if record, _ := state.ReadRecord(other); record.Tunnel == id && other.UID != g.UID {
			return &takenError{tunnel: id, gateway: client.ObjectKeyFromObject(other)}
		}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	key := loadedKey(g)
	if owner, ok := ts.owners[id]; ok && owner != key {
		return &takenError{tunnel: id, gateway: owner.NamespacedName}
	}
	ts.owners[id] = key
	return nil
}

// pacing returns how long the key's next push has to wait.
func (ts *tunnels) pacing(key state.Key) time.Duration {
	ts.mu.Lock()
	t := ts.byGateway[key]
	ts.mu.Unlock()
	if t == nil {
		return 0
	}
	return t.pace.wait(ts.now())
}

// apply makes the tunnel exist and its document the wanted one. It returns how
// that went and when to come back.
func (ts *tunnels) apply(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, want provider.Configuration) (gateway.Push, time.Duration) {
	t.leaving = false
	document := want.Hash()
	if wait := t.fault.wait(ts.now(), document); wait > 0 {
		return t.afterFailure(document), wait
	}
	err := ts.ensure(ctx, t, g)
	if err == nil {
		err = ts.configure(ctx, t, g, want)
	}
	switch {
	case err == nil:
		if t.fault.message != "" {
			ts.event(g, corev1.EventTypeNormal, "Recovered", "Push", "The tunnel's configuration is in effect again.")
		}
		t.fault, t.inEffect = fault{}, document
		return gateway.Push{State: gateway.PushSucceeded}, ts.untilRead(t)
	case ctx.Err() != nil || errors.Is(err, errGone):
		// The controller ends, or there is nobody to speak about.
		t.known = false
		return gateway.Push{State: gateway.PushOutstanding}, 0
	}
	_, wait := ts.failed(ctx, t, g, err, attempt{
		verb: "The tunnel keeps its last configuration.", event: "PushFailed", action: "Push",
		log: "the tunnel is not up to date", document: document,
	})
	return t.afterFailure(document), wait
}

// afterFailure returns what a failed attempt means for the wanted document: one
// that is in effect already stays in effect when it cannot be read back.
func (t *tunnel) afterFailure(document string) gateway.Push {
	switch {
	case t.inEffect == document:
		return gateway.Push{State: gateway.PushSucceeded}
	case t.record.Hash == document && t.unanswered != document && !t.fault.needsPerson:
		// An earlier process wrote it, as far as the record tells.
		return gateway.Push{State: gateway.PushOutstanding}
	default:
		return gateway.Push{State: gateway.PushFailed, Message: t.fault.message}
	}
}

// failed notes a failed attempt and tells of each cause once. It returns the
// message, and when the next attempt is due.
func (ts *tunnels) failed(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, err error, a attempt) (string, time.Duration) {
	before := t.fault
	wait := t.fault.add(err, a, ts.now())
	if !t.fault.needsPerson {
		// What the API holds is not known any more.
		t.known = false
	}
	if t.fault.message != before.message {
		logFault(ctx, err, a.log, t.record.Tunnel, wait)
	}
	if t.fault.cause != before.cause {
		ts.event(g, corev1.EventTypeWarning, a.event, a.action, fmt.Sprintf("%s (%v)", t.fault.message, err))
	}
	return t.fault.message, wait
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
	if err := ts.take(ctx, g, found.ID); err != nil {
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
		// A tunnel of our name that was never configured is one whose creation
		// broke off before it was recorded.
		if t.version > 0 {
			origin = state.OriginAdopted
			ts.event(g, corev1.EventTypeNormal, "TunnelAdopted", "Create",
				fmt.Sprintf("Found tunnel %s (%s), with a configuration that was not written for this Gateway.", found.Name, found.ID))
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
	t.inEffect = ""
	record := t.record
	if t.version > 0 && !record.Knows(have) {
		var err error
		if record, err = ts.mayReplace(g, record); err != nil {
			return err
		}
	}
	if err := ts.writeRecord(ctx, t, g, record.Writing(wanted, have)); err != nil {
		return err
	}
	return ts.write(ctx, t, want)
}

// mayReplace decides about a document that somebody else wrote: it is put right
// on a tunnel that we made, and on another one when a user permits it.
func (ts *tunnels) mayReplace(g *gatewayv1.Gateway, record state.Record) (state.Record, error) {
	switch {
	case record.MayReplace():
		ts.event(g, corev1.EventTypeWarning, "ForeignEdit", "Push",
			fmt.Sprintf("The configuration of tunnel %s was changed by somebody else; it is put right.", record.Tunnel))
	case takeover(g):
		record.TakenOver = true
		ts.event(g, corev1.EventTypeNormal, "TakenOver", "Push",
			fmt.Sprintf("The configuration of tunnel %s is replaced, as the annotation %s permits.", record.Tunnel, state.TakeoverAnnotation))
	default:
		return record, &foreignError{tunnel: record.Tunnel}
	}
	return record, nil
}

// write replaces the document.
func (ts *tunnels) write(ctx context.Context, t *tunnel, want provider.Configuration) error {
	want.Unmodelled = t.remote.Unmodelled
	t.pace.pushed(ts.now())
	t.unanswered = t.record.Hash // until the answer comes
	version, err := ts.provider.Configure(ctx, t.record.Tunnel, want)
	if err != nil {
		return err
	}
	t.unanswered = ""
	// A version that is not the next one means that somebody else wrote in
	// between; whose document came last has to be read.
	t.known = version == t.version+1
	log.FromContext(ctx).Info("wrote the tunnel's configuration", "tunnel", t.record.Tunnel,
		"rules", len(want.Ingress), "version", version, "expected", t.version+1)
	t.remote, t.version = want, version
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
	t.inEffect = ""
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

// name returns the name of the Gateway's tunnel, the same for ever.
func (ts *tunnels) name(g *gatewayv1.Gateway) string {
	name := strings.Join([]string{ts.clusterID, g.Namespace, g.Name}, "-")
	if len(name) <= maxNameLength {
		return name
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{ts.clusterID, g.Namespace, g.Name}, "/")))
	suffix := "-" + hex.EncodeToString(sum[:5])
	return name[:maxNameLength-len(suffix)] + suffix
}

func takeover(g *gatewayv1.Gateway) bool { return g.Annotations[state.TakeoverAnnotation] == "true" }

func (ts *tunnels) event(g *gatewayv1.Gateway, kind, reason, action, note string) {
	ts.events.Eventf(g, nil, kind, reason, action, "%s", note)
}

func loadedKey(g *gatewayv1.Gateway) state.Key { return state.GatewayKey(g.Namespace, g.Name) }
