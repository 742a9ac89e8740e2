package controller

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// listenerSetGateways maps each ListenerSet to its last managed Gateway. A route's
// status entry names only the ListenerSet, which may not exist any longer.
type listenerSetGateways struct {
	mu     sync.Mutex
	lastOf map[types.NamespacedName]types.NamespacedName
}

func (l *listenerSetGateways) record(name types.NamespacedName, sets []*gatewayv1.ListenerSet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastOf == nil {
		l.lastOf = map[types.NamespacedName]types.NamespacedName{}
	}
	for _, set := range sets {
		l.lastOf[client.ObjectKeyFromObject(set)] = name
	}
}

// last returns the ListenerSet's last recorded Gateway, and whether there is one.
func (l *listenerSetGateways) last(set types.NamespacedName) (types.NamespacedName, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name, ok := l.lastOf[set]
	return name, ok
}

func (l *listenerSetGateways) forget(set types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lastOf, set)
}

// reconcileListenerSet removes route status entries for a ListenerSet without a
// Gateway.
func (p *process) reconcileListenerSet(ctx context.Context, key state.Key, s *gateway.Snapshot) {
	last, known := p.sets.last(key.NamespacedName)
	if known && len(s.Orphans) > 0 && p.gateways.read(ctx, last).State == tunnel.GatewayGone {
		s.Orphans = nil // the Gateway was deleted too, so its routes need no events
	}
	p.withdraw(ctx, key, gateway.ResetReport(key, s))
	if len(s.HTTPRoutes)+len(s.GRPCRoutes) > 0 {
		return // removing the entries can fail
	}
	if err := p.loader.Reader.Get(ctx, key.NamespacedName, &gatewayv1.ListenerSet{}); apierrors.IsNotFound(err) {
		p.sets.forget(key.NamespacedName)
	}
}
