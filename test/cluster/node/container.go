package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// A container that ends restarts after minBackoff. The backoff doubles up to
	// maxBackoff, and is reset when the container has run for stableRunTime. Kubernetes'
	// own backoff is from 10 seconds to 5 minutes.
	minBackoff    = 100 * time.Millisecond
	maxBackoff    = 5 * time.Second
	stableRunTime = 10 * time.Second
)

type container struct {
	pod     *pod
	spec    corev1.Container
	sidecar bool

	restarts context.Context // canceled when the process must not be started again
	stopping context.Context // canceled when the process must stop
	stop     context.CancelFunc
	ended    chan struct{} // closed when the process has ended and will not restart

	mu       sync.Mutex
	current  corev1.ContainerStatus
	process  *process   // nil unless it runs
	log      *outputLog // current or last process; nil before the first
	previous *outputLog // the process before that
}

// waitingError is a problem that makes a container wait. Its fields are the reason and
// message in the container's state.
type waitingError struct{ reason, message string }

func (w *waitingError) Error() string { return w.reason + ": " + w.message }

// configError returns the error for a container whose configuration is invalid or refers
// to a missing object.
func configError(format string, a ...any) *waitingError {
	return &waitingError{reason: "CreateContainerConfigError", message: fmt.Sprintf(format, a...)}
}

// newContainer returns a container that stops as soon as the Pod stops.
func newContainer(p *pod, spec corev1.Container) *container {
	c := &container{pod: p, spec: spec, restarts: p.stopping, stopping: p.stopping, ended: make(chan struct{})}
	c.current = corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Started: new(false)}
	reason := "ContainerCreating"
	if len(p.object.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	c.current.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason}
	return c
}

// newSidecar returns a container that stops when the Pod calls its stop function. It
// does not restart while the Pod stops.
func newSidecar(p *pod, spec corev1.Container) *container {
	c := newContainer(p, spec)
	c.sidecar = true
	restarts, stopRestarts := context.WithCancel(p.stopping)
	stopping, stop := context.WithCancel(p.killed)
	c.restarts, c.stopping = restarts, stopping
	c.stop = func() {
		stopRestarts()
		stop()
	}
	return c
}

func (c *container) status() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.current.DeepCopy()
}

// updateStatus changes the status and notifies the Pod, which writes it.
func (c *container) updateStatus(change func(*corev1.ContainerStatus)) {
	c.mu.Lock()
	change(&c.current)
	c.mu.Unlock()
	c.pod.notify()
}

// setWaiting sets the waiting state with the reason and message.
func (c *container) setWaiting(reason, message string) {
	c.updateStatus(func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	})
}

// run runs the container's process, and restarts it as the restart policy
// requires, until the container stops.
func (c *container) run() {
	defer close(c.ended)
	backoff := minBackoff
	for c.waitForTurn(c.restarts) {
		spec, err := c.prepare(c.restarts)
		var waiting *waitingError
		if errors.As(err, &waiting) {
			c.setWaiting(waiting.reason, waiting.message)
			pause(c.restarts, retryInterval)
			continue
		} else if err != nil {
			c.setWaiting("CreateContainerError", err.Error())
			pause(c.restarts, retryInterval)
			continue
		}
		if c.runOnce(spec) > stableRunTime {
			backoff = minBackoff
		}
		if !c.shouldRestart() {
			return
		}
		pause(c.restarts, time.Duration(c.pod.node.restartDelay.Load()))
		c.setWaiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container", backoff))
		pause(c.restarts, backoff)
		backoff = min(2*backoff, maxBackoff)
	}
}

// shouldRestart reports whether the container restarts, depending on the restart policy
// and on the exit code in the status. A sidecar has its own restart policy, Always.
func (c *container) shouldRestart() bool {
	if c.sidecar {
		return c.restarts.Err() == nil
	}
	ended := c.status().State.Terminated
	switch c.pod.object.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return ended == nil // the process failed to start
	case corev1.RestartPolicyOnFailure:
		return ended == nil || ended.ExitCode != 0
	default:
		return c.restarts.Err() == nil
	}
}

// runOnce runs the process until it ends, and returns how long it ran.
func (c *container) runOnce(spec *processSpec) time.Duration {
	defer c.pod.node.network.releasePorts(c.pod.ip, spec.ports)
	startedAt := now()
	output := &outputLog{}
	p, err := startProcess(spec, output)
	if err != nil {
		c.setWaiting("RunContainerError", err.Error())
		return 0
	}
	c.recordStart(p, output, startedAt)
	ctx, cancel := context.WithCancel(c.pod.killed)
	b := &prober{container: c, spec: spec, started: time.Now(), unhealthy: make(chan time.Duration, 1)}
	var background sync.WaitGroup
	background.Go(func() { b.run(ctx) })
	background.Go(func() { c.serveAddresses(ctx, spec.ports) })
	c.waitOrTerminate(p, b.unhealthy)
	cancel()
	background.Wait()
	c.recordExit(p, startedAt)
	return time.Since(b.started)
}

// waitOrTerminate waits until the process ends. When the container stops or is unhealthy,
// it terminates the process, and kills it after the grace period. unhealthy receives an
// unhealthy container's grace period.
func (c *container) waitOrTerminate(p *process, unhealthy <-chan time.Duration) {
	go p.wait()
	var grace <-chan time.Time
	select {
	case <-p.done:
		return
	case <-c.stopping.Done():
	case period := <-unhealthy:
		grace = time.After(period)
	}
	p.terminate()
	select {
	case <-p.done:
		return
	case <-c.pod.killed.Done():
	case <-grace:
	}
	p.kill()
	<-p.done
}

// recordStart writes to the status that the process has started.
func (c *container) recordStart(p *process, output *outputLog, startedAt metav1.Time) {
	c.mu.Lock()
	restarted := c.log != nil
	c.previous, c.log = c.log, output
	c.process = p
	c.mu.Unlock()
	c.updateStatus(func(s *corev1.ContainerStatus) {
		if restarted {
			s.RestartCount++
		}
		s.ImageID, s.ContainerID, s.Started = s.Image, p.id(), new(c.spec.StartupProbe == nil)
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: startedAt}}
	})
}

// recordExit writes to the status that the process has ended. It also sets the last
// termination state unless the Pod is stopping.
func (c *container) recordExit(p *process, startedAt metav1.Time) {
	c.mu.Lock()
	c.process = nil
	c.mu.Unlock()
	code, signal := p.exit()
	ended := &corev1.ContainerStateTerminated{
		ExitCode: code, Signal: signal, Reason: "Completed",
		StartedAt: startedAt, FinishedAt: now(), ContainerID: p.id(),
	}
	if code != 0 {
		ended.Reason = "Error"
	}
	c.updateStatus(func(s *corev1.ContainerStatus) {
		s.Ready, s.Started = false, new(false)
		s.State = corev1.ContainerState{Terminated: ended}
		if c.restarts.Err() == nil {
			s.LastTerminationState = s.State
		}
	})
}

// processSpec describes how to start a process.
type processSpec struct {
	command     []string
	program     []string // the command without the container's arguments
	environment []string
	dir         string
	ports       map[int32]int // real port by container port
}

// prepare writes the volumes and returns how to start the process.
func (c *container) prepare(ctx context.Context) (*processSpec, error) {
	p := c.pod
	if err := p.checkInitContainers(); err != nil {
		return nil, err
	}
	image, err := p.node.image(c.spec.Image)
	if err != nil {
		return nil, err
	}
	if err := c.checkProbes(image); err != nil {
		return nil, err
	}
	mounts, err := c.prepareVolumes(ctx)
	if err != nil {
		return nil, err
	}
	env, err := c.environment(ctx)
	if err != nil {
		return nil, err
	}
	spec := &processSpec{
		command: slices.Clone(image.Command), program: image.Command, dir: p.dir(),
		environment: []string{"TMPDIR=" + p.dir(), "HOME=" + p.dir()},
	}
	for _, arg := range c.spec.Args {
		spec.command = append(spec.command, mounts.rewrite(env.expand(arg)))
	}
	for _, name := range env.names {
		spec.environment = append(spec.environment, name+"="+mounts.rewrite(env.values[name]))
	}
	if spec.ports, err = p.node.network.allocatePorts(p.ip, sortedPorts(image)); err != nil {
		return nil, err
	}
	for port, variable := range image.Ports {
		spec.environment = append(spec.environment, fmt.Sprintf("%s=%d", variable, spec.ports[port]))
	}
	spec.environment = append(spec.environment, image.Environment...)
	return spec, nil
}
