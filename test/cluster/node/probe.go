package node

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

type result int

const (
	unknown result = iota // no threshold has been reached
	success
	failure
)

// prober runs the probes for a process.
type prober struct {
	container *container
	spec      *processSpec
	started   time.Time          // when the process started
	unhealthy chan time.Duration // receives the grace period when the startup or the liveness probe has failed
}

// run runs the probes until ctx is canceled. The liveness and the readiness probe begin
// when the startup probe has succeeded, as Kubernetes documents under "Types of probe" on
// its page about probes.
func (b *prober) run(ctx context.Context) {
	// The kubelet ends these two probes as soon as the Pod stops.
	untilStop, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.container.pod.stopping, cancel)()
	spec := &b.container.spec
	if spec.StartupProbe != nil && !b.hasStarted(untilStop, spec.StartupProbe) {
		return
	}
	b.container.updateStatus(func(s *corev1.ContainerStatus) { s.Started = new(true) })
	var probes sync.WaitGroup
	defer probes.Wait()
	if spec.LivenessProbe != nil {
		probes.Go(func() { b.checkLiveness(untilStop, spec.LivenessProbe) })
	}
	b.checkReadiness(ctx, spec.ReadinessProbe)
}

// hasStarted waits for the startup probe's result.
func (b *prober) hasStarted(ctx context.Context, probe *corev1.Probe) bool {
	b.delay(ctx, probe)
	changed := b.next(ctx, probe, unknown)
	if changed == failure {
		b.reportUnhealthy(probe)
	}
	return changed == success
}

func (b *prober) checkLiveness(ctx context.Context, probe *corev1.Probe) {
	b.delay(ctx, probe)
	if b.next(ctx, probe, success) == failure {
		b.reportUnhealthy(probe)
	}
}

// checkReadiness updates the container's readiness. Without a probe, the container is
// ready as soon as its first port accepts a connection.
func (b *prober) checkReadiness(ctx context.Context, probe *corev1.Probe) {
	if probe == nil {
		b.container.setReady(len(b.spec.ports) == 0 || waitForPort(ctx, b.firstPort))
		return
	}
	b.delay(ctx, probe)
	for last := failure; ctx.Err() == nil; pause(ctx, seconds(probe.PeriodSeconds)) {
		if changed := b.next(ctx, probe, last); changed != unknown {
			last = changed
			b.container.setReady(changed == success)
		}
	}
}

// delay waits for the initial delay, which begins when the process starts.
func (b *prober) delay(ctx context.Context, probe *corev1.Probe) {
	pause(ctx, time.Until(b.started.Add(seconds(probe.InitialDelaySeconds))))
}

// reportUnhealthy reports that the process must be restarted. The probe's grace period
// takes precedence over the Pod's.
func (b *prober) reportUnhealthy(probe *corev1.Probe) {
	ofPod := ptr.Deref(b.container.pod.object.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	b.unhealthy <- time.Duration(ptr.Deref(probe.TerminationGracePeriodSeconds, ofPod)) * time.Second
}

// next runs the probe periodically until its result differs from last, and returns the
// new result, which is unknown if ctx is canceled before that. The thresholds count
// consecutive results. While the port does not accept connections, the next attempt
// follows as soon as the port does: a longer wait for a starting process would only delay the test.
func (b *prober) next(ctx context.Context, probe *corev1.Probe, last result) result {
	attempt := b.attempt(probe.ProbeHandler)
	thresholds := map[result]int32{success: probe.SuccessThreshold, failure: probe.FailureThreshold}
	previous, count := unknown, int32(0)
	for {
		listening := attempt.port == nil || previous == success || isListening(ctx, attempt.port)
		current := failure
		if listening && attempt.succeeds(ctx, seconds(probe.TimeoutSeconds)) {
			current = success
		}
		if ctx.Err() != nil {
			return unknown
		}
		if current != previous {
			previous, count = current, 0
		}
		if count++; current != last && count >= thresholds[current] {
			return current
		}
		period, cancel := context.WithTimeout(ctx, seconds(probe.PeriodSeconds))
		if listening {
			<-period.Done()
		} else {
			waitForPort(period, attempt.port)
		}
		cancel()
	}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
