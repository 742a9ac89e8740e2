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
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// inventory periodically lists each account's tunnels with one request. It reports
// orphaned tunnels: tunnels in this installation without a Tunnel object. It requeues
// Gateways whose tunnel is missing or has lost connectors, because the tunnel's token
// may have been replaced.
type inventory struct {
	process  *process
	interval time.Duration
	requeue  func(state.Key)
	metrics  *metrics.Metrics
	// orphanCandidates contains, by account, the tunnels without a Tunnel object in
	// the last inventory. A tunnel is reported as orphaned when two successive
	// inventories find it, because its object may be about to be written.
	orphanCandidates map[string]map[provider.TunnelID]bool
}

func newInventory(p *process, o Options, requeue func(state.Key)) *inventory {
	return &inventory{
		process: p, interval: o.InventoryInterval, requeue: requeue, metrics: o.Metrics, orphanCandidates: map[string]map[provider.TunnelID]bool{},
	}
}

// inventoryRetryDelay is the maximum delay after a failed inventory.
const inventoryRetryDelay = time.Minute

// minRetryDelay is the minimum delay before a call that the API request budget or the API has
// rejected is repeated.
const minRetryDelay = 100 * time.Millisecond

// Start takes inventories until the context is canceled.
func (i *inventory) Start(ctx context.Context) error {
	next := i.nextDelay()
	for {
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		next = i.nextDelay()
		// The manager does not recover from a panic.
		if err := recovery.Call(ctx, func() error { return i.checkAccounts(ctx) }); err != nil && ctx.Err() == nil {
			next = i.retryDelay(err, next)
			log.FromContext(ctx).Info("failed to list the accounts' tunnels", "cause", err.Error(), "retryAfter", next.String())
		}
	}
}

// retryDelay returns the delay after a failed inventory, before the next one that is due.
func (*inventory) retryDelay(err error, next time.Duration) time.Duration {
	if slot, ok := provider.RetryAfter(err); ok {
		return max(slot, minRetryDelay) // a call that misses its slot in the budget gets a later one
	}
	return min(next, inventoryRetryDelay)
}

// nextDelay returns the interval, shortened by a random share of at most 10 %.
func (i *inventory) nextDelay() time.Duration {
	return i.interval - time.Duration(rand.Int64N(int64(i.interval)/10+1)) // #nosec G404 -- not for security
}

// checkAccounts takes the inventory for every account, and then closes the accounts
// that no Tunnel uses, unless an account may contain orphaned tunnels.
func (i *inventory) checkAccounts(ctx context.Context) error {
	var errs []error
	opened, kept := i.process.accounts.all(), map[string]bool{}
	for _, a := range opened {
		err := i.checkAccount(ctx, a)
		kept[a.id] = len(i.orphanCandidates[a.id]) > 0 || err != nil && !errors.Is(err, provider.ErrUnauthorized)
		errs = append(errs, err)
	}
	tunnels, err := i.process.objects.list(ctx, i.process.objects.client)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	i.process.accounts.retain(tunnels, kept)
	i.forgetClosed(opened)
	return errors.Join(errs...)
}

// forgetClosed forgets the accounts that are no longer open.
func (i *inventory) forgetClosed(opened []account) {
	open := map[string]bool{}
	for _, a := range i.process.accounts.all() {
		open[a.id] = true
	}
	for _, a := range opened {
		if !open[a.id] {
			delete(i.orphanCandidates, a.id)
			i.metrics.DeleteAccount(a.id)
		}
	}
}

// checkAccount takes one account's inventory.
func (i *inventory) checkAccount(ctx context.Context, a account) error {
	remote, err := a.provider.Tunnels(provider.WithPriority(ctx, provider.PriorityDrift))
	if err != nil {
		return err
	}
	tunnels, err := i.process.objects.list(ctx, i.process.objects.client)
	if err != nil {
		return err
	}
	i.requeueUnhealthy(a, remote, tunnels)
	i.reportOrphans(ctx, a, remote, tunnels)
	return nil
}

// requeueUnhealthy requeues the Gateways whose tunnels are missing or have lost
// connectors.
func (i *inventory) requeueUnhealthy(a account, remote []provider.Tunnel, tunnels []v1alpha1.Tunnel) {
	statuses := map[string]provider.TunnelStatus{}
	for _, t := range remote {
		statuses[string(t.ID)] = t.Status
	}
	for n := range tunnels {
		t := &tunnels[n]
		if t.Spec.AccountID != a.id || t.Status.TunnelID == "" || t.Spec.ControllerName != i.process.options.Tunnel.ControllerName {
			continue
		}
		status, listed := statuses[t.Status.TunnelID]
		if !listed || status == provider.TunnelDegraded || status == provider.TunnelDown {
			i.process.memories.addFinding(gatewayOf(t), !listed)
			i.requeue(gatewayOf(t))
		}
	}
}

// reportOrphans records how many tunnels the account has, and reports this
// installation's orphaned tunnels.
func (i *inventory) reportOrphans(ctx context.Context, a account, remote []provider.Tunnel, tunnels []v1alpha1.Tunnel) {
	recorded := map[string]bool{}
	for n := range tunnels {
		recorded[tunnels[n].Status.TunnelID], recorded[tunnels[n].Spec.Name] = true, true
	}
	candidates, orphans := map[provider.TunnelID]bool{}, []string{}
	for _, t := range remote {
		if !strings.HasPrefix(t.Name, tunnel.NamePrefix(i.process.options.Tunnel.ClusterID)) || recorded[string(t.ID)] || recorded[t.Name] {
			continue
		}
		if candidates[t.ID] = true; i.orphanCandidates[a.id][t.ID] {
			orphans = append(orphans, fmt.Sprintf("%s (%s)", t.Name, t.ID))
		}
	}
	i.orphanCandidates[a.id] = candidates
	i.metrics.SetAccount(a.id, len(remote), len(orphans))
	if len(orphans) > 0 {
		slices.Sort(orphans)
		log.FromContext(ctx).Info("found tunnels without a Tunnel object",
			"account", a.id, "tunnels", orphans, "solution", "delete the tunnels in the Cloudflare dashboard unless they are needed")
	}
}
