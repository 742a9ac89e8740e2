package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// zoneReconciler reads and changes the records of one zone at a time. It runs beside the
// Gateway reconciler, so that a zone delays no tunnel and no status.
type zoneReconciler struct {
	book    *dnsBook
	zones   *zones
	open    openFunc[provider.DNS]
	tokens  *apiTokens
	key     *signingKey
	objects tunnelObjects
	options tunnel.Options
	metrics *metrics.Metrics
	clock   clock
	// recording prevents zones of two accounts with the same name, which share their
	// metrics, from writing them at the same time.
	recording sync.Mutex
}

// Reconcile executes the decisions about a zone until no step can be executed now.
func (r *zoneReconciler) Reconcile(ctx context.Context, key zoneKey) (reconcile.Result, error) {
	zone, classes := r.zones.of(key)
	if zone == nil {
		r.forget(key)
		return reconcile.Result{}, nil
	}
	defer forgetMemoryAfterPanic(&zone.memory)
	base, err := r.prepare(ctx, key, zone, classes)
	if err != nil {
		return reconcile.Result{}, err
	}
	calls := zoneCalls{}
	return runSteps(ctx, func() (bool, reconcile.Result, error) {
		facts, err := r.gather(ctx, base, key, zone)
		if err != nil {
			return true, reconcile.Result{}, err
		}
		zone.memory = dns.Observe(facts)
		facts.Memory = zone.memory
		step := dns.Decide(facts)
		if step.Ends() {
			r.report(ctx, key, zone, dns.NewReport(facts))
			return true, requeueAfter(step.Action == dns.Wait, step.Delay), nil
		}
		result := r.execute(ctx, calls.context(ctx, step), key, zone, step)
		if ctx.Err() == nil {
			zone.memory = dns.Conclude(zone.memory, step, result)
			if result.Err == nil {
				r.book.adopted(step.Adoptions)
			}
		}
		return false, reconcile.Result{}, nil
	})
}

// forgetMemoryAfterPanic forgets what the process knows about a zone or an account during a
// panic, because it is unknown what the panicking step has changed. The next reconcile reads
// everything.
func forgetMemoryAfterPanic[M any](memory *M) {
	if recovered := recover(); recovered != nil {
		*memory = *new(M)
		panic(recovered)
	}
}

// prepare returns the facts that do not change during a reconcile, and opens the DNS API.
func (r *zoneReconciler) prepare(ctx context.Context, key zoneKey, zone *zone, classes []zoneClass) (dns.Facts, error) {
	f := dns.Facts{
		Options: dns.Options{ClusterID: r.options.ClusterID, ClusterUID: r.options.ClusterUID}, Zone: key.name, Account: key.account,
	}
	for _, c := range classes {
		f.Classes = append(f.Classes, dns.Class{Name: c.name, Created: c.created, Settings: c.settings})
	}
	manages := classes[0].settings.Mode == v1alpha1.DNSManage
	signing, problem, err := r.key.read(ctx, manages)
	if err != nil {
		return f, err
	}
	f.Options.Key = signing
	api, message, err := openAPI(ctx, r.tokens, r.open, classes[0].sources, zone.api)
	if err != nil {
		return f, err
	}
	if zone.api = api; api != nil {
		f.TokenVersion = api.version
	}
	f.TokenMessage = message
	if manages && problem != "" {
		f.TokenVersion, f.TokenMessage = "", problem // nothing can be verified
	}
	return f, nil
}

// gather returns the facts for the next decision.
func (r *zoneReconciler) gather(ctx context.Context, base dns.Facts, key zoneKey, zone *zone) (dns.Facts, error) {
	f := base
	f.Uptime, f.Clock, f.Memory = r.clock.uptime(), r.clock.now(), zone.memory
	f.Gateways, f.GatewaysKnown = r.book.gateways(key, f.Classes)
	tunnels, err := r.objects.list(ctx, r.objects.client)
	if err != nil {
		return f, err
	}
	f.Adoptions = r.book.requestedAdoptions(key, tunnels, r.options)
	return f, nil
}

// zoneCalls returns the contexts for the calls of a reconcile. A read before changes has
// reserved the request for them, too, because the changes depend on what was just read.
type zoneCalls struct {
	last     dns.Step
	reserved context.Context
}

// context returns the context for the step's call.
func (c *zoneCalls) context(ctx context.Context, s dns.Step) context.Context {
	shares := s.Action == dns.Apply && c.last.Action == dns.ReadRecords && c.last.Requests > max(1, len(c.last.Names))
	if !shares {
		c.reserved = provider.WithReservation(provider.WithPriority(ctx, provider.PriorityDNS), s.Requests)
	}
	c.last = s
	return c.reserved
}

// execute executes a step. call is the context for its call.
func (r *zoneReconciler) execute(ctx, call context.Context, key zoneKey, zone *zone, s dns.Step) dns.Result {
	result := dns.Result{Sent: r.clock.uptime()}
	log.FromContext(ctx).V(1).Info("executing step", "action", s.Action, "names", s.Names, "operations", s.Batch.Operations())
	switch s.Action {
	case dns.ConcludeAdoptions:
	case dns.ReadZone:
		result.Zones, result.Err = zone.api.provider.Zones(call, key.name, s.ID)
	case dns.ReadUsage:
		result.Usage, result.Err = zone.api.provider.Usage(call, s.ID)
	case dns.ReadCertificates:
		result.Hosts, result.Err = zone.api.provider.CertificateHosts(call, s.ID)
	case dns.ReadRecords:
		result.Records, result.Err = zone.api.provider.Records(call, s.ID, s.Names...)
	case dns.Apply:
		result.Records, result.Err = zone.api.provider.Apply(call, s.ID, s.Batch)
		r.recordChanges(ctx, key, s.Changes, result.Err)
	default:
		result.Err = fmt.Errorf("unknown action %q", s.Action)
	}
	result.Uptime = r.clock.uptime()
	logFailure(ctx, "failed to process the zone", s.Action, result.Err)
	return result
}

// recordChanges logs and counts the changes of a batch. A batch that the budget has
// delayed was not sent.
func (r *zoneReconciler) recordChanges(ctx context.Context, key zoneKey, changes []dns.Change, err error) {
	if isDelayed(err) || ctx.Err() != nil {
		return
	}
	counts, logger := map[dns.Operation]int{}, log.FromContext(ctx)
	for _, c := range changes {
		counts[c.Operation]++
		logger.V(1).Info("changing a record", "operation", c.Operation, "record", c.Name, "gateway", c.Gateway.String(), "failed", err != nil)
	}
	var values []any
	for _, operation := range slices.Sorted(maps.Keys(counts)) {
		r.metrics.CountRecordChanges(key.name, string(operation), counts[operation], err)
		values = append(values, string(operation), counts[operation])
	}
	if err == nil {
		logger.Info("changed DNS records", values...)
	}
}

// report records what the zone's records mean.
func (r *zoneReconciler) report(ctx context.Context, key zoneKey, zone *zone, report dns.Report) {
	before := r.zones.record(zone, report)
	logOrphans(ctx, before.Orphans, report.Orphans)
	r.recording.Lock()
	r.metrics.SetZone(key.name, r.zoneMetrics(report))
	r.recording.Unlock()
	r.book.reported(key, before, report)
}

// logOrphans logs the orphaned records when they change.
func logOrphans(ctx context.Context, before, after []string) {
	if len(after) == 0 || slices.Equal(before, after) {
		return
	}
	log.FromContext(ctx).Info("found DNS records whose tunnel has no Tunnel object", "records", after,
		"solution", "delete the records with the command in docs/install.md, \"DNS records after uninstalling\", unless they are needed")
}

func (r *zoneReconciler) zoneMetrics(report dns.Report) metrics.Zone {
	m := metrics.Zone{Verdicts: map[string]int{}, Records: report.Records, Quota: report.Quota, Forbidden: report.Forbidden != ""}
	for _, findings := range report.Gateways {
		for _, f := range findings {
			m.Verdicts[string(f.Verdict)]++
		}
	}
	for verdict, n := range report.Unused {
		m.Verdicts[string(verdict)] += n
	}
	if report.ReadAt > 0 {
		m.ReadAt = r.clock.now().Add(report.ReadAt - r.clock.uptime())
	}
	return m
}

// forget forgets a zone that no GatewayClass lists. Nothing changes at Cloudflare.
func (r *zoneReconciler) forget(key zoneKey) {
	before, shared := r.zones.forget(key)
	if !shared {
		r.metrics.DeleteZone(key.name)
	}
	r.tokens.retain(func(source credentials.Source) bool {
		return len(r.zones.using(func(c zoneClass) bool { return source == c.sources.own || source == c.sources.account })) > 0
	})
	r.book.reported(key, before, dns.Report{})
}
