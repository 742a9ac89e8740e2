package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// inventory lists the tunnels of the accounts from time to time, by one list and
// not by a read for each Gateway. It reports tunnels of this installation that no
// Tunnel object records, and wakes Gateways whose tunnel is missing or has lost
// connectors: its token may have been replaced.
type inventory struct {
	lifecycle *lifecycle
	interval  time.Duration
	wake      func(state.Key)
	metrics   *metrics.Metrics
	// suspects are the tunnels without a Tunnel object in the last inventory, by
	// account. A tunnel is an orphan when it was a suspect before: its object may
	// be just being written.
	suspects map[string]map[provider.TunnelID]bool
}

// retryInventory is how soon an inventory that failed is repeated.
const retryInventory = time.Minute

// Start takes inventories until the context ends.
func (i *inventory) Start(ctx context.Context) error {
	next := i.next()
	for {
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		next = i.next()
		if err := i.take(ctx); err != nil && ctx.Err() == nil {
			next = min(next, retryInventory)
			log.FromContext(ctx).Info("the inventory of tunnels failed", "cause", err.Error(), "retryAfter", next.String())
		}
	}
}

func (i *inventory) next() time.Duration {
	return i.interval - time.Duration(rand.Int64N(int64(i.interval)/10+1)) // #nosec G404 -- not for security
}

// take takes the inventory of every account that was opened.
func (i *inventory) take(ctx context.Context) error {
	var errs []error
	for _, a := range i.lifecycle.accounts.all() {
		errs = append(errs, i.takeOf(ctx, a))
	}
	return errors.Join(errs...)
}

func (i *inventory) takeOf(ctx context.Context, a account) error {
	remote, err := a.provider.Tunnels(provider.WithPriority(ctx, provider.PriorityDrift))
	if err != nil {
		return err
	}
	tunnels, err := i.lifecycle.objects.list(ctx, i.lifecycle.client())
	if err != nil {
		return err
	}
	i.wakeDoubtful(a, remote, tunnels)
	i.report(ctx, a, remote, tunnels)
	return nil
}

// wakeDoubtful wakes the Gateways whose tunnels are missing or have lost
// connectors.
func (i *inventory) wakeDoubtful(a account, remote []provider.Tunnel, tunnels []v1alpha1.Tunnel) {
	statuses := map[string]provider.TunnelStatus{}
	for _, t := range remote {
		statuses[string(t.ID)] = t.Status
	}
	for n := range tunnels {
		t := &tunnels[n]
		if t.Spec.AccountID != a.id || t.Status.TunnelID == "" || t.Spec.ControllerName != i.lifecycle.options.ControllerName {
			continue
		}
		status, listed := statuses[t.Status.TunnelID]
		if !listed || status == provider.TunnelDegraded || status == provider.TunnelDown {
			i.lifecycle.doubt(gatewayOf(t), !listed)
			i.wake(gatewayOf(t))
		}
	}
}

// report records how many tunnels the account has, and those of this
// installation that no Tunnel object records.
func (i *inventory) report(ctx context.Context, a account, remote []provider.Tunnel, tunnels []v1alpha1.Tunnel) {
	recorded := map[string]bool{}
	for n := range tunnels {
		recorded[tunnels[n].Status.TunnelID], recorded[tunnels[n].Spec.Name] = true, true
	}
	suspects, orphans := map[provider.TunnelID]bool{}, []string{}
	for _, t := range remote {
		if !strings.HasPrefix(t.Name, tunnel.NamePrefix(i.lifecycle.options.ClusterID)) || recorded[string(t.ID)] || recorded[t.Name] {
			continue
		}
		if suspects[t.ID] = true; i.suspects[a.id][t.ID] {
			orphans = append(orphans, fmt.Sprintf("%s (%s)", t.Name, t.ID))
		}
	}
	i.suspects[a.id] = suspects
	i.metrics.SetAccount(a.id, len(remote), len(orphans))
	if len(orphans) > 0 {
		slices.Sort(orphans)
		log.FromContext(ctx).Info("tunnels of this installation have no Tunnel object; delete them in the Cloudflare dashboard if they are not needed",
			"account", a.id, "tunnels", orphans)
	}
}
