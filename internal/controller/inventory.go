package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// inventory looks at all tunnels of the accounts from time to time, by one list
// and not by a read for each Gateway. A tunnel that is missing is looked for;
// one that has lost connectors may have a new token.
type inventory struct {
	tunnels  *tunnels
	interval time.Duration
	wake     func(state.Key)
}

// Start looks until the context ends.
func (i *inventory) Start(ctx context.Context) error {
	again := i.next()
	for {
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		again = i.next()
		if err := i.look(ctx); err != nil && ctx.Err() == nil {
			again = min(again, lastRetry)
			log.FromContext(ctx).Info("the tunnels of the account were not looked at", "cause", err.Error(), "again", again.String())
		}
	}
}

func (i *inventory) next() time.Duration {
	return i.interval - time.Duration(rand.Int64N(int64(i.interval)/10+1)) // #nosec G404 -- not for security
}

// look notes a doubt about every tunnel of ours that the list gives cause for.
func (i *inventory) look(ctx context.Context) error {
	var errs []error
	for _, a := range i.tunnels.accounts.all() {
		errs = append(errs, i.lookAt(ctx, a))
	}
	return errors.Join(errs...)
}

func (i *inventory) lookAt(ctx context.Context, a account) error {
	list, err := a.provider.Tunnels(provider.WithPriority(ctx, provider.PriorityDrift))
	if err != nil {
		return err
	}
	statuses := map[provider.TunnelID]provider.TunnelStatus{}
	for _, t := range list {
		statuses[t.ID] = t.Status
	}
	known, err := i.tunnels.known(ctx, a.id)
	if err != nil {
		return err
	}
	for key, id := range known {
		status, ok := statuses[id]
		if !ok || status == provider.TunnelDegraded || status == provider.TunnelDown {
			i.tunnels.doubt(key, doubt{missing: !ok})
			i.wake(key)
		}
	}
	return nil
}

// doubt is what the inventory found about a tunnel, for the worker that has
// the Gateway's key: its token may be another one, and perhaps it is missing.
type doubt struct{ missing bool }

func (ts *tunnels) doubt(key state.Key, d doubt) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.doubts[key] = d
}

// known returns the tunnels of an account that the records of our Gateways name.
func (ts *tunnels) known(ctx context.Context, account string) (map[state.Key]provider.TunnelID, error) {
	var list gatewayv1.GatewayList
	if err := ts.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Gateways: %w", err)
	}
	known := map[state.Key]provider.TunnelID{}
	for i := range list.Items {
		g := &list.Items[i]
		if record, _ := state.ReadRecord(g); record.Controller == ts.controllerName && record.Account == account && record.Tunnel != "" {
			known[loadedKey(g)] = record.Tunnel
		}
	}
	return known, nil
}

// settleDoubt takes what the inventory found as a reason to look again.
func (ts *tunnels) settleDoubt(t *tunnel, g *gatewayv1.Gateway) {
	ts.mu.Lock()
	d, ok := ts.doubts[loadedKey(g)]
	delete(ts.doubts, loadedKey(g))
	ts.mu.Unlock()
	if !ok {
		return
	}
	t.token.suspect = true
	if d.missing {
		t.remote.readAt = ts.now()
	}
}
