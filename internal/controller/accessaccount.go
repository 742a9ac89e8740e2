package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// accountReconciler reads and changes the applications of one account at a time.
type accountReconciler struct {
	book     *accessBook
	accounts *accessAccounts
	open     openFunc[provider.Access]
	tokens   *apiTokens
	key      *signingKey
	objects  tunnelObjects
	options  tunnel.Options
	metrics  *metrics.Metrics
	clock    clock
}

// progressInterval is how often the report is renewed while steps are executed: many
// applications take minutes, and the first ones must not wait for the last one.
const progressInterval = 2 * time.Second

// Reconcile executes the decisions about an account until no step can be executed now.
func (r *accountReconciler) Reconcile(ctx context.Context, key accountKey) (reconcile.Result, error) {
	account, classes := r.accounts.of(key)
	if account == nil {
		r.forget(key)
		return reconcile.Result{}, nil
	}
	defer forgetMemoryAfterPanic(&account.memory)
	base, err := r.prepare(ctx, account, classes)
	if err != nil {
		return reconcile.Result{}, err
	}
	progress := r.clock.uptime()
	return runSteps(ctx, func() (bool, reconcile.Result, error) {
		facts, err := r.gather(ctx, base, key, account)
		if err != nil {
			return true, reconcile.Result{}, err
		}
		account.memory = access.Observe(facts)
		facts.Memory = account.memory
		step := access.Decide(facts)
		if ends := step.Ends(); ends || facts.Uptime >= progress+progressInterval {
			progress = facts.Uptime
			r.report(ctx, key, account, access.NewReport(facts))
			if ends {
				return true, requeueAfter(step.Action == access.Wait, step.Delay), nil
			}
		}
		result := r.execute(ctx, key, account, step)
		if ctx.Err() == nil {
			account.memory = access.Conclude(account.memory, step, result)
			if result.Err == nil {
				r.book.adopted(step.Adoptions)
			}
		}
		return false, reconcile.Result{}, nil
	})
}

// prepare returns the facts that do not change during a reconcile, and opens the API.
func (r *accountReconciler) prepare(ctx context.Context, account *accessAccount, classes []accessClass) (access.Facts, error) {
	f := access.Facts{Identity: ownership.Identity{ClusterID: r.options.ClusterID, ClusterUID: r.options.ClusterUID}}
	for _, c := range classes {
		f.Classes = append(f.Classes, access.Class{Name: c.name, Created: c.created, Settings: c.settings})
	}
	signing, problem, err := r.key.read(ctx, true)
	if err != nil {
		return f, err
	}
	f.Identity.Key = signing
	api, message, err := openAPI(ctx, r.tokens, r.open, tokensOf(classes), account.api)
	if err != nil {
		return f, err
	}
	if account.api = api; api != nil {
		f.TokenVersion = api.version
	}
	f.TokenMessage = message
	if problem != "" {
		f.TokenVersion, f.TokenMessage = "", problem // nothing can be verified
	}
	return f, nil
}

// gather returns the facts for the next decision.
func (r *accountReconciler) gather(ctx context.Context, base access.Facts, key accountKey, account *accessAccount) (access.Facts, error) {
	f := base
	f.Uptime, f.Clock, f.Memory = r.clock.uptime(), r.clock.now(), account.memory
	f.Gateways, f.GatewaysKnown = r.book.gateways(key, f.Classes)
	tunnels, err := r.objects.list(ctx, r.objects.client)
	if err != nil {
		return f, err
	}
	f.Adoptions = r.book.requestedAdoptions(key, tunnels, r.options)
	return f, nil
}

// execute executes a step. Its calls share one reservation in the budget.
func (r *accountReconciler) execute(ctx context.Context, key accountKey, account *accessAccount, s access.Step) access.Result {
	result := access.Result{Sent: r.clock.uptime()}
	call := provider.WithReservation(provider.WithPriority(ctx, provider.PriorityAccess), s.Requests)
	log.FromContext(ctx).V(1).Info("executing step", "action", s.Action, "writes", len(s.Writes))
	switch s.Action {
	case access.ConcludeAdoptions:
	case access.ReadApplications:
		result.Applications, result.Err = account.api.provider.Applications(call)
	case access.ReadPolicies:
		result.Policies, result.Err = account.api.provider.Policies(call)
	case access.Apply:
		result.Writes = applyWrites(call, account.api.provider, s.Writes)
		r.recordWrites(ctx, key, s.Writes, result.Writes)
	default:
		result.Err = fmt.Errorf("unknown action %q", s.Action)
	}
	result.Uptime = r.clock.uptime()
	logFailure(ctx, failedApplications, s.Action, result.Err)
	return result
}

// failedApplications is the message in the log about a failed step.
const failedApplications = "failed to process the applications"

// applyWrites executes the writes at the same time. Each has its own result: some can fail.
func applyWrites(ctx context.Context, api provider.Access, writes []access.Write) []access.WriteResult {
	results := make([]access.WriteResult, len(writes))
	var running sync.WaitGroup
	for i := range writes {
		running.Go(func() {
			// controller-runtime does not recover from a panic in another goroutine.
			err := recovery.Call(ctx, func() (err error) {
				results[i].Application, err = applyWrite(ctx, api, &writes[i])
				return err
			})
			results[i].Err = err
		})
	}
	running.Wait()
	return results
}

func applyWrite(ctx context.Context, api provider.Access, w *access.Write) (provider.Application, error) {
	switch w.Operation {
	case access.EnsureTag:
		return provider.Application{}, api.EnsureTag(ctx, w.Tag)
	case access.Create:
		return api.Create(ctx, w.Spec)
	case access.Update:
		return api.Update(ctx, w.Last, w.Spec)
	case access.Revoke:
		return w.Last, api.RevokeTokens(ctx, w.Last.ID)
	case access.Delete:
		return provider.Application{}, api.Delete(ctx, w.Last)
	default:
		return provider.Application{}, fmt.Errorf("unknown operation %q", w.Operation)
	}
}

// recordWrites logs and counts the writes. A write that the budget has delayed was not sent.
func (r *accountReconciler) recordWrites(ctx context.Context, key accountKey, writes []access.Write, results []access.WriteResult) {
	if ctx.Err() != nil {
		return
	}
	for i := range writes {
		w, err := &writes[i], results[i].Err
		logFailure(ctx, failedApplications, w.Operation, err)
		if isDelayed(err) {
			continue
		}
		r.metrics.CountApplicationChange(key.id, string(w.Operation), err)
		if err == nil && w.Operation != access.EnsureTag {
			log.FromContext(ctx).Info("changed an application", "operation", w.Operation, "hostname", w.Hostname, "gateway", w.Gateway.String())
		}
	}
}

// report records what the account's applications mean.
func (r *accountReconciler) report(ctx context.Context, key accountKey, account *accessAccount, report access.Report) {
	before := r.accounts.record(account, report)
	if len(report.Orphans) > 0 && !slices.Equal(before.Orphans, report.Orphans) {
		log.FromContext(ctx).Info("found applications that nothing demands and whose Gateway has no Tunnel object", "applications", report.Orphans,
			"solution", `delete them as docs/guides/access.md says, "Orphaned applications", unless they are needed`)
	}
	r.metrics.SetAccess(key.id, r.accessMetrics(report))
	r.book.reported(key, before, report)
}

func (r *accountReconciler) accessMetrics(report access.Report) metrics.Access {
	m := metrics.Access{
		Reasons: map[string]int{}, Orphans: len(report.Orphans), Managed: report.Managed, Total: report.Total, Waiting: report.Waiting, Forbidden: report.Forbidden != "",
	}
	for reason, n := range report.Counts {
		m.Reasons[reason.String()] = n
	}
	if report.ReadAt > 0 {
		m.ReadAt = r.clock.now().Add(report.ReadAt - r.clock.uptime())
	}
	return m
}

// forget forgets an account whose applications no class manages. Nothing changes at
// Cloudflare.
func (r *accountReconciler) forget(key accountKey) {
	before, forgotten := r.accounts.forget(key)
	if !forgotten {
		return
	}
	r.metrics.DeleteAccess(key.id)
	r.tokens.retain(func(source credentials.Source) bool {
		return len(r.accounts.using(func(c accessClass) bool { return source == c.sources.own || source == c.sources.account })) > 0
	})
	r.book.reported(key, before, access.Report{})
}
