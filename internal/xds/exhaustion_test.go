package xds_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/anypb"
)

// allocated returns how many bytes the function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A request that is small on the wire does not become large in the controller's memory.
func TestRequestsDoNotGrowInMemory(t *testing.T) {
	for name, request := range map[string]*discoveryv3.DeltaDiscoveryRequest{
		"empty names":   {TypeUrl: endpoints, ResourceNamesSubscribe: make([]string, 5_000_000)},
		"empty details": withEmptyDetails(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: endpoints}, 5_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			withBed(t, func(t *testing.T, b *bed) {
				b.publish(t, publication(1, "v1", "a"))
				c := b.envoy(t)
				defer c.close()
				synctest.Wait()
				// The request has 10 MB. The client and gRPC need several copies.
				size := allocated(func() {
					c.request(request)
					_ = c.ended()
				})
				if size > 100<<20 || c.ended() == nil {
					t.Errorf("the request takes %d bytes, and its stream ended with %v; want at most 100 MiB, and an error", size, c.ended())
				}
			})
		})
	}
}

func withEmptyDetails(r *discoveryv3.DeltaDiscoveryRequest, n int) *discoveryv3.DeltaDiscoveryRequest {
	r.ErrorDetail = status.New(codes.Unknown, "").Proto()
	r.ErrorDetail.Details = slices.Repeat([]*anypb.Any{{}}, n)
	return r
}

// A pod that never finishes the TLS handshake does not keep others from connecting, and
// neither do a hundred pods: they share a quota, which Envoys do not use.
func TestUnfinishedHandshakesDoNotKeepOthersOut(t *testing.T) {
	for pods, connections := range map[int]int{1: 5000, 100: 50} {
		t.Run(fmt.Sprint(pods, " pods"), func(t *testing.T) {
			withBed(t, func(t *testing.T, b *bed) {
				b.publish(t, publication(1, "v1", "a"))
				b.listener = bufconn.Listen(1 << 20)
				silent := &crowd{Listener: b.listener, pods: pods, connections: connections}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- b.Serve(ctx, silent) }()
				defer func() {
					cancel()
					if err := <-done; err != nil {
						t.Error(err)
					}
				}()
				all, most := silent.open()
				if all > 256 || most > 16 || all < 16 {
					t.Errorf("%d silent connections are open, and %d of one pod; want at most 256 and 16", all, most)
				}
				start := time.Now()
				c := b.started(t)
				defer c.close()
				// Virtual time passes only if the client has to wait.
				if took := time.Since(start); took > 0 || c.ended() != nil {
					t.Errorf("an Envoy waits %s, and its stream ended with %v", took, c.ended())
				}
				elapse(2 * time.Second)
				if all, _ = silent.open(); all != 0 {
					t.Errorf("%d silent connections are open after two seconds", all)
				}
				c.wantNothing()
			})
		})
	}
}

// Clients that do not read share the memory for what is sent to them.
func TestSlowReadersShareMemory(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		const size, clients = 4 << 20, 20
		p := publication(1, "v1", "a")
		host := p.Resources.Routes[0].VirtualHosts[0]
		for i := range size >> 10 {
			host.Routes = append(host.Routes, routeConfiguration("", fmt.Sprint(i, strings.Repeat("x", 1000))).VirtualHosts[0].Routes[0])
		}
		b.publish(t, p)
		var all []*client
		for range clients {
			c := b.envoy(t)
			defer c.close()
			c.subscribe(clusters)
			c.ack(c.want("clusters a"))
			c.hold()
			all = append(all, c)
		}
		grown := allocated(func() {
			for _, c := range all {
				c.subscribe(routes, "open", "protected")
			}
			synctest.Wait()
		})
		if grown > size*clients/2 {
			t.Errorf("%d streams take %d bytes for routes of %d bytes", clients, grown, size)
		}
		for _, c := range all {
			c.resume()
		}
	})
}

// A client that connects again and again does not lead to a reconcile each time.
func TestReconnectingClientsAreNotReportedEachTime(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		certificate := b.client(t, shared, sharedTunnel, time.Hour)
		for range 200 {
			c := b.connect(t, certificate)
			c.close()
		}
		if changes := b.changes(); changes > 150 {
			t.Errorf("%d changes are reported, want at most 150", changes)
		}
		c := b.started(t)
		defer c.close()
		elapse(5 * time.Second)
		if b.changes() == 0 {
			t.Error("the last change is not reported")
		}
	})
}

// crowd is a listener that first accepts connections from pods that send nothing.
type crowd struct {
	net.Listener
	pods, connections int
	accepted          []*silent
}

func (l *crowd) Accept() (net.Conn, error) {
	n := len(l.accepted)
	if n == l.pods*l.connections {
		return l.Listener.Accept()
	}
	address := &net.TCPAddr{IP: net.ParseIP(fmt.Sprint("10.0.0.", n%l.pods)), Port: n}
	l.accepted = append(l.accepted, &silent{address: address, closed: make(chan struct{})})
	return l.accepted[n], nil
}

// open counts all open connections, and those from the pod with the most.
func (l *crowd) open() (all, most int) {
	synctest.Wait()
	byPod := map[string]int{}
	for _, c := range l.accepted {
		select {
		case <-c.closed:
		default:
			pod := c.address.IP.String()
			byPod[pod]++
			all, most = all+1, max(most, byPod[pod])
		}
	}
	return all, most
}

// silent is a connection on which the client sends nothing.
type silent struct {
	net.Conn
	address *net.TCPAddr
	once    sync.Once
	closed  chan struct{}
}

func (s *silent) Read([]byte) (int, error) {
	<-s.closed
	return 0, net.ErrClosed
}

func (s *silent) Write(p []byte) (int, error) { return len(p), nil }

func (s *silent) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *silent) SetDeadline(t time.Time) error {
	if !t.IsZero() {
		time.AfterFunc(time.Until(t), func() { _ = s.Close() })
	}
	return nil
}

func (s *silent) RemoteAddr() net.Addr { return s.address }
