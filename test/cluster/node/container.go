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
	// maxBackoff, and is reset when the container has run for stableRunTime. The
	// backoff of Kubernetes is from 10 seconds to 5 minutes.
	minBackoff    = 100 * time.Millisecond
	maxBackoff    = 5 * time.Second
	stableRunTime = 10 * time.Second
)

// container is a container of a Pod.
type container struct {
	pod  *pod
	spec corev1.Container

	mu       sync.Mutex
	current  corev1.ContainerStatus
	log      *outputLog // log of the current or last process; nil before the first
	previous *outputLog // log of the process before that
}

// waitingError is a problem that makes a container wait. Its fields are the reason
// and the message of the container's state.
type waitingError struct{ reason, message string }

func (w *waitingError) Error() string { return w.reason + ": " + w.message }

// configError returns the error of a container whose configuration is invalid or
// refers to a missing object.
func configError(format string, a ...any) *waitingError {
	return &waitingError{reason: "CreateContainerConfigError", message: fmt.Sprintf(format, a...)}
}

func newContainer(p *pod, spec corev1.Container) *container {
	c := &container{pod: p, spec: spec}
	c.current = corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, Started: new(false)}
	c.current.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
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

// setWaiting sets the reason and the message of the waiting state.
func (c *container) setWaiting(reason, message string) {
	c.updateStatus(func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	})
}

// run runs the container's process, and restarts it as the restart policy
// requires, until the Pod stops.
func (c *container) run() {
	stopping, backoff := c.pod.stopping, minBackoff
	for stopping.Err() == nil {
		spec, err := c.prepare(stopping)
		var waiting *waitingError
		if errors.As(err, &waiting) {
			c.setWaiting(waiting.reason, waiting.message)
			pause(stopping, retryInterval)
			continue
		} else if err != nil {
			c.setWaiting("CreateContainerError", err.Error())
			pause(stopping, retryInterval)
			continue
		}
		if c.runOnce(spec) > stableRunTime {
			backoff = minBackoff
		}
		if !c.shouldRestart() {
			return
		}
		c.setWaiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container", backoff))
		pause(stopping, backoff)
		backoff = min(2*backoff, maxBackoff)
	}
}

// shouldRestart reports whether the container restarts, depending on the restart
// policy and on the exit code in the status.
func (c *container) shouldRestart() bool {
	ended := c.status().State.Terminated
	switch c.pod.object.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return ended == nil // the process failed to start
	case corev1.RestartPolicyOnFailure:
		return ended == nil || ended.ExitCode != 0
	default:
		return c.pod.stopping.Err() == nil
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
	var probes sync.WaitGroup
	probes.Go(func() { c.probe(ctx, spec) })
	c.waitOrTerminate(p)
	cancel()
	probes.Wait()
	c.recordExit(p, startedAt)
	return time.Since(startedAt.Time)
}

// waitOrTerminate waits for the end of the process. When the Pod stops, it
// terminates the process, and kills it after the grace period.
func (c *container) waitOrTerminate(p *process) {
	go p.wait()
	select {
	case <-p.done:
		return
	case <-c.pod.stopping.Done():
		p.terminate()
	}
	select {
	case <-p.done:
	case <-c.pod.killed.Done():
		p.kill()
		<-p.done
	}
}

// recordStart writes the start of the process to the status.
func (c *container) recordStart(p *process, output *outputLog, startedAt metav1.Time) {
	c.mu.Lock()
	restarted := c.log != nil
	c.previous, c.log = c.log, output
	c.mu.Unlock()
	c.updateStatus(func(s *corev1.ContainerStatus) {
		if restarted {
			s.RestartCount++
		}
		s.ImageID, s.ContainerID, s.Started = s.Image, p.id(), new(true)
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: startedAt}}
	})
}

// recordExit writes the end of the process to the status. It also sets the last
// termination state unless the Pod is stopping.
func (c *container) recordExit(p *process, startedAt metav1.Time) {
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
		if c.pod.stopping.Err() == nil {
			s.LastTerminationState = s.State
		}
	})
}

// processSpec describes how to start a process.
type processSpec struct {
	command     []string
	probe       []string // command of the exec probe, if there is one
	environment []string
	dir         string
	ports       map[int32]int // real port of each container port
}

// prepare writes the volumes and returns how to start the process.
func (c *container) prepare(ctx context.Context) (*processSpec, error) {
	p := c.pod
	if len(p.object.Spec.InitContainers) > 0 {
		return nil, configError("the node does not support init containers")
	}
	image, err := p.node.image(c.spec.Image)
	if err != nil {
		return nil, err
	}
	if err := c.checkProbe(image); err != nil {
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
	spec := &processSpec{command: slices.Clone(image.Command), dir: p.dir(), environment: []string{"TMPDIR=" + p.dir(), "HOME=" + p.dir()}}
	for _, arg := range c.spec.Args {
		spec.command = append(spec.command, mounts.rewrite(env.expand(arg)))
	}
	if action := c.action().Exec; action != nil {
		spec.probe = append(slices.Clone(image.Command), action.Command[1:]...)
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
