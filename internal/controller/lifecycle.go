package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// maxSteps limits the number of steps of one loop. A loop that exceeds it is a bug.
const maxSteps = 100

// lifecycle executes the decisions that internal/tunnel makes about Tunnels.
type lifecycle struct {
	objects      tunnelObjects
	gateways     gatewayReader
	tokens       tokenSecrets
	connectors   *connectors
	accounts     *accounts
	reservations *reservations
	statuses     *status.Writer
	notify       notifier
	options      tunnel.Options
	clock        clock
	envoys       *envoys

	mu      sync.Mutex
	tunnels map[state.Key]*managedTunnel
	// findings contains the inventory findings that no reconcile has processed yet.
	findings map[state.Key]inventoryFinding
}

// inventoryFinding is a finding of the inventory about an unhealthy tunnel.
type inventoryFinding struct {
	// missing means that the tunnel does not exist; otherwise it has lost connectors.
	missing bool
}

// clock returns the wall-clock time and the uptime of the process. Changes of the wall
// clock do not affect the uptime.
type clock struct {
	now    func() time.Time
	uptime func() time.Duration
}

// systemClock returns the clock of this process.
func systemClock() clock {
	start := time.Now()
	return clock{now: time.Now, uptime: func() time.Duration { return time.Since(start) }}
}

// managedTunnel is the state of one Tunnel in this process. Only the worker that
// processes the Gateway's key uses it.
type managedTunnel struct {
	memory tunnel.Memory
	// object is the Tunnel as it was last written or read from the API server; nil
	// before that.
	object *v1alpha1.Tunnel
	token  tokenRead
	// reportedProblem is the reason of the last event about a problem that requires
	// user action.
	reportedProblem conditions.Reason
	warnings        reportedWarnings
	// notBefore is the uptime before which no reconcile is useful, because a write has
	// to wait for a token.
	notBefore     time.Duration
	contributions contributions
	activity      activity
}

// activity lists the changes of a tunnel since metrics were last recorded.
type activity struct {
	pushedBytes []int // sizes of the written configurations
	repaired    bool  // the controller reverted an external change
	contested   bool  // the controller stopped writing after too many external changes
	failures    []failure
	// changedNamespaces contains the namespaces whose objects caused the writes, once
	// for each write.
	changedNamespaces []string
}

// failure is the reason and the error of a failed step.
type failure struct {
	reason conditions.Reason
	err    error
}

// tunnelFor returns the process state of the Gateway's Tunnel, and creates it if
// necessary.
func (l *lifecycle) tunnelFor(key state.Key) *managedTunnel {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.tunnels[key]
	if m == nil {
		m = &managedTunnel{}
		l.tunnels[key] = m
	}
	return m
}

// latest returns the Gateway's Tunnel as this process last wrote or read it, or else the
// Tunnel from the cache, which can be older. If the cache says that a newer version of the
// controller serves the Tunnel, the cache counts.
func (l *lifecycle) latest(key state.Key, cached *v1alpha1.Tunnel) *v1alpha1.Tunnel {
	if known := l.tunnelFor(key).object; cached != nil && known != nil && known.UID == cached.UID && !tunnel.IsNewer(cached) {
		return known
	}
	return cached
}

// addFinding stores an inventory finding for the next reconcile of the key.
func (l *lifecycle) addFinding(key state.Key, missing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.findings[key] = inventoryFinding{missing}
}

// takeFinding returns and removes the inventory finding for the key.
func (l *lifecycle) takeFinding(key state.Key) (inventoryFinding, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.findings[key]
	delete(l.findings, key)
	return d, ok
}

// forget removes the process state of a Gateway that has no Tunnel.
func (l *lifecycle) forget(key state.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tunnels, key)
	delete(l.findings, key)
}

// forgetAfterPanic removes the process state of a Gateway during a panic, because it is
// unknown what the panicking step has changed. The next reconcile reads everything, as
// after a start of the process.
func (l *lifecycle) forgetAfterPanic(key state.Key) {
	if r := recover(); r != nil {
		l.forget(key)
		panic(r) // in the same stack, so that the log shows the original panic
	}
}

// throttledPace is the minimum time between two reconciles while a write waits for a
// token, so that frequent changes cost as little as while they are written.
const throttledPace = time.Second

// writeDelay returns how long to delay the next reconcile, so that changes in quick
// succession are written together.
func (l *lifecycle) writeDelay(key state.Key) time.Duration {
	l.mu.Lock()
	m := l.tunnels[key]
	l.mu.Unlock()
	if m == nil {
		return 0
	}
	uptime := l.clock.uptime()
	return max(m.memory.Pacing(uptime), m.notBefore-uptime)
}

// run makes and executes decisions until no step can be executed now. It returns the
// outcome for the Gateway's conditions and the delay of the next reconcile; 0 means to
// wait for a change. The outcome is nil when the loop did not finish.
func (l *lifecycle) run(ctx context.Context, t target) (*tunnel.Outcome, time.Duration, error) {
	m := l.tunnelFor(t.key)
	loop := &loop{lifecycle: l, target: t, managedTunnel: m, requests: requests{}}
	if d, ok := l.takeFinding(t.key); ok {
		m.memory = m.memory.MarkSuspect(d.missing)
	}
	defer l.reservations.release(t.key)
	defer l.forgetAfterPanic(t.key)
	for range maxSteps {
		facts, err := loop.gatherFacts(ctx)
		if err != nil {
			return nil, 0, err
		}
		m.memory = tunnel.Observe(facts)
		facts.Memory = m.memory
		step := tunnel.Decide(facts)
		if step.Ends() {
			err := loop.finish(ctx, facts, step.Problem)
			facts.Object = m.object // with the beginning of a pause
			outcome := tunnel.Programmed(facts)
			if m.notBefore = 0; outcome.Reason == conditions.ReasonConfigurationThrottled {
				m.notBefore = facts.Uptime + min(throttledPace, step.Delay)
			}
			return &outcome, step.Delay, err
		}
		if err := loop.executeStep(ctx, facts, step); err != nil {
			return nil, 0, err
		}
		if ctx.Err() != nil {
			return nil, 0, nil // the process is shutting down
		}
	}
	return nil, 0, fmt.Errorf("the lifecycle of the tunnel of %s did not finish within %d steps", t.key, maxSteps)
}

// lastConfiguration returns a copy of the configuration of the Gateway's tunnel that Cloudflare
// last reported or acknowledged, or nil. After a failed write, the connectors can still have it.
// Each step of the lifecycle replaces the memory.
func (l *lifecycle) lastConfiguration(key state.Key) *provider.Configuration {
	remote := l.tunnelFor(key).memory.Remote.Configuration
	if remote.Hash == "" {
		return nil
	}
	return &remote.Configuration
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// requests maps each priority to a context. Calls with the same context share one slot
// of the API request budget.
type requests map[provider.Priority]context.Context

// requestsPerDeletion is the number of requests of a deletion: reading the tunnel,
// listing its connections and deleting it.
const requestsPerDeletion = 3

// context returns the context for calls with the priority.
func (r requests) context(ctx context.Context, p provider.Priority) context.Context {
	if r[p] == nil {
		count := 1
		if p == provider.PriorityDeletion {
			count = requestsPerDeletion
		}
		r[p] = provider.WithReservation(provider.WithPriority(ctx, p), count)
	}
	return r[p]
}

// reservations prevents Gateways from claiming the same existing tunnel concurrently.
type reservations struct {
	mu       sync.Mutex
	byTunnel map[string]state.Key // the Gateway by tunnel ID
}

// reserve reserves the tunnel for the Gateway. It reports whether another Gateway has
// already reserved it.
func (r *reservations) reserve(id string, key state.Key) (conflict bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if holder, ok := r.byTunnel[id]; ok && holder != key {
		return true
	}
	r.byTunnel[id] = key
	return false
}

// release removes the reservations of a Gateway.
func (r *reservations) release(key state.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, holder := range r.byTunnel {
		if holder == key {
			delete(r.byTunnel, id)
		}
	}
}

// client returns the client that reads from the cache and writes to the API server.
func (l *lifecycle) client() client.Client { return l.objects.client }
