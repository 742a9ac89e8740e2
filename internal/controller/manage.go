package controller

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// interimStatusDelay is how long a tunnel's lifecycle may run before the process writes
// interim statuses without its outcome.
const interimStatusDelay = 2 * time.Second

// manageTunnel runs the tunnel's lifecycle. If it takes longer than
// [interimStatusDelay], manageTunnel writes the interim statuses.
//
// The lifecycle runs in the reconcile's own goroutine, because controller-runtime
// recovers from a panic only there.
func (r *run) manageTunnel(ctx context.Context, interim func() gateway.Report) (*tunnel.Outcome, time.Duration, error) {
	stop := r.scheduleInterimStatuses(ctx, interim)
	defer stop()
	return r.manageInSpan(ctx)
}

// scheduleInterimStatuses writes the interim statuses after [interimStatusDelay]. The
// returned function cancels that and waits until it has ended.
func (r *run) scheduleInterimStatuses(ctx context.Context, interim func() gateway.Report) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	timer := time.AfterFunc(interimStatusDelay, func() {
		defer close(done)
		err := recovery.Call(ctx, func() error {
			report := interim()
			r.process.writeStatuses(ctx, r.key, func(ctx context.Context) error { return r.process.writer.Write(ctx, r.key, report, &r.memory.statuses) })
			return nil
		})
		if err != nil {
			log.FromContext(ctx).Error(err, "failed to write interim statuses")
		}
	})
	return func() {
		cancel()
		if !timer.Stop() {
			<-done
		}
	}
}

// manageInSpan runs the tunnel's lifecycle in a span. The span contains the errors from
// failed steps.
func (r *run) manageInSpan(ctx context.Context) (*tunnel.Outcome, time.Duration, error) {
	ctx, end := r.process.observer.span(ctx, "manage", r.key)
	outcome, requeueAfter, err := r.manage(ctx)
	errs := []error{err}
	for _, failure := range r.tunnel.activity.failures {
		errs = append(errs, failure.err)
	}
	var attributes []attribute.KeyValue
	if outcome != nil {
		attributes = append(attributes, attribute.String("tunnel.id", string(outcome.Tunnel)),
			attribute.String("tunnel.message", outcome.Message), attribute.String("tunnel.again", requeueAfter.String()))
	}
	end(errors.Join(errs...), attributes...)
	return outcome, requeueAfter, err
}

// outcome returns the outcome for the statuses, with what the connectors report.
func (r *run) outcome(ctx context.Context, shared gateway.Shared, o tunnel.Outcome, object *v1alpha1.Tunnel) gateway.Outcome {
	return r.decision.Outcome(object, o, decision.Evidence{
		Shared: shared, Connectors: r.process.connectors.readiness(ctx, object, r.decision.Settings()),
		Envoys: r.process.envoys.state(r, object, o.DataPlaneChange, r.lastConfiguration()),
		DNS:    r.dnsEvidence(),
	})
}

// renewWhilePaused renews the certificates for a paused Gateway's Envoys. The tunnel's
// lifecycle changes nothing while the Gateway is paused.
func (r *run) renewWhilePaused(ctx context.Context) error {
	object := r.tunnel.object
	if !r.state.Paused || !tunnel.UsesIdentity(object) || tunnel.IsNewer(object) {
		return nil
	}
	return r.process.connectors.renew(ctx, object)
}

// lastConfiguration returns a copy of the configuration that Cloudflare last reported
// or acknowledged for the Gateway's tunnel, or nil. After a failed write, the
// connectors can still have it. Each lifecycle step replaces the memory.
func (r *run) lastConfiguration() *provider.Configuration {
	remote := r.tunnel.memory.Remote.Configuration
	if remote.Hash == "" {
		return nil
	}
	return &remote.Configuration
}
