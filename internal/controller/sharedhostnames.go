package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// sharedHostnames tracks the hostnames that several Gateways serve. After a start, the
// result is unknown until every managed Gateway has been reconciled once. Until then,
// existing HostnameShared conditions do not change.
type sharedHostnames struct {
	// listManaged lists the managed Gateways.
	listManaged func(context.Context) ([]state.Key, error)
	requeue     func(state.Key)

	mu        sync.Mutex
	hostnames *gateway.Hostnames
	// unreconciled contains the Gateways that have not been reconciled since the
	// start; nil before the first reconcile.
	unreconciled map[types.NamespacedName]bool
	// stale contains the Gateways whose existing HostnameShared condition could not
	// be updated because the result was unknown.
	stale []types.NamespacedName
}

// update records the hostnames that the Gateway serves, and requeues the Gateways whose
// statuses change. It returns the hostnames that the Gateway shares with others.
func (s *sharedHostnames) update(ctx context.Context, g *gatewayv1.Gateway, hostnames []string) (gateway.Shared, error) {
	if err := s.initialize(ctx); err != nil {
		return gateway.Shared{}, err
	}
	name := client.ObjectKeyFromObject(g)
	hasCondition := conditions.TypeHostnameShared.Find(g.Status.Conditions) != nil
	shared, affected := s.record(name, hostnames, hasCondition)
	s.requeueAll(affected)
	return shared, nil
}

// remove records that the Gateway no longer serves any hostname.
func (s *sharedHostnames) remove(name types.NamespacedName) {
	_, affected := s.record(name, nil, false)
	s.requeueAll(affected)
}

// requeueAll requeues Gateways. The caller must not hold the mutex, because requeue can
// block.
func (s *sharedHostnames) requeueAll(names []types.NamespacedName) {
	for _, name := range names {
		s.requeue(state.GatewayKey(name.Namespace, name.Name))
	}
}

// record records a Gateway's hostnames. It returns the hostnames that the Gateway
// shares with others, and the Gateways whose statuses change. hasCondition reports
// whether the Gateway has a HostnameShared condition, which becomes stale while the
// hostnames of other Gateways are unknown.
func (s *sharedHostnames) record(name types.NamespacedName, hostnames []string, hasCondition bool) (gateway.Shared, []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	affected := s.hostnames.Set(name, hostnames)
	if len(s.unreconciled) > 0 {
		delete(s.unreconciled, name)
		if len(s.unreconciled) > 0 {
			if hasCondition {
				s.stale = append(s.stale, name)
			}
			return gateway.Shared{}, nil
		}
		affected, s.stale = append(s.hostnames.Sharing(), s.stale...), nil
	}
	return s.hostnames.Shared(name), affected
}

// initialize lists the managed Gateways at the first call. It does not hold the mutex
// while it lists them.
func (s *sharedHostnames) initialize(ctx context.Context) error {
	if s.initialized() {
		return nil
	}
	keys, err := s.listManaged(ctx)
	if err != nil {
		return fmt.Errorf("list the Gateways: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreconciled != nil {
		return nil // another worker has set it
	}
	s.unreconciled = map[types.NamespacedName]bool{}
	for _, key := range keys {
		s.unreconciled[key.NamespacedName] = true
	}
	return nil
}

func (s *sharedHostnames) initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unreconciled != nil
}
