package controller

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

var (
	operationCount = flag.Int("operations", 100, "random operations in TestRandomOperationsWithFaults")
	operationsSeed = flag.Uint64("operations.seed", 0, "seed of the random operations; 0 selects a random one")
)

// Users change random objects while the Cloudflare API, the API server, the clock and the process
// fail at random. Whenever the faults end, the controller reaches the state that the plan shows,
// and every tunnel belongs to one Tunnel.
func TestRandomOperationsWithFaults(t *testing.T) {
	seed := randomSeed()
	synctest.Test(t, func(t *testing.T) { // retries of statuses have a clock of their own
		w := &faultyWorld{world: newWorld(t, seed, goldenCases(t)), retained: map[string]bool{}, failures: newFailures(seed)}
		w.injectError = w.failWrite
		for i := range *operationCount {
			name := w.operate()
			if i%10 == 9 {
				w.heal()
			}
			if t.Failed() {
				t.Fatalf("after %d operations, the last one %q; repeat them with -operations %d -operations.seed %d", i+1, name, i+1, seed)
			}
		}
	})
}

// randomSeed returns the seed for a test.
func randomSeed() uint64 {
	seed := *operationsSeed
	for seed == 0 {
		seed = rand.Uint64() // #nosec G404 -- a test
	}
	return seed
}

// faultyWorld is a world in which everything that the controller uses can fail.
type faultyWorld struct {
	*world
	// retained are the names of tunnels that may outlive their Tunnels.
	retained map[string]bool
	// deleted are the keys of deleted Gateways, whose events have put them in the queue.
	deleted []state.Key
	*failures
}

// failures chooses which writes to the API server fail. Writes run at the same time, so that the
// choice must not depend on their order.
type failures struct {
	mu sync.Mutex
	// failing is how many of a hundred writes fail.
	failing int
	seed    uint64
	writes  map[write]uint64 // how often each has been tried
}

func newFailures(seed uint64) *failures { return &failures{seed: seed, writes: map[write]uint64{}} }

// setFailing sets how many of a hundred writes fail.
func (f *failures) setFailing(failing int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = failing
}

// next returns the random numbers for the next attempt, and whether it fails.
func (f *failures) next(o write) (random *rand.Rand, fails bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes[o]++
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, o, f.writes[o])              // a hash never fails
	random = rand.New(rand.NewPCG(f.seed, hash.Sum64())) //nolint:gosec // the test must be reproducible
	return random, random.IntN(100) < f.failing
}

// operation is a change by a user, or a fault.
type operation struct {
	name string
	do   func(*faultyWorld)
}

var operations = []operation{
	{"change objects", func(w *faultyWorld) { w.change() }},
	{"change objects", func(w *faultyWorld) { w.change() }},
	{"delete a Gateway", (*faultyWorld).deleteGateway},
	{"let calls to Cloudflare fail", (*faultyWorld).failCalls},
	{"let writes to the API server fail", func(w *faultyWorld) { w.setFailing(w.random.IntN(100)) }},
	{"restart the controller", func(w *faultyWorld) { w.restart() }},
	{"set the clock", (*faultyWorld).jump},
	{"freeze the cache", func(w *faultyWorld) { w.freezeCache() }},
	{"continue the cache", func(w *faultyWorld) { w.unfreezeCache() }},
	{"change a tunnel externally", (*faultyWorld).changeTunnel},
}

// operate performs one random operation, and lets the controller work on a few keys afterwards.
// It returns the operation's name.
func (w *faultyWorld) operate() string {
	w.t.Helper()
	w.drainEvents()
	w.keys() // notes the retained tunnels
	o := operations[w.random.IntN(len(operations))]
	o.do(w)
	for range w.random.IntN(4) {
		keys := w.keys()
		if len(keys) == 0 {
			break
		}
		w.key = keys[w.random.IntN(len(keys))]
		_, _ = w.Reconcile(w.t.Context(), w.key) // the queue repeats a reconcile that fails
		w.advance(time.Duration(w.random.IntN(20)) * time.Second)
	}
	return o.name
}

// heal ends all faults, and compares the controller with the plan.
func (w *faultyWorld) heal() {
	w.t.Helper()
	w.setFailing(0)
	w.unfreezeCache()
	w.cloud.ClearFailures()
	w.resume()
	w.advance(time.Hour) // longer than each backoff and the interval at which tunnels are read
	for range 2 {        // a scripted failure can still delay the first round
		for _, w.key = range append(w.keys(), w.deleted...) {
			w.reconcileFor(time.Minute)
		}
		w.reconcile()
		w.retryStatuses()
		w.advance(time.Hour)
	}
	w.deleted = nil
	w.reconcile()
	w.want("the plan after the faults", w.plan())
	w.wantTunnels()
}

// resume ends all pauses, also those of deleted Gateways, whose users set spec.paused of the Tunnel.
// During a pause, the controller cannot find out whether a write without an answer was applied.
func (w *faultyWorld) resume() {
	w.t.Helper()
	for _, object := range w.list(&gatewayv1.GatewayList{}) {
		if v1alpha1.RequestsPause(object.(*gatewayv1.Gateway)) {
			object.SetAnnotations(nil)
			w.update(object)
		}
	}
	for _, object := range w.list(&v1alpha1.TunnelList{}) {
		if spec := &object.(*v1alpha1.Tunnel).Spec; spec.Paused {
			spec.Paused = false
			w.update(object)
		}
	}
}

// wantTunnels checks that the live tunnels are those of the Tunnels.
func (w *faultyWorld) wantTunnels() {
	w.t.Helper()
	recorded, live := map[string]bool{}, map[string]bool{}
	for _, object := range w.list(&v1alpha1.TunnelList{}) {
		if id := object.(*v1alpha1.Tunnel).Status.TunnelID; id != "" {
			recorded[id] = true
		}
	}
	for _, tunnel := range w.cloud.LiveTunnels() {
		live[string(tunnel.ID)] = true
		if !recorded[string(tunnel.ID)] && !w.retained[tunnel.Name] {
			w.t.Errorf("tunnel %s has no Tunnel", tunnel.Name)
		}
	}
	for id := range recorded {
		if !live[id] {
			w.t.Errorf("a Tunnel records the tunnel %s, which does not exist", id)
		}
	}
}

// keys returns the keys of all Gateways and Tunnels, in a stable order.
func (w *faultyWorld) keys() (keys []state.Key) {
	w.t.Helper()
	for _, object := range w.list(&gatewayv1.GatewayList{}) {
		keys = append(keys, state.GatewayKey(object.GetNamespace(), object.GetName()))
	}
	for _, object := range w.list(&v1alpha1.TunnelList{}) {
		spec := object.(*v1alpha1.Tunnel).Spec
		if spec.DeletionPolicy != v1alpha1.DeletionPolicyDelete {
			w.retained[spec.Name] = true
		}
		ref := spec.Gateway
		if key := state.GatewayKey(ref.Namespace, ref.Name); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// deleteGateway deletes a random Gateway.
func (w *faultyWorld) deleteGateway() {
	w.t.Helper()
	if all := w.list(&gatewayv1.GatewayList{}); len(all) > 0 {
		g := all[w.random.IntN(len(all))]
		w.delete(g)
		w.deleted = append(w.deleted, state.GatewayKey(g.GetNamespace(), g.GetName()))
	}
}

// The methods whose calls fail, and the errors.
var (
	failingOps = []fakeprovider.Op{
		fakeprovider.OpFindTunnel, fakeprovider.OpTunnel, fakeprovider.OpTunnels, fakeprovider.OpCreateTunnel, fakeprovider.OpConfiguration,
		fakeprovider.OpConfigure, fakeprovider.OpToken, fakeprovider.OpConnections, fakeprovider.OpDeleteTunnel,
	}
	callErrors = []error{
		&provider.RateLimitedError{RetryAfter: 30 * time.Second}, &provider.RateLimitedError{RetryAfter: provider.MaxRetryAfter, Requested: 1000 * time.Hour},
		&provider.UnavailableError{Err: errors.New("status 500")}, provider.ErrUnauthorized,
	}
)

// failCalls lets the next calls of one method fail. With status 500, the call may have taken
// effect.
func (w *faultyWorld) failCalls() {
	op, err := failingOps[w.random.IntN(len(failingOps))], callErrors[w.random.IntN(len(callErrors))]
	for range 1 + w.random.IntN(3) {
		if _, isUnavailable := errors.AsType[*provider.UnavailableError](err); isUnavailable && w.random.IntN(2) == 0 {
			w.cloud.FailAfter(op, err)
		} else {
			w.cloud.Fail(op, err)
		}
	}
}

// failWrite lets a part of the writes to the API server fail, some of them after they were applied.
func (f *failures) failWrite(o write) (applied bool, err error) {
	random, fails := f.next(o)
	if !fails {
		return true, nil
	}
	resource := schema.GroupResource{Resource: o.kind}
	switch random.IntN(4) {
	case 0:
		return false, apierrors.NewConflict(resource, o.name, errors.New("the object has been modified"))
	case 1:
		return false, apierrors.NewGenericServerResponse(http.StatusInternalServerError, o.verb, resource, o.name, "etcdserver: request timed out", 0, true)
	case 2:
		return true, apierrors.NewTimeoutError("the answer was lost", 0)
	}
	return false, apierrors.NewForbidden(resource, o.name, errors.New("refused by a policy"))
}

// jump sets the wall clock forward or back by up to an hour. The monotonic clock goes on.
func (w *faultyWorld) jump() {
	w.wallTime = w.wallTime.Add(time.Duration(w.random.IntN(7201)-3600) * time.Second)
}

// changeTunnel changes a tunnel's configuration, as another client does.
func (w *faultyWorld) changeTunnel() {
	live := w.cloud.LiveTunnels()
	if len(live) == 0 {
		return
	}
	w.cloud.SetConfiguration(live[w.random.IntN(len(live))].ID, provider.Configuration{Ingress: []provider.IngressRule{{Service: "http_status:418"}}})
}
