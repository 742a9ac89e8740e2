package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// memories contains what the process remembers about each key. A restart loses it.
type memories struct {
	mu    sync.Mutex
	byKey map[state.Key]*memory
	// followers have the Services that the publications follow. The EndpointSlice watch
	// reads them, so they need no publication's mutex.
	followers followers
}

func newMemories() *memories {
	return &memories{byKey: map[state.Key]*memory{}, followers: newFollowers()}
}

// memory is what the process remembers about one key.
type memory struct {
	// Only the worker that processes the key uses these fields. A panic replaces the
	// first one.
	tunnel  *tunnelMemory
	applied applied
	access  accessMemory
	warned  map[gateway.HostnameWarning]bool
	// loaded is what the last reconcile has loaded, decisions what it has decided, and statuses
	// what it has reported. A panic loses the first two.
	loaded    state.Previous
	decisions *decision.Memory
	statuses  status.Last
	// routes are the states of the routes in the last report, for metrics.
	routes routeStates

	// [memories.mu] guards the other fields. isUsed reports whether a reconcile uses
	// the memory, and publication is the last publication for the Gateway's Envoys, or
	// nil.
	isUsed      bool
	publication *publication
	// finding is the inventory finding that no reconcile has processed yet, or nil.
	finding *inventoryFinding
	// queued is when the oldest unprocessed change arrived, and inProgress is when the
	// oldest change arrived that the running reconcile processes; zero if there is
	// none.
	queued, inProgress time.Time
}

// tunnelMemory is what the process remembers about a Gateway's tunnel.
type tunnelMemory struct {
	memory tunnel.Memory
	// object is the Tunnel as it was last written or read from the API server; nil
	// before that.
	object *v1alpha1.Tunnel
	token  tokenRead
	// reportedProblem is the reason in the last event about a problem that requires
	// user action.
	reportedProblem conditions.Reason
	warnings        reportedWarnings
	// invalidAdoptions identifies, by annotation with requests to adopt something, the value
	// that an event has reported as not valid.
	invalidAdoptions map[string]string
	// notBefore is the uptime before which no reconcile is useful, because a write has
	// to wait for a token.
	notBefore     time.Duration
	contributions contributions
	activity      activity
}

func newTunnelMemory() *tunnelMemory { return &tunnelMemory{invalidAdoptions: map[string]string{}} }

// activity lists the changes to a tunnel since metrics were last recorded.
type activity struct {
	pushedBytes []int // sizes of the written configurations
	repaired    bool  // the controller reverted an external change
	contested   bool  // the controller stopped writing after too many external changes
	failures    []failure
	// changedNamespaces contains the namespaces whose objects caused the writes, once
	// for each write.
	changedNamespaces []string
}

// failure is why a step failed.
type failure struct {
	reason conditions.Reason
	err    error
}

// inventoryFinding is what the inventory found about an unhealthy tunnel.
type inventoryFinding struct {
	// missing means that the tunnel does not exist; otherwise it has lost connectors.
	missing bool
}

// of returns the key's memory for its worker, and creates it if necessary.
func (m *memories) of(key state.Key) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.ensure(key)
	found.isUsed = true
	return found
}

// ensure returns the key's memory, and creates it if necessary. The caller holds the
// mutex.
func (m *memories) ensure(key state.Key) *memory {
	found := m.byKey[key]
	if found == nil {
		found = &memory{tunnel: newTunnelMemory()}
		m.byKey[key] = found
	}
	return found
}

// find returns the key's memory, or nil.
func (m *memories) find(key state.Key) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byKey[key]
}

// forget forgets a Gateway that has no Tunnel. Only its changes remain, until they are
// processed.
func (m *memories) forget(key state.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.byKey[key]; found != nil {
		m.byKey[key] = &memory{tunnel: newTunnelMemory(), queued: found.queued, inProgress: found.inProgress}
		m.followers.removeGateway(key.NamespacedName)
		m.removeUnused(key)
	}
}

// removeUnused removes the key's memory if nothing is in it. The caller holds the
// mutex.
func (m *memories) removeUnused(key state.Key) {
	if found := m.byKey[key]; found != nil && !found.isUsed && found.finding == nil && found.queued.IsZero() && found.inProgress.IsZero() {
		delete(m.byKey, key)
	}
}

// accessUntil returns the uptime until which the last decision about the access to the key's
// hostnames holds; 0 if it holds until something changes. Only the key's worker calls it.
func (m *memories) accessUntil(key state.Key) time.Duration {
	if found := m.find(key); found != nil {
		return found.access.until
	}
	return 0
}

// resetAccessUntil forgets the time that accessUntil returns: only a decision sets it.
func (m *memories) resetAccessUntil(key state.Key) {
	if found := m.find(key); found != nil {
		found.access.until = 0
	}
}

// addFinding stores an inventory finding for the key's next reconcile.
func (m *memories) addFinding(key state.Key, missing bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ensure(key).finding = &inventoryFinding{missing}
}

// takeFinding returns and removes the inventory finding for the key, or nil.
func (m *memories) takeFinding(key state.Key) *inventoryFinding {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory := m.byKey[key]
	if memory == nil {
		return nil
	}
	found := memory.finding
	memory.finding = nil
	return found
}

// publicationOf returns the publication for the Gateway's Envoys, and creates it if
// necessary.
func (m *memories) publicationOf(gateway types.NamespacedName) *publication {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory := m.ensure(state.GatewayKey(gateway.Namespace, gateway.Name))
	memory.isUsed = true
	if memory.publication == nil {
		memory.publication = &publication{assigned: map[string]assignment{}}
	}
	return memory.publication
}

// findPublication returns the publication for the Gateway's Envoys, or nil.
func (m *memories) findPublication(gateway types.NamespacedName) *publication {
	m.mu.Lock()
	defer m.mu.Unlock()
	if memory := m.byKey[state.GatewayKey(gateway.Namespace, gateway.Name)]; memory != nil {
		return memory.publication
	}
	return nil
}

// takePublication removes and returns the publication for the Gateway's Envoys, or nil.
func (m *memories) takePublication(gateway types.NamespacedName) *publication {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory := m.byKey[state.GatewayKey(gateway.Namespace, gateway.Name)]
	if memory == nil {
		return nil
	}
	found := memory.publication
	memory.publication = nil
	m.followers.removeGateway(gateway)
	return found
}

// follow makes the Gateway's publication follow the Services and ServiceImports of the clusters,
// unless it is no longer the Gateway's publication.
func (m *memories) follow(gateway types.NamespacedName, p *publication, clusters []envoy.EndpointsOf) {
	m.ifCurrent(gateway, p, func() {
		for _, cluster := range clusters {
			m.followers.add(gateway, cluster.Source())
		}
	})
}

// unfollow makes the publication follow the sources no longer.
func (m *memories) unfollow(gateway types.NamespacedName, p *publication, sources []envoy.EndpointSource) {
	m.ifCurrent(gateway, p, func() {
		for _, source := range sources {
			m.followers.remove(gateway, source)
		}
	})
}

// ifCurrent calls do with the mutex locked if the publication is the Gateway's.
func (m *memories) ifCurrent(gateway types.NamespacedName, p *publication, do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if memory := m.byKey[state.GatewayKey(gateway.Namespace, gateway.Name)]; memory != nil && memory.publication == p {
		do()
	}
}

// followersOf returns the Gateways whose publications follow the source.
func (m *memories) followersOf(source envoy.EndpointSource) []followed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.followers.of(source)
}

// allFollowers returns the Gateways whose publications follow endpoints.
func (m *memories) allFollowers() []followed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.followers.all()
}
