package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// undecided contains the Gateways about which this process has not decided yet. Until it has
// decided about all of them, it does not know what no Gateway needs.
type undecided struct {
	// listManaged lists the managed Gateways and those of Tunnels.
	listManaged func(context.Context) ([]state.Key, error)

	mu sync.Mutex
	// names is nil before the Gateways were listed.
	names map[types.NamespacedName]bool
}

func newUndecided(d dependencies, o Options) *undecided {
	return &undecided{listManaged: watches{reader: d.client, controllerName: o.ControllerName, namespace: o.Namespace}.managedGateways}
}

// initialize lists the Gateways at the first call. It does not hold the mutex while it lists
// them.
func (u *undecided) initialize(ctx context.Context) error {
	if u.isListed() {
		return nil
	}
	keys, err := u.listManaged(ctx)
	if err != nil {
		return fmt.Errorf("list the Gateways: %w", err)
	}
	names := map[types.NamespacedName]bool{}
	for _, key := range keys {
		names[key.NamespacedName] = true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil { // otherwise another worker has listed them
		u.names = names
	}
	return nil
}

func (u *undecided) isListed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.names != nil
}

// decide records that the process has decided about the Gateway. It reports whether that was
// the last one.
func (u *undecided) decide(name types.NamespacedName) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.names[name] {
		return false
	}
	delete(u.names, name)
	return len(u.names) == 0
}

// isComplete reports whether the process has decided about every Gateway.
func (u *undecided) isComplete() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.names != nil && len(u.names) == 0
}
