package node

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is a Pod that runs here. It is ending when its containers are told to
// stop, and killed when they get no more time.
type pod struct {
	node       *Node
	object     *corev1.Pod // its status is the last that was written
	ip         netip.Addr
	started    metav1.Time
	containers []*container

	changed  chan struct{} // has an element when the status may have changed
	stopping context.Context
	stop     context.CancelFunc
	killed   context.Context
	kill     context.CancelFunc
}

func newPod(n *Node, object *corev1.Pod, ip netip.Addr) *pod {
	p := &pod{node: n, object: object, ip: ip, started: now(), changed: make(chan struct{}, 1)}
	p.killed, p.kill = context.WithCancel(n.ctx)
	p.stopping, p.stop = context.WithCancel(p.killed)
	for _, spec := range object.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, spec))
	}
	return p
}

// now has the precision of the API.
func now() metav1.Time { return metav1.Now().Rfc3339Copy() }

// notify makes that the status is looked at.
func (p *pod) notify() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// terminate stops the containers, which have the grace period for it. A later call can
// shorten that.
func (p *pod) terminate(grace time.Duration) {
	p.stop()
	time.AfterFunc(grace, p.kill)
}

// run runs the containers until the Pod is deleted, and removes it then.
func (p *pod) run() {
	defer p.kill()
	var containers sync.WaitGroup
	for _, c := range p.containers {
		containers.Go(c.run)
	}
	ended := make(chan struct{})
	go func() {
		containers.Wait()
		close(ended)
	}()
	p.reportUntil(ended)
	p.node.network.releaseIP(p.ip)
	_ = os.RemoveAll(p.dir()) // the tether removes what is left
	for n := p.node; n.ctx.Err() == nil && n.remove(n.ctx, p.object) != nil; {
		pause(n.ctx, retryInterval)
	}
}

// reportUntil writes the status whenever it changes, until the containers have
// ended and the Pod is deleted.
func (p *pod) reportUntil(ended <-chan struct{}) {
	var ending <-chan struct{} // looked at when nothing else is left to wait for
	for running := true; running; {
		var again <-chan time.Time
		if p.report(p.node.ctx) != nil {
			again = time.After(retryInterval)
		}
		select {
		case <-p.changed:
		case <-again:
		case <-ended:
			ended, ending = nil, p.stopping.Done()
		case <-ending:
			running = false
		}
	}
}

// pause waits for the time to pass, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// dir holds the files of the Pod.
func (p *pod) dir() string {
	return filepath.Join(p.node.children.Files(), string(p.object.UID))
}
