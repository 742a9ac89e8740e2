package faults

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// replicas are the controllers, with leader election. A controller that exits by itself is
// started again, as a container is.
type replicas struct {
	w       *world
	mu      sync.Mutex
	running []*controllerproc.Process // the oldest first, which is usually the leader
	exits   int                       // of controllers that exited by themselves
	stopped bool
}

// start starts one more controller.
func (r *replicas) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w.must(r.add())
}

// add starts a controller and watches it. The caller has the lock.
func (r *replicas) add() error {
	log, err := os.OpenFile(filepath.Join(logs, "controllers.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // #nosec G304 -- a fixed name
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // only the controller writes to it
	p, err := controllerproc.Start(controllerproc.Options{
		Binary: programPath("tunnel-gateway"), Kubeconfig: r.w.proxy.kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: clusterID,
		Cloudflare: r.w.apiURL, AccountID: account, Output: log,
		Flags: []string{
			"--leader-election=true", "--xds-bind-address=" + xdsAddress, "--retirement-delay=1s", "--drift-interval=10s", "--inventory-interval=10s",
			"--cloudflare-api-token=", "--cloudflare-api-token-secret=" + cluster.ControllerNamespace + "/cloudflare",
		},
	})
	if err != nil {
		return err
	}
	r.running = append(r.running, p)
	go r.restart(p)
	return nil
}

// restart starts another controller when this one has exited by itself.
func (r *replicas) restart(p *controllerproc.Process) {
	<-p.Exited()
	pause(context.Background(), time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || !r.remove(p) {
		return
	}
	r.exits++
	if err := r.add(); err != nil {
		panic(err)
	}
}

// exited counts the controllers that exited by themselves.
func (r *replicas) exited() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exits
}

// checkGrace expects that each controller so far has ended by itself within the grace period.
func (r *replicas) checkGrace() {
	r.w.Helper()
	log, err := os.ReadFile(filepath.Join(logs, "controllers.log"))
	r.w.must(err)
	if bytes.Contains(log, []byte("failed waiting for all runnables to end within grace period")) {
		r.w.Error("a controller did not end within its grace period; see controllers.log")
	}
}

// remove removes a controller from the running ones, and reports whether it was one.
func (r *replicas) remove(p *controllerproc.Process) bool {
	for i, other := range r.running {
		if other == p {
			r.running = append(r.running[:i:i], r.running[i+1:]...)
			return true
		}
	}
	return false
}

// oldest returns the oldest controller, and no longer restarts it.
func (r *replicas) oldest() *controllerproc.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.running[0]
	r.remove(p)
	return p
}

// replaceOldest stops or kills the oldest controller, and starts a new one.
func (r *replicas) replaceOldest(kill bool) {
	r.w.Helper()
	p := r.oldest()
	if kill {
		p.Kill()
	} else if err := p.Stop(); err != nil {
		r.w.Error(err)
	}
	r.start()
}

// stop stops all controllers.
func (r *replicas) stop() {
	r.mu.Lock()
	r.stopped = true
	running := r.running
	r.mu.Unlock()
	for _, p := range running {
		if err := p.Stop(); err != nil {
			r.w.Error(err)
		}
	}
}
