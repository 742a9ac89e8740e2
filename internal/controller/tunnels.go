package controller

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	accounts       *accounts
	connectors     *connectors
	events         events.EventRecorder
	controllerName gatewayv1.GatewayController
	clusterID      string
	driftInterval  time.Duration
	now            func() time.Time

	mu        sync.Mutex
	byGateway map[state.Key]*tunnel
	// letGone are the tunnels that Gateways had last: the cache may name them
	// for a moment longer.
	letGone map[state.Key]provider.TunnelID
	doubts  map[state.Key]doubt
}

// tunnel is what is known of one Gateway's tunnel. Only the worker that has
// the Gateway's key touches it.
type tunnel struct {
	gateway types.UID
	record  state.Record
	// recorded: this process wrote the record, and knows best.
	recorded bool
	// proven is the name of the Gateway's tunnel that the recorded one has.
	proven string
	// account is the one of the last attempt.
	account account
	// settings are those of the pass; nil when they are not known.
	settings *gateway.Settings
	// fallback says of which account the Gateway is when they are not.
	fallback *gateway.Settings

	remote remote
	// inEffect is the hash of the document that is certain to be in effect.
	inEffect string
	// unanswered is that of the document whose write failed.
	unanswered string

	// local: the tunnel that is wanted is locally managed, as was found last.
	local bool

	edits edits
	pace  pace
	turn  awaited
	fault fault
	token token
	// connectors is why what runs the connectors could not be written.
	connectors fault
	leaving    bool // the Gateway is being let go
	// deleted is the tunnel that we began to delete.
	deleted provider.TunnelID

	happened happened
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
	if t.record.Controller != ts.controllerName && !ts.isLetGone(key, loaded.Record) {
		t.record = loaded.Record
	}
	return t
}

// isLetGone reports whether a record from the cache is one that was taken off.
func (ts *tunnels) isLetGone(key state.Key, record state.Record) bool {
	last, ok := ts.letGone[key]
	if ok && record.Tunnel != last {
		delete(ts.letGone, key) // the cache knows
		return false
	}
	return ok
}

// leave forgets a Gateway that was let go.
func (ts *tunnels) leave(key state.Key, t *tunnel) {
	ts.forget(key)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.record.Tunnel != "" {
		ts.letGone[key] = t.record.Tunnel
	}
}

func (ts *tunnels) forget(key state.Key) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.byGateway, key)
	delete(ts.doubts, key)
	delete(ts.letGone, key)
}

// ownTunnel returns the tunnel, or nothing when another controller holds it.
func (ts *tunnels) ownTunnel(t *tunnel) provider.TunnelID {
	if t.record.Controller != ts.controllerName {
		return ""
	}
	return t.record.Tunnel
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

// use opens the account that the next attempt works on. What another one failed
// at, for instance with a token that has been replaced, is tried at once.
func (ts *tunnels) use(ctx context.Context, t *tunnel) error {
	a, known := account{}, false
	settings := t.settings
	if settings == nil {
		a, known = ts.accounts.recorded(t.record.Account)
		settings = t.fallback
	}
	if !known {
		var err error
		if a, err = ts.accounts.of(ctx, settings); err != nil {
			return err
		}
	}
	if t.account != a {
		t.account, t.fault, t.turn, t.token.fault = a, fault{}, awaited{}, fault{}
	}
	return nil
}

// unknown forgets what was known of the tunnel: it is another one, or is being
// deleted.
func (t *tunnel) unknown() {
	t.remote, t.inEffect, t.unanswered, t.proven, t.token, t.local = remote{}, "", "", "", token{}, false
}

// paused: the user asks us to change nothing at Cloudflare.
func paused(g *gatewayv1.Gateway) bool { return g.Annotations[state.PausedAnnotation] == "true" }

func takeover(g *gatewayv1.Gateway) bool { return g.Annotations[state.TakeoverAnnotation] == "true" }

func (ts *tunnels) event(g *gatewayv1.Gateway, kind, reason, action, note string) {
	ts.events.Eventf(g, nil, kind, reason, action, "%s", shortNote(note))
}

// longestNote is what the API takes for the note of an event.
const longestNote = 1024

func shortNote(note string) string {
	if len(note) < longestNote {
		return note
	}
	return strings.ToValidUTF8(note[:longestNote-4], "") + "…"
}

func loadedKey(g *gatewayv1.Gateway) state.Key { return state.GatewayKey(g.Namespace, g.Name) }
