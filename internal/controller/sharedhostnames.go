package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// sharedHostnames knows which hostnames several Gateways serve. After a start it does
// not, until every Gateway has been looked at once; what was said before stays
// as long.
type sharedHostnames struct {
	listManaged func(context.Context) ([]state.Key, error) // the Gateways of ours
	requeue     func(state.Key)

	mu        sync.Mutex
	hostnames *gateway.Hostnames
	// unreconciled are the Gateways of which it is not known what they serve; nil
	// before the first one was looked at.
	unreconciled map[types.NamespacedName]bool
	// stale are those that said something before all were known.
	stale []types.NamespacedName
}

// update notes what the Gateway serves, has the others looked at again whose
// statuses change by it, and returns what it shares with them.
func (o *sharedHostnames) update(ctx context.Context, g *gatewayv1.Gateway, hostnames []string) (gateway.Shared, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.initialize(ctx); err != nil {
		return gateway.Shared{}, err
	}
	name := client.ObjectKeyFromObject(g)
	if o.set(name, hostnames) {
		return o.hostnames.Shared(name), nil
	}
	if meta.FindStatusCondition(g.Status.Conditions, gateway.TypeHostnameShared) != nil {
		o.stale = append(o.stale, name)
	}
	return gateway.Shared{}, nil
}

// remove notes that the Gateway serves nothing any more.
func (o *sharedHostnames) remove(name types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.set(name, nil)
}

// set reports whether it is known of all Gateways what they serve.
func (o *sharedHostnames) set(name types.NamespacedName, hostnames []string) bool {
	affected := o.hostnames.Set(name, hostnames)
	if len(o.unreconciled) > 0 {
		delete(o.unreconciled, name)
		if len(o.unreconciled) > 0 {
			return false
		}
		affected, o.stale = append(o.hostnames.Sharing(), o.stale...), nil
	}
	for _, other := range affected {
		o.requeue(state.GatewayKey(other.Namespace, other.Name))
	}
	return true
}

// initialize notes which Gateways there are at the start.
func (o *sharedHostnames) initialize(ctx context.Context) error {
	if o.unreconciled != nil {
		return nil
	}
	keys, err := o.listManaged(ctx)
	if err != nil {
		return fmt.Errorf("listing the Gateways: %w", err)
	}
	unseen := map[types.NamespacedName]bool{}
	for _, key := range keys {
		unseen[key.NamespacedName] = true
	}
	o.unreconciled = unseen
	return nil
}
