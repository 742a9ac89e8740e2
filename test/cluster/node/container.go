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
	// A container that ends is started again after the first pause, which
	// doubles up to the longest, unless it has run for the time that makes good.
	// Kubernetes waits from 10 seconds to 5 minutes.
	minBackoff    = 100 * time.Millisecond
	maxBackoff    = 5 * time.Second
	stableRunTime = 10 * time.Second
)

// container is one of a Pod.
type container struct {
	pod  *pod
	spec corev1.Container

	mu       sync.Mutex
	current  corev1.ContainerStatus
	log      *outputLog // of the process that runs or ran last, nil before the first
	previous *outputLog
}

// waitingError is an error that a container waits for the end of. Its fields are
// those of the container's state.
type waitingError struct{ reason, message string }

func (w *waitingError) Error() string { return w.reason + ": " + w.message }

// configError is what a container waits with that refers to what is not there.
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

// updateStatus changes the status and has it written.
func (c *container) updateStatus(apply func(*corev1.ContainerStatus)) {
	c.mu.Lock()
	apply(&c.current)
	c.mu.Unlock()
	c.pod.notify()
}

// setWaiting has the status say what the container waits for.
func (c *container) setWaiting(reason, message string) {
	c.updateStatus(func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	})
}

// run starts the container's process again and again until the Pod ends.
func (c *container) run() {
	ending, backoff := c.pod.stopping, minBackoff
	for ending.Err() == nil {
		l, err := c.prepare(ending)
		var reason *waitingError
		if errors.As(err, &reason) {
			c.setWaiting(reason.reason, reason.message)
			pause(ending, retryInterval)
			continue
		} else if err != nil {
			c.setWaiting("CreateContainerError", err.Error())
			pause(ending, retryInterval)
			continue
		}
		if c.runOnce(l) > stableRunTime {
			backoff = minBackoff
		}
		if !c.shouldRestart() {
			return
		}
		c.setWaiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container", backoff))
		pause(ending, backoff)
		backoff = min(2*backoff, maxBackoff)
	}
}

// shouldRestart tells whether the container starts again after the end that its
// status tells of.
func (c *container) shouldRestart() bool {
	ended := c.status().State.Terminated
	switch c.pod.object.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return ended == nil // it could not be started
	case corev1.RestartPolicyOnFailure:
		return ended == nil || ended.ExitCode != 0
	default:
		return c.pod.stopping.Err() == nil
	}
}

// runOnce runs the process to its end, and returns how long that took.
func (c *container) runOnce(l *processSpec) time.Duration {
	defer c.pod.node.network.releasePorts(c.pod.ip, l.ports)
	begin := now()
	output := &outputLog{}
	p, err := startProcess(l, output)
	if err != nil {
		c.setWaiting("RunContainerError", err.Error())
		return 0
	}
	c.recordStart(p, output, begin)
	alive, died := context.WithCancel(c.pod.killed)
	var probing sync.WaitGroup
	probing.Go(func() { c.probe(alive, l.ports) })
	c.waitOrTerminate(p)
	died()
	probing.Wait()
	c.recordExit(p, begin)
	return time.Since(begin.Time)
}

// waitOrTerminate waits for the end of the process, and brings it about when the Pod ends.
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

func (c *container) recordStart(p *process, output *outputLog, begin metav1.Time) {
	c.mu.Lock()
	restarted := c.log != nil
	c.previous, c.log = c.log, output
	c.mu.Unlock()
	c.updateStatus(func(s *corev1.ContainerStatus) {
		if restarted {
			s.RestartCount++
		}
		s.ImageID, s.ContainerID, s.Started = s.Image, p.id(), new(true)
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: begin}}
	})
}

// recordExit has the end in the state, and as the last one once the container waits
// for its restart or runs again.
func (c *container) recordExit(p *process, begin metav1.Time) {
	code, signal := p.exit()
	ended := &corev1.ContainerStateTerminated{
		ExitCode: code, Signal: signal, Reason: "Completed",
		StartedAt: begin, FinishedAt: now(), ContainerID: p.id(),
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

// processSpec is all that a process is started with.
type processSpec struct {
	command     []string
	environment []string
	dir         string
	ports       map[int32]int // real ones by container port
}

// prepare finds out what to start, and writes the volumes.
func (c *container) prepare(ctx context.Context) (*processSpec, error) {
	p := c.pod
	if len(p.object.Spec.InitContainers) > 0 {
		return nil, configError("the node runs no init containers")
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
	l := &processSpec{command: slices.Clone(image.Command), dir: p.dir(), environment: []string{"TMPDIR=" + p.dir(), "HOME=" + p.dir()}}
	for _, arg := range c.spec.Args {
		l.command = append(l.command, mounts.rewrite(env.expand(arg)))
	}
	for _, name := range env.names {
		l.environment = append(l.environment, name+"="+mounts.rewrite(env.values[name]))
	}
	if l.ports, err = p.node.network.allocatePorts(p.ip, sortedPorts(image)); err != nil {
		return nil, err
	}
	for port, variable := range image.Ports {
		l.environment = append(l.environment, fmt.Sprintf("%s=%d", variable, l.ports[port]))
	}
	l.environment = append(l.environment, image.Environment...)
	return l, nil
}
