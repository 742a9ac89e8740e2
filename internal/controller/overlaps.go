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

// overlaps knows which hostnames several Gateways serve. After a start it does
// not, until every Gateway has been looked at once; what was said before stays
// as long.
type overlaps struct {
	all  func(context.Context) ([]state.Key, error) // the Gateways of ours
	wake func(state.Key)

	mu        sync.Mutex
	hostnames *gateway.Hostnames
	// unseen are the Gateways of which it is not known what they serve; nil
	// before the first one was looked at.
	unseen map[types.NamespacedName]bool
	// early are those that said something before all were known.
	early []types.NamespacedName
}

// serve notes what the Gateway serves, has the others looked at again whose
// statuses change by it, and returns what it shares with them.
func (o *overlaps) serve(ctx context.Context, g *gatewayv1.Gateway, hostnames []string) (gateway.Shared, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.expect(ctx); err != nil {
		return gateway.Shared{}, err
	}
	name := client.ObjectKeyFromObject(g)
	if o.set(name, hostnames) {
		return o.hostnames.Shared(name), nil
	}
	if meta.FindStatusCondition(g.Status.Conditions, gateway.TypeHostnameShared) != nil {
		o.early = append(o.early, name)
	}
	return gateway.Shared{}, nil
}

// gone notes that the Gateway serves nothing any more.
func (o *overlaps) gone(name types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.set(name, nil)
}

// set reports whether it is known of all Gateways what they serve.
func (o *overlaps) set(name types.NamespacedName, hostnames []string) bool {
	affected := o.hostnames.Set(name, hostnames)
	if len(o.unseen) > 0 {
		delete(o.unseen, name)
		if len(o.unseen) > 0 {
			return false
		}
		affected, o.early = append(o.hostnames.Sharing(), o.early...), nil
	}
	for _, other := range affected {
		o.wake(state.GatewayKey(other.Namespace, other.Name))
	}
	return true
}

// expect notes which Gateways there are at the start.
func (o *overlaps) expect(ctx context.Context) error {
	if o.unseen != nil {
		return nil
	}
	keys, err := o.all(ctx)
	if err != nil {
		return fmt.Errorf("listing the Gateways: %w", err)
	}
	unseen := map[types.NamespacedName]bool{}
	for _, key := range keys {
		unseen[key.NamespacedName] = true
	}
	o.unseen = unseen
	return nil
}
