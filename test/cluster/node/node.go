package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/childproc"
)

const (
	// The node binds or starts up to concurrency Pods at the same time.
	concurrency = 4
	// After retryInterval, the node repeats a request that the API server rejected, and
	// starts a container again that waits, for example for a Secret.
	retryInterval = 500 * time.Millisecond
)

// Image is a program on this machine that replaces a container image.
type Image struct {
	// Command is the program's absolute path and its first arguments. The container's
	// arguments follow. The container's command is ignored.
	Command []string
	// Program is the program's name in the container image. A probe's command must begin
	// with it, and the node runs Command instead.
	Program string
	// Environment contains environment variables, as KEY=value. They follow the
	// container's environment variables.
	Environment []string
	// Ports maps each container port to the environment variable that contains the real
	// TCP port to listen on.
	Ports map[int32]string
}

// Options configures a node.
type Options struct {
	// Name is the Node object's name. It defaults to "node".
	Name string
	// Images are the supported images by repository, without tag, digest and
	// docker.io: for example "cloudflare/cloudflared" or "registry.k8s.io/pause".
	Images map[string]Image
	// OnlyNamed makes the node run only the Pods that name it in nodeName. Otherwise, it
	// binds every Pod without a node to itself.
	OnlyNamed bool
	// ServeAddresses makes the node listen on Pod and Service addresses, so that every
	// process can connect to them without [Node.Dial]: on <Pod IP>:<port> while the Pod's
	// process listens, and on <ClusterIP>:<port> while the Service has endpoints.
	// Addresses that do not belong to this machine are not served. Package netns makes
	// all of them belong to it; the addresses in 127.0.0.0/8 always do on Linux. If the
	// node cannot listen on an address that belongs to this machine, it writes the error
	// to the standard error and tries again.
	ServeAddresses bool
	// IPv6 gives the Pods IPv6 addresses alone, and connects to their processes through ::1
	// alone.
	IPv6 bool
	// PodCIDR is the range for Pod addresses. It defaults to 10.244.0.0/16, or with IPv6 to
	// fd00:10:244::/112. In a network namespace of package netns, several nodes that serve
	// addresses need separate parts of 10.244.0.0/16.
	PodCIDR netip.Prefix
}

// Node is a running node.
type Node struct {
	name     string
	images   map[string]Image // with the programs wrapped by children
	kube     client.Client    // has no cache
	children *childproc.Group
	logs     *logServer
	network  *network
	binds    bool   // whether the node binds Pods
	proxy    *proxy // nil unless the node serves addresses
	services services

	ctx         context.Context // canceled when the node stops
	cancel      context.CancelFunc
	managerDone chan struct{} // nil until the manager starts; closed when it has stopped
	managerErr  error         // the manager's error; valid after managerDone is closed

	restartDelay atomic.Int64 // see SetRestartDelay

	mu       sync.Mutex
	pods     map[types.UID]*pod
	podCount int            // Pods that have run
	podGroup sync.WaitGroup // the running pods
}

// Start creates the Node object and returns when the node runs Pods. Canceling ctx stops
// Start but not a node that it has returned; the caller stops the node before it stops
// the cluster. If the calling process ends for any reason, the Pods' processes are killed
// and their files are removed.
func Start(ctx context.Context, config *rest.Config, o Options) (*Node, error) {
	n := &Node{
		name: cmp.Or(o.Name, "node"), binds: !o.OnlyNamed, network: newNetwork(o.IPv6, o.PodCIDR), pods: map[types.UID]*pod{},
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if o.ServeAddresses {
		n.proxy = newProxy(n.ctx, n.network)
	}
	if err := n.start(ctx, config, o.Images); err != nil {
		return nil, errors.Join(fmt.Errorf("start node %s: %w", n.name, err), n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, config *rest.Config, images map[string]Image) (err error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // no rate limit, so that many Pods can start concurrently
	config.WarningHandler = rest.NoWarnings{}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	if n.kube, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
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

// newScheme returns a scheme with the types that the node reads and writes. Other
// packages in the program may add types to client-go's global scheme at any time, and a
// scheme is not safe for that while it is in use.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(corev1.AddToScheme(s), discoveryv1.AddToScheme(s))
}

// wrapImages adds the images' programs to the group. It returns the images with the
// wrapped programs' paths.
func wrapImages(group *childproc.Group, images map[string]Image) (map[string]Image, error) {
	wrapped := map[string]Image{}
	for name, image := range images {
		if len(image.Command) == 0 || !filepath.IsAbs(image.Command[0]) {
			return nil, fmt.Errorf("image %s: the command %q must start with an absolute path", name, image.Command)
		}
		path, err := group.Wrap(image.Command[0])
		if err != nil {
			return nil, err
		}
		image.Command = append([]string{path}, image.Command[1:]...)
		wrapped[repository(name)] = image
	}
	return wrapped, nil
}

// watch starts the manager that reconciles Pods, and returns when its cache is
// synced.
func (n *Node) watch(ctx context.Context, config *rest.Config) error {
	m, err := manager.New(config, manager.Options{
		Scheme: n.kube.Scheme(), Logger: logr.New(log.NullLogSink{}), Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = builder.ControllerManagedBy(m).Named("node").For(&corev1.Pod{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(n.podsThatMount)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(n.podsThatMount)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(unboundPods(m.GetCache()))).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, SkipNameValidation: new(true)}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, n.reconcile(ctx, m.GetCache(), request.NamespacedName)
		}))
	if err != nil {
		return err
	}
	if n.proxy != nil {
		if err := n.proxy.watch(m); err != nil {
			return err
		}
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

// Stop kills all processes and waits for them. It does not change objects in the
// API server. If the node has already failed, Stop returns its error.
func (n *Node) Stop() error {
	n.cancel()
	var errs []error
	if n.managerDone != nil {
		<-n.managerDone // otherwise more Pods could start
		errs = append(errs, n.managerErr)
	}
	n.podGroup.Wait()
	if n.proxy != nil {
		n.proxy.close()
	}
	if n.children != nil {
		errs = append(errs, n.children.Close())
	}
	if n.logs != nil {
		errs = append(errs, n.logs.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop node %s: %w", n.name, err)
	}
	return nil
}

// Dial connects to an address as a Pod in the cluster would:
//
//   - "<Pod IP>:<port>" is one of the Pod's container ports.
//   - "<service>.<namespace>.svc:<port>", optionally with ".cluster.local", is a
//     Service port. Dial selects the ready endpoints in turn. For a headless
//     Service, it ignores the Service's ports and connects to <port> on an endpoint.
//   - Dial connects directly to other IP addresses, which an EndpointSlice may
//     contain.
//
// network is "tcp", "tcp4" or "tcp6". If the connection fails, the error names the
// missing object, endpoint or port.
func (n *Node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := n.dial(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return connection, nil
}

// DialPod connects to a running Pod's container port as a process in the Pod does: even
// to a port that the process opens only for the loopback address.
func (n *Node) DialPod(ctx context.Context, pod types.NamespacedName, port int32) (net.Conn, error) {
	connection, err := n.dialPod(ctx, pod, port)
	if err != nil {
		return nil, fmt.Errorf("dial port %d of Pod %s: %w", port, pod, err)
	}
	return connection, nil
}

// DialLoopback is like [Node.DialPod] for a loopback address with a port, as a connector dials
// the Envoy in its Pod.
func (n *Node) DialLoopback(ctx context.Context, pod types.NamespacedName, address string) (net.Conn, error) {
	_, port, err := splitAddress(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s in Pod %s: %w", address, pod, err)
	}
	return n.DialPod(ctx, pod, port)
}

func (n *Node) dialPod(ctx context.Context, pod types.NamespacedName, port int32) (net.Conn, error) {
	p := n.runningPod(pod)
	if p == nil {
		return nil, errors.New("the node does not run the Pod")
	}
	return n.network.dial(ctx, "tcp", p.ip, port)
}

// KillContainer kills a container's process with SIGKILL, and returns when it has ended.
// The node restarts the container as after any other end.
func (n *Node) KillContainer(ctx context.Context, pod types.NamespacedName, container string) error {
	c := n.container(pod, container)
	if c == nil {
		return fmt.Errorf("kill container %s of Pod %s: the node does not run the container", container, pod)
	}
	c.mu.Lock()
	process := c.process
	c.mu.Unlock()
	if process == nil {
		return fmt.Errorf("kill container %s of Pod %s: the container has no process", container, pod)
	}
	process.kill()
	select {
	case <-process.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kill container %s of Pod %s: %w", container, pod, ctx.Err())
	}
}

// SetRestartDelay sets the time after which the node notices that a container has ended,
// in addition to the backoff. The kubelet looks once a second. The default is 0.
func (n *Node) SetRestartDelay(d time.Duration) { n.restartDelay.Store(int64(d)) }
