package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
)

// The ports that processes get. They lie below the range from which kernels
// take the ports of outgoing connections, which begins at 32768 on Linux.
const (
	firstPort = 20000
	lastPort  = 32767
	// portOffset is how far apart the ports begin of two processes of this program
	// whose numbers are neighbours: they may run at the same time.
	portOffset = 512
)

// podCIDR has the addresses of all Pods. Kubernetes refuses loopback addresses
// in EndpointSlices.
var podCIDR = netip.MustParsePrefix("10.244.0.0/16")

// network is what Pods' addresses stand for.
type network struct {
	mu       sync.Mutex
	pods     map[netip.Addr]*podPorts
	lastIP   netip.Addr
	nextPort int
	counters map[string]int // how often each Service was dialled
}

// podPorts is one Pod of the network.
type podPorts struct {
	pod   string
	ports map[int32]int // real ports of running processes by container port
}

func newNetwork() *network {
	return &network{
		pods:     map[netip.Addr]*podPorts{},
		lastIP:   podCIDR.Addr(),
		nextPort: firstPort + os.Getpid()*portOffset%(lastPort-firstPort),
		counters: map[string]int{},
	}
}

// allocateIP gives a Pod an address, which is not given again soon.
func (n *network) allocateIP(pod string) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range 1 << (podCIDR.Addr().BitLen() - podCIDR.Bits()) {
		if n.lastIP = n.lastIP.Next(); !podCIDR.Contains(n.lastIP) {
			n.lastIP = podCIDR.Addr().Next()
		}
		if n.pods[n.lastIP] == nil {
			n.pods[n.lastIP] = &podPorts{pod: pod, ports: map[int32]int{}}
			return n.lastIP, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all addresses of %s are taken", podCIDR)
}

func (n *network) releaseIP(ip netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, ip)
}

// allocatePorts gives each container port of a member a real port on which nobody listens.
func (n *network) allocatePorts(ip netip.Addr, ports []int32) (map[int32]int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	opened := map[int32]int{}
	for _, port := range ports {
		free, err := n.freePort()
		if err != nil {
			return nil, err
		}
		opened[port], n.pods[ip].ports[port] = free, free
	}
	return opened, nil
}

// freePort counts up, so that a port is not given again soon. The process may
// find it taken all the same; then it ends, and is started with another one.
func (n *network) freePort() (int, error) {
	var err error
	for range lastPort - firstPort {
		port := n.nextPort
		if n.nextPort++; n.nextPort > lastPort {
			n.nextPort = firstPort
		}
		var listener net.Listener
		if listener, err = net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free: %w", firstPort, lastPort, err)
}

// releasePorts forgets the real ports of a process that has ended.
func (n *network) releasePorts(ip netip.Addr, opened map[int32]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for port := range opened {
		delete(n.pods[ip].ports, port)
	}
}

// nextIndex counts the calls for a Service from 0.
func (n *network) nextIndex(service string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	turn := n.counters[service]
	n.counters[service]++
	return turn
}

// dial connects to the process behind a Pod's address and port, or to an
// address outside the Pods' network.
func (n *network) dial(ctx context.Context, network string, ip netip.Addr, port int32) (net.Conn, error) {
	address := net.JoinHostPort(ip.String(), strconv.Itoa(int(port)))
	if podCIDR.Contains(ip) {
		local, err := n.translate(ip, port)
		if err != nil {
			return nil, err
		}
		address = localAddress(local)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

func (n *network) translate(ip netip.Addr, port int32) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	member := n.pods[ip]
	if member == nil {
		return 0, fmt.Errorf("no Pod has the address %s", ip)
	}
	if local, ok := member.ports[port]; ok {
		return local, nil
	}
	if len(member.ports) == 0 {
		return 0, errors.New("no process of Pod " + member.pod + " runs that has a port")
	}
	var known []int32
	for port := range member.ports {
		known = append(known, port)
	}
	slices.Sort(known)
	return 0, fmt.Errorf("no process of Pod %s has port %d, only %d: an image names its ports", member.pod, port, known)
}

// localAddress is where processes are reached.
func localAddress(port int) string { return net.JoinHostPort(hostIP, strconv.Itoa(port)) }
