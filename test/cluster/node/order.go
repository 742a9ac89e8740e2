package node

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// isSidecar reports whether the init container is a sidecar.
func isSidecar(c *corev1.Container) bool {
	return ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

// checkInitContainers returns an error if an init container is not a sidecar.
func (p *pod) checkInitContainers() error {
	for i := range p.object.Spec.InitContainers {
		if c := &p.object.Spec.InitContainers[i]; !isSidecar(c) {
			return configError("the node supports init containers only with restartPolicy Always, which %s does not have", c.Name)
		}
	}
	return nil
}

// waitForTurn waits until the kubelet would start the container. It returns false if
// ctx is canceled before that.
func (c *container) waitForTurn(ctx context.Context) bool {
	for ctx.Err() == nil {
		changed := c.pod.changes.next()
		if c.isTurn() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

// isTurn reports whether the kubelet would start the container. As the Kubernetes page
// about sidecar containers specifies, the containers that follow a sidecar wait until it
// has started: its startup probe has succeeded, or it runs and has none. They wait again
// when a container restarts, unless another regular container runs, because the Pod is
// then initialized. A sidecar waits only for its first start.
func (c *container) isTurn() bool {
	if c.sidecar {
		return c.hasRun() || allStarted(c.pod.sidecars[:slices.Index(c.pod.sidecars, c)])
	}
	return allStarted(c.pod.sidecars) || anyRunning(c.pod.containers)
}

// hasRun reports whether the container has run or runs now.
func (c *container) hasRun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log != nil
}

func allStarted(containers []*container) bool {
	return !slices.ContainsFunc(containers, func(c *container) bool { return !*c.status().Started })
}

func anyRunning(containers []*container) bool {
	return slices.ContainsFunc(containers, func(c *container) bool { return c.status().State.Running != nil })
}

// broadcast wakes all goroutines that wait for the next signal.
type broadcast struct {
	mu   sync.Mutex
	wake chan struct{} // nil unless a goroutine waits
}

// next returns a channel that the next call to send closes.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wake == nil {
		b.wake = make(chan struct{})
	}
	return b.wake
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}
