package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/childproc"
)

const (
	// concurrency is how many Pods are bound or begun at the same time.
	concurrency = 4
	// retryInterval is how often is tried again what the API server refused,
	// and what a container waits for, such as its Secret.
	retryInterval = 500 * time.Millisecond
)

// Image is a program on this machine that stands in for a container image.
type Image struct {
	// Command is the program's absolute path and its first arguments. The
	// container's arguments follow; its command is ignored.
	Command []string
	// Environment are lines KEY=value, added after the container's own.
	Environment []string
	// Ports are the environment variables that tell the program which TCP port
	// to listen on, by the port that the container is said to listen on.
	Ports map[int32]string
}

// Options says what the node is like.
type Options struct {
	// Name is the Node object's, "node" if it is empty.
	Name string
	// Images are the known ones by repository, without tag and digest, and
	// without docker.io: for instance "cloudflare/cloudflared" or
	// "registry.k8s.io/pause".
	Images map[string]Image
}

// Node is a running node.
type Node struct {
	name     string
	images   map[string]Image // with commands that are tied
	kube     client.Client    // reads from the API server
	children *childproc.Group
	logs     *logServer
	network  *network

	ctx         context.Context // ends with the node
	cancel      context.CancelFunc
	managerDone chan struct{} // nil until Pods are watched, closed when they are not any more
	managerErr  error         // why that ended, once watched is closed

	mu       sync.Mutex
	pods     map[types.UID]*pod
	podGroup sync.WaitGroup // of pods
}

// Start makes the Node object and returns when its Pods are run, which takes a
// moment. Cancelling ctx ends Start, not the node that it has returned: the
// caller stops that, before the cluster. Should the calling process die instead,
// whatever the reason, the Pods' processes and files go with it.
func Start(ctx context.Context, config *rest.Config, o Options) (*Node, error) {
	n := &Node{
		name: cmp.Or(o.Name, "node"), network: newNetwork(), pods: map[types.UID]*pod{},
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if err := n.start(ctx, config, o.Images); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the node %s: %w", n.name, err), n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, config *rest.Config, images map[string]Image) (err error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // many Pods at once are not to wait for each other
	config.WarningHandler = rest.NoWarnings{}
	if n.kube, err = client.New(config, client.Options{}); err != nil {
		return err
	}
	if n.children, err = childproc.New("node"); err != nil {
		return err
	}
	if n.images, err = wrapImages(n.children, images); err != nil {
		return err
	}
	if n.logs, err = serveLogs(n); err != nil {
		return err
	}
	if err := n.register(ctx); err != nil {
		return err
	}
	return n.watch(ctx, config)
}

// wrapImages returns the images with programs that die with this process.
func wrapImages(t *childproc.Group, images map[string]Image) (map[string]Image, error) {
	tied := map[string]Image{}
	for name, image := range images {
		if len(image.Command) == 0 || !filepath.IsAbs(image.Command[0]) {
			return nil, fmt.Errorf("image %s: its command %q does not begin with an absolute path", name, image.Command)
		}
		path, err := t.Wrap(image.Command[0])
		if err != nil {
			return nil, err
		}
		image.Command = append([]string{path}, image.Command[1:]...)
		tied[repository(name)] = image
	}
	return tied, nil
}

// watch begins to handle Pods and returns when it knows them.
func (n *Node) watch(ctx context.Context, config *rest.Config) error {
	m, err := manager.New(config, manager.Options{
		Logger: logr.New(log.NullLogSink{}), Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = builder.ControllerManagedBy(m).Named("node").For(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, SkipNameValidation: new(true)}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, n.reconcile(ctx, m.GetCache(), request.NamespacedName)
		}))
	if err != nil {
		return err
	}
	n.managerDone = make(chan struct{})
	go func() {
		defer close(n.managerDone)
		n.managerErr = m.Start(n.ctx)
	}()
	synced := make(chan bool, 1)
	go func() { synced <- m.GetCache().WaitForCacheSync(n.ctx) }()
	select {
	case <-synced:
		return nil
	case <-n.managerDone:
		return n.managerErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop ends all processes at once and waits for them. It leaves the objects in
// the API server as they are. It returns why the node has stopped before, should
// it have.
func (n *Node) Stop() error {
	n.cancel()
	var errs []error
	if n.managerDone != nil {
		<-n.managerDone // or more Pods would begin
		errs = append(errs, n.managerErr)
	}
	n.podGroup.Wait()
	if n.children != nil {
		errs = append(errs, n.children.Close())
	}
	if n.logs != nil {
		errs = append(errs, n.logs.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping the node %s: %w", n.name, err)
	}
	return nil
}

// Dial connects to the process that stands behind address, as a Pod of the
// cluster would:
//
//   - "<Pod IP>:<port>" is the Pod's container port.
//   - "<service>.<namespace>.svc:<port>", also with ".cluster.local", is the
//     Service's port at one of its ready endpoints, in turn. A headless Service
//     stands for the addresses of its ready endpoints, whatever its ports.
//   - Other IP addresses, which an EndpointSlice may hold, are dialled as they are.
//
// The network is "tcp", "tcp4" or "tcp6". An error says what is missing.
func (n *Node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := n.dial(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("dialing %s: %w", address, err)
	}
	return connection, nil
}
