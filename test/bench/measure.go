package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

const (
	// servingTimeout is the timeout for all hostnames at the start.
	servingTimeout = 15 * time.Minute
	// idleTime is the time in which an idle controller uses less processor time than idleCPU.
	idleTime = time.Second
	idleCPU  = 30 * time.Millisecond
	// probedRoutes limits the requests at the start, and so the idle connections to Services
	// that the stand-in keeps.
	probedRoutes = 1000
)

// memory is the processes' resident memory in MiB.
type memory struct{ Connector, Envoy, Controller float64 }

// traffic is what a measurement with requests returns.
type traffic struct {
	PerSecond   float64
	Median, P99 time.Duration
	// ConnectorCPU, EnvoyCPU and OtherCPU are the processor time per request in microseconds.
	// OtherCPU belongs to this process: the visitors, the edge and the backends.
	ConnectorCPU, EnvoyCPU, OtherCPU float64
}

// waitUntilIdle waits until the controller uses no processor time, every route has its status, and
// up to probedRoutes of them are served.
func (b *bed) waitUntilIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, servingTimeout)
	defer cancel()
	v := newVisitor(b.address)
	defer v.client.CloseIdleConnections()
	for r := 0; r < b.routes(); r += max(1, b.routes()/probedRoutes) {
		if err := b.waitForAnswer(ctx, v, hostname(r*b.PerRoute), b.answer(r*b.PerRoute), 50*time.Millisecond); err != nil {
			return err
		}
	}
	if err := b.waitForController(ctx); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		var routes gatewayv1.HTTPRouteList
		err := b.kube.List(ctx, &routes)
		return !slices.ContainsFunc(routes.Items, func(r gatewayv1.HTTPRoute) bool { return len(r.Status.Parents) == 0 }), err
	})
}

// waitForController waits until the controller is idle.
func (b *bed) waitForController(ctx context.Context) error {
	before, err := b.controllerCPU()
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, idleTime, false, func(context.Context) (bool, error) {
		now, err := b.controllerCPU()
		used := now - before
		before = now
		return used < idleCPU, err
	})
}

func (b *bed) controllerCPU() (time.Duration, error) {
	p, err := findProcess(b.controller.Binary)
	if err != nil {
		return 0, err
	}
	return p.cpu()
}

// waitForAnswer sends requests for the hostname until it gets the answer.
func (b *bed) waitForAnswer(ctx context.Context, v *visitor, name, want string, interval time.Duration) error {
	for {
		got, err := v.visit(ctx, name)
		if err == nil && got == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s answers for %s: the last answer was %q: %w", want, name, got, err)
		case <-time.After(interval):
		}
	}
}

// visitServices sends requests to every Service, so that both threads of Envoy use it.
func (b *bed) visitServices(ctx context.Context) error {
	const visitors = 16
	var visiting errgroup.Group
	for c := range visitors {
		visiting.Go(func() error {
			v := newVisitor(b.address)
			defer v.client.CloseIdleConnections()
			for r := range b.services() {
				if r%(visitors/4) != c%(visitors/4) {
					continue // each Service is visited through four connections
				}
				if _, err := v.visit(ctx, hostname(r*b.PerRoute)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return visiting.Wait()
}

// measureRequests sends requests for some time.
func (b *bed) measureRequests(ctx context.Context, r request) (any, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	programs := []string{own, b.connectorProgram()}
	if b.DataPlane == v1alpha1.DataPlaneEnvoy {
		programs = append(programs, b.Envoy)
	}
	before, err := cpuOf(programs)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	samples, err := runFor(ctx, r.Load, b.address, r.Duration)
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	after, err := cpuOf(programs)
	if err != nil {
		return nil, err
	}
	perRequest := func(i int) float64 {
		return float64((after[i] - before[i]).Nanoseconds()) / 1000 / float64(len(samples))
	}
	t := traffic{
		PerSecond: float64(len(samples)) / took.Seconds(), Median: percentile(samples, 0.5), P99: percentile(samples, 0.99),
		OtherCPU: perRequest(0), ConnectorCPU: perRequest(1),
	}
	if len(programs) > 2 {
		t.EnvoyCPU = perRequest(2)
	}
	return t, nil
}

func runFor(ctx context.Context, l load, address string, duration time.Duration) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return l.run(ctx, address)
}

// connectorProgram returns the path of the connector.
func (b *bed) connectorProgram() string {
	return cmp.Or(b.Cloudflared, filepath.Join(b.Programs, "connector"))
}

// cpuOf returns the processor time that each program has used.
func cpuOf(programs []string) ([]time.Duration, error) {
	used := make([]time.Duration, len(programs))
	for i, program := range programs {
		p, err := findProcess(program)
		if err == nil {
			used[i], err = p.cpu()
		}
		if err != nil {
			return nil, err
		}
	}
	return used, nil
}

// memory reads how much memory the processes use.
func (b *bed) memory() (m memory, err error) {
	programs := map[string]*float64{b.connectorProgram(): &m.Connector, b.controller.Binary: &m.Controller}
	if b.DataPlane == v1alpha1.DataPlaneEnvoy {
		programs[b.Envoy] = &m.Envoy
	}
	for program, used := range programs {
		p, err := findProcess(program)
		if err == nil {
			*used, err = p.memory()
		}
		if err != nil {
			return m, err
		}
	}
	return m, nil
}
