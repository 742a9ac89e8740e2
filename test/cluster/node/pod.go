package node

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is a Pod that the node runs. stopping is canceled when its containers must
// stop, and killed is canceled when the grace period has ended.
type pod struct {
	node       *Node
	object     *corev1.Pod // with the status that was written last
	number     int         // different for each Pod on the node
	ip         netip.Addr
	started    metav1.Time
	sidecars   []*container // the init containers
	containers []*container
	volumes    volumes
	outdated   atomic.Bool // an object that a volume contains has changed

	changed  chan struct{} // has an element when the status may have changed
	changes  broadcast     // to the containers' status
	stopping context.Context
	stop     context.CancelFunc
	killed   context.Context
	kill     context.CancelFunc
}

func newPod(n *Node, object *corev1.Pod, number int, ip netip.Addr) *pod {
	p := &pod{
		node: n, object: object, number: number, ip: ip, started: now(),
		volumes: newVolumes(), changed: make(chan struct{}, 1),
	}
	p.killed, p.kill = context.WithCancel(n.ctx)
	p.stopping, p.stop = context.WithCancel(p.killed)
	for _, spec := range object.Spec.InitContainers {
		p.sidecars = append(p.sidecars, newSidecar(p, spec))
	}
	for _, spec := range object.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, spec))
	}
	return p
}

// allContainers returns the sidecars and the other containers.
func (p *pod) allContainers() []*container { return slices.Concat(p.sidecars, p.containers) }

// now returns the current time with the API's precision.
func now() metav1.Time { return metav1.Now().Rfc3339Copy() }

// notify reports that the status may have changed.
func (p *pod) notify() {
	p.changes.send()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// terminate stops the containers and kills them after the grace period. A later
// call can shorten the grace period.
func (p *pod) terminate(grace time.Duration) {
	p.stop()
	time.AfterFunc(grace, p.kill)
}

// run runs the containers until the Pod is deleted, and then removes the Pod.
func (p *pod) run() {
	defer p.kill()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.runContainers()
	}()
	p.reportUntil(ended)
	p.node.network.releaseIP(p.ip)
	_ = os.RemoveAll(p.dir()) // the group of child processes removes remaining files
	for n := p.node; n.ctx.Err() == nil && n.remove(n.ctx, p.object) != nil; {
		pause(n.ctx, retryInterval)
	}
}

// runContainers runs the containers until all have ended. The sidecars stop after the
// other containers have ended, in reverse order, as Kubernetes documents under "Pod
// termination and sidecar containers" on its page about the Pod lifecycle. The same
// happens when the other containers end and do not restart.
func (p *pod) runContainers() {
	for _, c := range p.sidecars {
		go c.run()
	}
	var regular sync.WaitGroup
	for _, c := range p.containers {
		regular.Go(c.run)
	}
	regular.Wait()
	for _, c := range slices.Backward(p.sidecars) {
		c.stop()
		<-c.ended
	}
}

// reportUntil writes the status whenever it changes, until the containers have
// ended and the Pod is deleted.
func (p *pod) reportUntil(ended <-chan struct{}) {
	var deleted <-chan struct{} // nil until the containers have ended
	for running := true; running; {
		var retry <-chan time.Time
		if p.report(p.node.ctx) != nil {
			retry = time.After(retryInterval)
		}
		select {
		case <-p.changed:
		case <-retry:
		case <-ended:
			ended, deleted = nil, p.stopping.Done()
		case <-deleted:
			running = false
		}
	}
}

// pause waits for the duration, or until ctx is canceled.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// dir returns the directory for the Pod's files. Its path is short, because a Unix domain
// socket's path has at most 107 bytes.
func (p *pod) dir() string {
	return filepath.Join(p.node.children.Files(), strconv.Itoa(p.number))
}
