package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// listenPoll is how often a pod looks whether Envoy listens on a port.
const listenPoll = 20 * time.Millisecond

// pod is a network namespace in which Envoy runs alone, so that it can have the listeners
// from the controller. The pod forwards connections in both directions.
type pod struct {
	// inbound has the port on this machine for each port on which Envoy listens.
	inbound map[int]int
	// outbound are the ports to which Envoy connects, at any address.
	outbound []int

	calls     chan func() // run in the namespace
	listeners map[int]net.Listener
}

// parsePorts parses the variable OUTBOUND_PORTS.
func parsePorts(text string) ([]int, error) {
	var ports []int
	for _, part := range strings.Split(text, ",") {
		port, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("OUTBOUND_PORTS: %w", err)
		}
		ports = append(ports, int(port))
	}
	return ports, nil
}

// run runs Envoy, forwards signals to it, and returns its exit status.
func (p *pod) run(command *exec.Cmd) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	p.calls, p.listeners = make(chan func()), map[int]net.Listener{}
	started := make(chan error)
	go p.hold(command, started)
	if err := <-started; err != nil {
		return 0, err
	}
	for port, listener := range p.listeners {
		go forward(listener, func(original net.Addr) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(original.String())
			return net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		})
	}
	for port, local := range p.inbound {
		go p.serve(port, local)
	}
	go func() {
		for s := range signals {
			_ = command.Process.Signal(s) // it may have ended
		}
	}()
	err := command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return command.ProcessState.ExitCode(), nil
}

// hold enters the namespace, listens and starts Envoy there, and then runs the calls. Its
// thread must not end before Envoy, whose parent it is.
func (p *pod) hold(command *exec.Cmd, started chan<- error) {
	err := netns.Isolate()
	for _, port := range p.outbound {
		if err == nil {
			p.listeners[port], err = net.Listen("tcp4", fmt.Sprintf(":%d", port)) // #nosec G102 -- in the namespace
		}
	}
	if err == nil {
		err = command.Start()
	}
	started <- err
	for call := range p.calls {
		call()
	}
}

// dial connects to a port of Envoy.
func (p *pod) dial(port int) (connection net.Conn, err error) {
	done := make(chan struct{})
	p.calls <- func() {
		defer close(done)
		connection, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	<-done
	return connection, err
}

// serve forwards connections to a port of Envoy as soon as Envoy listens on it. Before, this
// machine's port refuses connections, as the node expects.
func (p *pod) serve(port, local int) {
	for {
		connection, err := p.dial(port)
		if err == nil {
			_ = connection.Close()
			break
		}
		time.Sleep(listenPoll)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(local)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // the node starts Envoy again with other ports
	}
	forward(listener, func(net.Addr) (net.Conn, error) { return p.dial(port) })
}

// forward forwards the listener's connections. dial gets the address to which the client
// connected.
func forward(listener net.Listener, dial func(original net.Addr) (net.Conn, error)) {
	for {
		inbound, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer inbound.Close() //nolint:errcheck // both directions have ended
			outbound, err := dial(inbound.LocalAddr())
			if err != nil {
				return
			}
			defer outbound.Close() //nolint:errcheck // both directions have ended
			join(inbound, outbound)
		}()
	}
}

// join copies in both directions until both have ended.
func join(a, b net.Conn) {
	var copying sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		copying.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].(*net.TCPConn).CloseWrite() // the other direction may continue
		})
	}
	copying.Wait()
}
