package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
)

// The port range for processes. It is below the range that the kernel uses for outgoing
// connections, which starts at 32768 on Linux.
const (
	firstPort = 20000
	lastPort  = 32767
	// portOffset separates the first ports that test processes with consecutive process
	// IDs use, because they may run at the same time.
	portOffset = 512
)

// podCIDR4 and podCIDR6 are the Pod address ranges. Kubernetes rejects loopback addresses
// in EndpointSlices.
var (
	podCIDR4 = netip.MustParsePrefix("10.244.0.0/16")
	podCIDR6 = netip.MustParsePrefix("fd00:10:244::/112")
)

// network allocates addresses and ports for Pods, and connects to them.
type network struct {
	podCIDR  netip.Prefix
	loopback string // where the processes listen on this machine

	mu       sync.Mutex
	pods     map[netip.Addr]*podPorts
	lastIP   netip.Addr
	counters map[string]int // connections by Service
}

type podPorts struct {
	pod   string
	ports map[int32]int // real port by container port, while its process runs
}

// newNetwork returns a network with the range for Pods, or with the default range.
func newNetwork(ipv6 bool, pods netip.Prefix) *network {
	n := &network{podCIDR: podCIDR4, loopback: "127.0.0.1", pods: map[netip.Addr]*podPorts{}, counters: map[string]int{}}
	if ipv6 {
		n.podCIDR, n.loopback = podCIDR6, "::1"
	}
	if pods.IsValid() {
		n.podCIDR = pods
	}
	n.lastIP = n.podCIDR.Addr()
	return n
}

// allocateIP allocates an address for a Pod. It does not reuse an address soon.
func (n *network) allocateIP(pod string) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range 1 << (n.podCIDR.Addr().BitLen() - n.podCIDR.Bits()) {
		if n.lastIP = n.lastIP.Next(); !n.podCIDR.Contains(n.lastIP) {
			n.lastIP = n.podCIDR.Addr().Next()
		}
		if n.pods[n.lastIP] == nil {
			n.pods[n.lastIP] = &podPorts{pod: pod, ports: map[int32]int{}}
			return n.lastIP, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all addresses of %s are in use", n.podCIDR)
}

func (n *network) releaseIP(ip netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, ip)
}

// allocatePorts allocates a free real port for each of a Pod's container ports.
func (n *network) allocatePorts(ip netip.Addr, ports []int32) (map[int32]int, error) {
	allocated := map[int32]int{}
	for _, port := range ports {
		free, err := freePort()
		if err != nil {
			return nil, err
		}
		allocated[port] = free
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.Copy(n.pods[ip].ports, allocated)
	return allocated, nil
}

// portSequence returns the ports in the range in turn.
type portSequence struct {
	mu   sync.Mutex
	last int
}

// processPorts is the sequence for all nodes in this process.
var processPorts = portSequence{last: firstPort + os.Getpid()*portOffset%(lastPort-firstPort)}

func (s *portSequence) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last++; s.last > lastPort {
		s.last = firstPort
	}
	return s.last
}

// freePort returns the next free port. It does not reuse a port soon. If another
// program takes the port before the process listens on it, the process ends and is
// restarted with another port.
func freePort() (int, error) {
	var err error
	for range lastPort - firstPort {
		port := processPorts.next()
		var listener net.Listener
		if listener, err = net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free: %w", firstPort, lastPort, err)
}

// releasePorts releases the real ports after their process has ended.
func (n *network) releasePorts(ip netip.Addr, allocated map[int32]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for port := range allocated {
		delete(n.pods[ip].ports, port)
	}
}

// nextIndex counts the earlier calls for the Service.
func (n *network) nextIndex(service string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	index := n.counters[service]
	n.counters[service]++
	return index
}

// dial connects to the process behind a Pod's address and port, or to an address outside
// the Pod network.
func (n *network) dial(ctx context.Context, network string, ip netip.Addr, port int32) (net.Conn, error) {
	address := net.JoinHostPort(ip.String(), strconv.Itoa(int(port)))
	if n.podCIDR.Contains(ip) {
		local, err := n.translate(ip, port)
		if err != nil {
			return nil, err
		}
		address = n.localAddress(local)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

// translate returns the real port for a Pod's address and port.
func (n *network) translate(ip netip.Addr, port int32) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pod := n.pods[ip]
	if pod == nil {
		return 0, fmt.Errorf("no Pod has the address %s", ip)
	}
	if local, ok := pod.ports[port]; ok {
		return local, nil
	}
	if len(pod.ports) == 0 {
		return 0, errors.New("the Pod " + pod.pod + " has no running process with a port")
	}
	var available []int32
	for port := range pod.ports {
		available = append(available, port)
	}
	slices.Sort(available)
	return 0, fmt.Errorf("no process of Pod %s has port %d, only %d; add the port to its Image", pod.pod, port, available)
}

// localAddress returns the address for a real port on this machine.
func (n *network) localAddress(port int) string {
	return net.JoinHostPort(n.loopback, strconv.Itoa(port))
}
