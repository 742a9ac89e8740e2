package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// mostSteps ends a loop of decisions that does not come to a wait, which would
// be a defect.
const mostSteps = 100

// lifecycle executes the decisions about Tunnels. internal/tunnel decides.
type lifecycle struct {
	objects    tunnelObjects
	gateways   gatewayReader
	tokens     tokenSecrets
	connectors *connectors
	accounts   *accounts
	reserved   *reservations
	statuses   *status.Writer
	notify     notifier
	options    tunnel.Options
	clock      clock

	mu      sync.Mutex
	tunnels map[state.Key]*managed
	// doubts are what inventories found, until a worker with the key looks.
	doubts map[state.Key]doubt
}

// doubt is what an inventory found about a tunnel.
type doubt struct{ missing bool }

// clock tells the time. Uptime is that of the process, which no change of the
// wall clock affects.
type clock struct {
	now    func() time.Time
	uptime func() time.Duration
}

// systemClock returns the clock of this process.
func systemClock() clock {
	start := time.Now()
	return clock{now: time.Now, uptime: func() time.Duration { return time.Since(start) }}
}

// managed is what this process knows of one Tunnel. Only the worker that has the
// Gateway's key uses it.
type managed struct {
	memory tunnel.Memory
	// object is the Tunnel as it was last written or read live; nil before that.
	object *v1alpha1.Tunnel
	token  tokenRead
	// reported is the problem for a person that an event was emitted for last.
	reported tunnel.Reason
	done     activity
}

// activity is what was done to a tunnel since it was last reported.
type activity struct {
	pushed    []int // sizes of the configurations that were written, in bytes
	repaired  bool  // an external change was reverted
	contested bool  // there were too many external changes
	failures  []failure
}

// failure is why a step failed.
type failure struct {
	reason tunnel.Reason
	err    error
}

// target is what a loop of decisions works towards.
type target struct {
	key state.Key
	// gateway is nil when it does not exist, as far as the cache knows.
	gateway *gatewayv1.Gateway
	state   tunnel.Gateway
	// result is the decision about the routes; nil when the Gateway is not served.
	result *gateway.Result
	// snapshot is what is withdrawn when the tunnel retires.
	snapshot *gateway.Snapshot
}

// of returns what is known of a Gateway's Tunnel.
func (l *lifecycle) of(key state.Key) *managed {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.tunnels[key]
	if m == nil {
		m = &managed{}
		l.tunnels[key] = m
	}
	return m
}

// doubt notes what an inventory found, for the worker that has the key.
func (l *lifecycle) doubt(key state.Key, missing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubts[key] = doubt{missing}
}

// takeDoubt returns what an inventory found, once.
func (l *lifecycle) takeDoubt(key state.Key) (doubt, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.doubts[key]
	delete(l.doubts, key)
	return d, ok
}

// forget drops what is known of a Gateway that has no Tunnel.
func (l *lifecycle) forget(key state.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tunnels, key)
	delete(l.doubts, key)
}

// pacing returns how long the next write of the Gateway's configuration has to
// wait.
func (l *lifecycle) pacing(key state.Key) time.Duration {
	l.mu.Lock()
	m := l.tunnels[key]
	l.mu.Unlock()
	if m == nil {
		return 0
	}
	return m.memory.Pacing(l.clock.uptime())
}

// run decides and executes until there is nothing more to do now. It returns
// what to report, and when to come back; 0 for not before something changes. The
// outcome is nil when the decisions did not come to an end.
func (l *lifecycle) run(ctx context.Context, t target) (*tunnel.Outcome, time.Duration, error) {
	m := l.of(t.key)
	loop := &loop{lifecycle: l, target: t, managed: m, requests: requests{}}
	if d, ok := l.takeDoubt(t.key); ok {
		m.memory = m.memory.MarkSuspect(d.missing)
	}
	defer l.reserved.release(t.key)
	for range mostSteps {
		facts, err := loop.facts(ctx)
		if err != nil {
			return nil, 0, err
		}
		m.memory = tunnel.Observe(facts)
		facts.Memory = m.memory
		step := tunnel.Decide(facts)
		if step.Ends() {
			outcome := tunnel.Programmed(facts)
			return &outcome, step.Delay, loop.end(ctx, facts, step.Problem)
		}
		if err := loop.step(ctx, facts, step); err != nil {
			return nil, 0, err
		}
		if ctx.Err() != nil {
			return nil, 0, nil // the process ends
		}
	}
	return nil, 0, fmt.Errorf("the decisions about the tunnel of %s did not come to a wait within %d steps", t.key, mostSteps)
}

// desired returns what the settings and the routes ask for, or nil when the
// settings are not valid or name no account.
func (l *lifecycle) desired(t target) *tunnel.Desired {
	if t.result == nil || t.result.Settings == nil {
		return nil
	}
	s := t.result.Settings
	return tunnel.NewDesired(l.options, tunnel.Request{
		Gateway: t.key.NamespacedName, Paused: t.state.Paused, Settings: s,
		AccountID: l.accounts.flags.ForSettings(s).Account, Credentials: l.accounts.flags.SecretReference(s),
		Configuration: t.result.Configuration(), ServesGRPC: t.result.ServesGRPC(),
	})
}

// accountProblem returns why there is no account to create a tunnel in, or "".
func (l *lifecycle) accountProblem(t target) string {
	if t.result == nil || t.result.Settings == nil || l.accounts.flags.ForSettings(t.result.Settings).Account != "" {
		return ""
	}
	return "There is no Cloudflare account. Start the controller with --cloudflare-account-id, or set spec.account in the TunnelConfiguration of the GatewayClass."
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// requests holds, for each priority, the context whose calls share one turn in
// the request budget.
type requests map[provider.Priority]context.Context

// deletionRequests is how many requests a deletion takes: it reads the tunnel,
// lists its connections and deletes it.
const deletionRequests = 3

func (r requests) context(ctx context.Context, p provider.Priority) context.Context {
	if r[p] == nil {
		share := 1
		if p == provider.PriorityDeletion {
			share = deletionRequests
		}
		r[p] = provider.WithReservation(provider.WithPriority(ctx, p), share)
	}
	return r[p]
}

// reservations make other claims of a tunnel wait while one is under way. The
// mutex protects the map only.
type reservations struct {
	mu     sync.Mutex
	holder map[string]state.Key // by tunnel ID
}

// take reserves the tunnel, and reports whether another Gateway has done so.
func (r *reservations) take(id string, key state.Key) (taken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if holder, ok := r.holder[id]; ok && holder != key {
		return true
	}
	r.holder[id] = key
	return false
}

// release ends the reservations of a Gateway.
func (r *reservations) release(key state.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, holder := range r.holder {
		if holder == key {
			delete(r.holder, id)
		}
	}
}

// client returns what reads and writes objects.
func (l *lifecycle) client() client.Client { return l.objects.client }
