package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// proxy forwards connections to Pod and Service addresses. It replaces the Pod network
// and kube-proxy.
//
// Unlike kube-proxy, it accepts a connection before it connects to the endpoint: if that
// fails, the client gets a reset instead of a refused connection. A forwarded connection
// does not come from the client's address.
type proxy struct {
	ctx      context.Context // canceled when the node stops
	network  *network
	running  sync.WaitGroup                          // listeners and connections
	services map[types.NamespacedName]serviceTargets // only for the goroutine that reconciles
	reported map[netip.AddrPort]bool                 // addresses with a reported error; likewise
}

// serviceTargets are a Service's served addresses.
type serviceTargets map[netip.AddrPort]*target

// target is one of a Service's served addresses.
type target struct {
	listener  net.Listener
	endpoints atomic.Pointer[[]endpoint]
	count     atomic.Uint64 // connections
}

func newProxy(ctx context.Context, n *network) *proxy {
	return &proxy{ctx: ctx, network: n, services: map[types.NamespacedName]serviceTargets{}, reported: map[netip.AddrPort]bool{}}
}

// watch adds a controller that serves the Services.
func (p *proxy) watch(m manager.Manager) error {
	service := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, slice client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}}}
	})
	return builder.ControllerManagedBy(m).Named("proxy").For(&corev1.Service{}).Watches(&discoveryv1.EndpointSlice{}, service).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, SkipNameValidation: new(true)}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, p.reconcile(ctx, m.GetCache(), request.NamespacedName)
		}))
}

// reconcile listens on the Service addresses that have endpoints, and closes its other
// listeners. Established connections continue.
func (p *proxy) reconcile(ctx context.Context, cache client.Reader, key types.NamespacedName) error {
	wanted, err := wantedTargets(ctx, cache, key)
	if err != nil {
		return err
	}
	current := p.services[key]
	for address, t := range current {
		if len(wanted[address]) == 0 {
			_ = t.listener.Close()
			delete(current, address)
		}
	}
	if current == nil {
		current = serviceTargets{}
		p.services[key] = current
	}
	var errs []error
	for address, endpoints := range wanted {
		t := current[address]
		if t == nil {
			if t, err = p.serveService(address, endpoints); err != nil {
				errs = append(errs, err)
			} else if t != nil {
				current[address] = t
			}
			continue
		}
		t.endpoints.Store(&endpoints)
	}
	if len(current) == 0 {
		delete(p.services, key)
	}
	return errors.Join(errs...)
}

// wantedTargets returns the endpoints for each Service address that has some. The result
// is empty if the Service does not exist or has no address.
func wantedTargets(ctx context.Context, cache client.Reader, key types.NamespacedName) (map[netip.AddrPort][]endpoint, error) {
	service := &corev1.Service{}
	if err := cache.Get(ctx, key, service); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var all discoveryv1.EndpointSliceList
	if err := cache.List(ctx, &all, client.InNamespace(key.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: key.Name}); err != nil {
		return nil, err
	}
	wanted := map[netip.AddrPort][]endpoint{}
	for _, text := range service.Spec.ClusterIPs {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue // "None"
		}
		for _, port := range service.Spec.Ports {
			found, err := endpoints(service, all.Items, port.Port)
			if err == nil && len(found) > 0 { // the error for a port that is not a TCP port
				wanted[netip.AddrPortFrom(ip, uint16(port.Port))] = found //nolint:gosec // G115: the API server validates ports
			}
		}
	}
	return wanted, nil
}

// serveService listens on a Service address. It returns nil if the address does not
// belong to this machine.
func (p *proxy) serveService(address netip.AddrPort, endpoints []endpoint) (*target, error) {
	t := &target{}
	t.endpoints.Store(&endpoints)
	var err error
	t.listener, err = p.serve(address, func(ctx context.Context) (net.Conn, error) {
		current := *t.endpoints.Load()
		next := current[(t.count.Add(1)-1)%uint64(len(current))]
		return p.network.dial(ctx, "tcp", next.ip, next.port)
	})
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, nil //nolint:nilnil // documented
	case err != nil && !p.reported[address]:
		p.reported[address] = true
		fmt.Fprintf(os.Stderr, "node: serve an address of a Service: %v\n", err)
	}
	return t, err
}

// serveAddresses serves the ports on which a container's process listens, each as soon as
// the process listens on it, until ctx is canceled.
func (c *container) serveAddresses(ctx context.Context, ports map[int32]int) {
	p := c.pod.node.proxy
	if p == nil {
		return
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	for port, local := range ports {
		process := c.pod.node.network.localAddress(local)
		serving.Go(func() {
			if !waitForPort(ctx, func() (string, bool) { return process, true }) {
				return
			}
			address := netip.AddrPortFrom(c.pod.ip, uint16(port)) //nolint:gosec // G115: a port
			listener, err := p.serve(address, func(ctx context.Context) (net.Conn, error) {
				var dialer net.Dialer
				return dialer.DialContext(ctx, "tcp", process)
			})
			if err == nil {
				<-ctx.Done()
				_ = listener.Close()
			} else if !errors.Is(err, syscall.EADDRNOTAVAIL) {
				fmt.Fprintf(os.Stderr, "node: serve an address of Pod %s: %v\n", c.pod.object.Name, err)
			}
		})
	}
}

// serve listens on the address and forwards each connection to the connection that
// dial returns.
func (p *proxy) serve(address netip.AddrPort, dial func(context.Context) (net.Conn, error)) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address.Addr().String(), strconv.Itoa(int(address.Port()))))
	if err != nil {
		return nil, err
	}
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the listener is closed
			}
			p.running.Go(func() { p.forward(client.(*net.TCPConn), dial) })
		}
	})
	return listener, nil
}

// forward forwards all bytes, a reset, and when each direction ends.
func (p *proxy) forward(client *net.TCPConn, dial func(context.Context) (net.Conn, error)) {
	connection, err := dial(p.ctx)
	if err != nil {
		reset(client)
		return
	}
	server := connection.(*net.TCPConn)
	defer context.AfterFunc(p.ctx, func() { reset(client, server) })()
	var directions sync.WaitGroup
	for from, to := range map[*net.TCPConn]*net.TCPConn{client: server, server: client} {
		directions.Go(func() {
			if _, err := io.Copy(to, from); err != nil || to.CloseWrite() != nil {
				reset(client, server)
			}
		})
	}
	directions.Wait()
	_, _ = client.Close(), server.Close()
}

// reset closes the connections so that their peers get an error instead of EOF.
func reset(connections ...*net.TCPConn) {
	for _, c := range connections {
		_, _ = c.SetLinger(0), c.Close()
	}
}

// close closes all listeners and connections. The node has been canceled and reconciles
// no longer.
func (p *proxy) close() {
	for _, targets := range p.services {
		for _, t := range targets {
			_ = t.listener.Close()
		}
	}
	p.running.Wait()
}
