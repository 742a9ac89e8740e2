package xds_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// tenancy is a publication whose clusters have the same number of pods each. Nothing
// listens at their addresses, except at the only pod of the Service for app.example.com.
type tenancy struct {
	xds.Publication
	pods int
	app  string // the cluster for app.example.com
	rest []string
}

func newTenancy(services, pods int, app *net.TCPAddr) *tenancy {
	t := &routing.Table{ClusterDomain: "cluster.local", Groups: make([]routing.Group, services)}
	for i := range services {
		host := hostname
		if i > 0 {
			host = fmt.Sprintf("app-%05d.example.com", i)
		}
		route := &routing.Route{Kind: routing.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}, Rank: i}
		b := routing.Backend{
			Service:  types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("web-%05d", i)},
			Protocol: routing.ProtocolHTTP, Port: 80, ServicePort: 80, ClusterIP: fmt.Sprintf("10.96.%d.%d", i/250, i%250+1),
		}
		t.Groups[i] = routing.Group{Hostname: host, Namespace: "team", Entries: []*routing.Entry{{
			Hostname: host, RouteHostname: host, Source: routing.Source{Route: route}, Match: &routing.Match{Path: routing.Path{Value: "/app"}},
			Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: b, Weight: 1}}}},
		}}}
	}
	c := &tenancy{pods: pods, Publication: xds.Publication{
		Gateway: shared, Tunnel: sharedTunnel, Sequence: 1, Listeners: envoy.Listeners(envoy.ReadyOptions{Metrics: true}, routing.Telemetry{}),
		Resources: envoy.Render(t), Assignments: envoy.Assignments{},
	}}
	for i, e := range c.Resources.Endpoints {
		if e.Service.Name == "web-00000" {
			c.app, c.Assignments[e.Cluster] = e.Cluster, assignedTo(e.Cluster, app)
			continue
		}
		c.rest = append(c.rest, e.Cluster)
		c.Assignments[e.Cluster] = c.assigned(e.Cluster, i, 0)
	}
	return c
}

// assigned returns the pods of a cluster. A generation has other addresses.
func (c *tenancy) assigned(cluster string, index, generation int) *endpointv3.ClusterLoadAssignment {
	ips := make([]string, c.pods)
	for pod := range ips {
		n := index*c.pods + pod
		ips[pod] = fmt.Sprintf("10.%d.%d.%d", 128+generation%2*64+n>>16, n>>8&255, n&255)
	}
	return assigned(cluster, ips...)
}

// memory returns the memory that Envoy occupies, in MiB.
func (s *sidecar) memory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kilobytes, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes >> 10
}

// processorTime returns the processor time that Envoy has used.
func (s *sidecar) processorTime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	total := 0
	for _, field := range fields[11:13] { // in user mode, and in the kernel
		ticks, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		total += ticks
	}
	return time.Duration(total) * 10 * time.Millisecond
}

func ownProcessorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// moves moves the app's pod several times, and returns the times until Envoy uses the new
// pod.
func (s *sidecar) moves(t *testing.T, app string) []time.Duration {
	t.Helper()
	blue, blueAddress := backend(t, "blue")
	green, greenAddress := backend(t, "green")
	var durations []time.Duration
	for i := range 15 {
		name, address := blue.Service.Name, blueAddress
		if i%2 == 1 {
			name, address = green.Service.Name, greenAddress
		}
		start := time.Now()
		s.PublishEndpoints(shared, sharedTunnel, envoy.Assignments{app: assignedTo(app, address)})
		s.awaitAnswer(t, "200 "+name)
		durations = append(durations, time.Since(start))
	}
	slices.Sort(durations)
	return durations
}

// The real Envoy gets the endpoints of the largest namespaces that docs/performance.md
// names.
func TestEnvoyWithManyEndpoints(t *testing.T) {
	_, address := backend(t, "first")
	for _, test := range []struct{ services, pods, memory int }{{5000, 1, 300}, {5000, 3, 320}, {500, 100, 300}} {
		t.Run(fmt.Sprintf("%d Services with %d pods", test.services, test.pods), func(t *testing.T) {
			s, c := newSidecar(t), newTenancy(test.services, test.pods, address)
			s.publish(t, c.Publication)
			s.awaitAcknowledged(t, 1)
			s.awaitAnswer(t, "200 first")
			used, moves := s.memory(t), s.moves(t, c.app)
			t.Logf("measured: Envoy needs %d MiB; a moved pod gets requests after %s (median), %s (maximum)", used, moves[len(moves)/2], moves[len(moves)-1])
			if used > test.memory || moves[len(moves)/2] > time.Second {
				t.Errorf("want at most %d MiB and a median of at most 1s", test.memory)
			}
		})
	}
}

// Endpoints that change a thousand times each second do not delay another Service's.
func TestEnvoyWithChangingEndpoints(t *testing.T) {
	_, address := backend(t, "first")
	s, c := newSidecar(t), newTenancy(5000, 3, address)
	s.publish(t, c.Publication)
	s.awaitAcknowledged(t, 1)
	done, stopped, changes := make(chan struct{}), make(chan struct{}), 0
	start, envoyBefore, ownBefore := time.Now(), s.processorTime(t), ownProcessorTime(t)
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				for range 10 {
					i := changes % len(c.rest)
					s.PublishEndpoints(shared, sharedTunnel, envoy.Assignments{c.rest[i]: c.assigned(c.rest[i], i, 1+changes/len(c.rest))})
					changes++
				}
			}
		}
	}()
	moves := s.moves(t, c.app)
	for time.Since(start) < 3*time.Second {
		moves = append(moves, s.moves(t, c.app)...)
	}
	close(done)
	<-stopped
	took := time.Since(start)
	slices.Sort(moves)
	rate := float64(changes) / took.Seconds()
	t.Logf("measured: with %.0f changes per second, Envoy uses %.2f and the server %.2f processors; a moved pod gets requests after %s (median), %s (maximum)",
		rate, (s.processorTime(t)-envoyBefore).Seconds()/took.Seconds(), (ownProcessorTime(t)-ownBefore).Seconds()/took.Seconds(), moves[len(moves)/2], moves[len(moves)-1])
	if moves[len(moves)/2] > time.Second {
		t.Error("want a median of at most 1s")
	}
}
