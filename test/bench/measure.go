package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

const (
	// servingTimeout is the timeout for all hostnames at the start.
	servingTimeout = 15 * time.Minute
	changeTimeout  = time.Minute
	// changePause is the time between two changes. It exceeds the time for which the controller
	// combines changes.
	changePause = 1500 * time.Millisecond
	// Requests that start up to changeWindow after a change begins count as meanwhile,
	// even if the change takes less time.
	changeWindow = 250 * time.Millisecond
)

// result is a table row.
type result struct {
	bedOptions
	requests    float64 // per second
	median, p99 time.Duration
	meanwhile   time.Duration // p99 of other requests during changes
	change      []time.Duration
	connector   float64 // memory in MiB
	envoyBefore float64
	envoyMemory float64
	controller  float64
}

// waitUntilIdle waits until every hostname is served, every route has its status, and the
// controller uses no processor time.
func (b *bed) waitUntilIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, servingTimeout)
	defer cancel()
	v := newVisitor(b.address)
	defer v.client.CloseIdleConnections()
	for h := range b.hostnames {
		if err := b.waitForAnswer(ctx, v, h, b.answer(h), 50*time.Millisecond); err != nil {
			return err
		}
	}
	controller, err := findProcess(filepath.Join(b.programs, "tunnel-gateway"))
	if err != nil {
		return err
	}
	before := 0
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		ticks, err := controller.ticks()
		if err != nil {
			return false, err
		}
		used := ticks - before
		before = ticks
		if used > 3 {
			return false, nil
		}
		var routes gatewayv1.HTTPRouteList
		err = b.kube.List(ctx, &routes)
		return !slices.ContainsFunc(routes.Items, func(r gatewayv1.HTTPRoute) bool { return len(r.Status.Parents) == 0 }), err
	})
}

// waitForAnswer sends requests for the hostname until it gets the answer.
func (b *bed) waitForAnswer(ctx context.Context, v *visitor, h int, want string, interval time.Duration) error {
	for {
		got, err := v.visit(ctx, hostname(h))
		if err == nil && got == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s answers for %s: the last answer was %q: %w", want, hostname(h), got, err)
		case <-time.After(interval):
		}
	}
}

// measure measures requests alone, and then route changes while requests are sent.
func (b *bed) measure(ctx context.Context, o options) (result, error) {
	r := result{bedOptions: b.bedOptions}
	if err := b.measureMemory(&r); err != nil {
		return r, err
	}
	r.envoyBefore = r.envoyMemory
	l := load{connections: o.connections, hostnames: b.hostnames}
	samples, err := runFor(ctx, l, b.address, o.duration)
	if err != nil {
		return r, err
	}
	r.requests = float64(len(samples)) / o.duration.Seconds()
	l.rate = o.rate
	if samples, err = runFor(ctx, l, b.address, o.duration); err != nil {
		return r, err
	}
	r.median, r.p99 = percentile(samples, 0.5), percentile(samples, 0.99)
	if err := b.measureChanges(ctx, o, l, &r); err != nil {
		return r, err
	}
	return r, b.measureMemory(&r)
}

func runFor(ctx context.Context, l load, address string, duration time.Duration) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return l.run(ctx, address)
}

// measureChanges changes routes one after the other.
func (b *bed) measureChanges(ctx context.Context, o options, l load, r *result) error {
	loadContext, stop := context.WithCancel(ctx)
	defer stop()
	var samples []sample
	ended := make(chan error, 1)
	go func() {
		var err error
		samples, err = l.run(loadContext, b.address)
		ended <- err
	}()
	profiled := b.profile(ctx, o)
	v := newVisitor(b.address)
	defer v.client.CloseIdleConnections()
	var starts []time.Time
	for i := range o.changes {
		start := time.Now()
		took, err := b.change(ctx, v, i*b.routes()/o.changes)
		if err != nil {
			return err
		}
		starts, r.change = append(starts, start), append(r.change, took)
		time.Sleep(changePause)
	}
	stop()
	if err := <-ended; err != nil {
		return err
	}
	samples = slices.DeleteFunc(samples, func(s sample) bool {
		for i, start := range starts {
			if !s.start.Before(start) && s.start.Before(start.Add(max(changeWindow, r.change[i]))) {
				return false
			}
		}
		return true
	})
	r.meanwhile = percentile(samples, 0.99)
	slices.Sort(r.change)
	return <-profiled
}

// change sends the requests for a route's hostnames to the next Service. It returns the
// time from the start of the write to the first response from that Service.
func (b *bed) change(ctx context.Context, v *visitor, index int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	b.forwards[index] = (b.forwards[index] + 1) % b.routes()
	to := b.forwards[index]
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"rules": forwardTo(serviceName(to))}})
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := b.kube.Patch(ctx, b.route(index), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return 0, err
	}
	err = b.waitForAnswer(ctx, v, index*hostnamesPerRoute, b.addressOf(to), time.Millisecond)
	return time.Since(start), err
}

// profile writes a CPU profile of the controller, and its metrics before and after it, if
// the options name a directory. The result follows when the profile ends.
func (b *bed) profile(ctx context.Context, o options) <-chan error {
	ended := make(chan error, 1)
	if o.profile == "" {
		ended <- nil
		return ended
	}
	go func() {
		var errs []error
		for _, page := range []struct{ path, suffix string }{
			{"metrics", "before.txt"},
			{fmt.Sprintf("debug/pprof/profile?seconds=%d", time.Duration(o.changes)*changePause/time.Second), "pprof"},
			{"metrics", "after.txt"},
		} {
			file := fmt.Sprintf("%s-%d.%s", b.dataPlane, b.hostnames, page.suffix)
			errs = append(errs, download(ctx, "http://"+metricsAddress+"/"+page.path, filepath.Join(o.profile, file)))
		}
		ended <- errors.Join(errs...)
	}()
	return ended
}

func download(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(path, body, 0o600)
}

// measureMemory reads how much memory the processes use.
func (b *bed) measureMemory(r *result) error {
	programs := map[string]*float64{
		cmp.Or(b.cloudflared, filepath.Join(b.programs, "connector")): &r.connector,
		filepath.Join(b.programs, "tunnel-gateway"):                   &r.controller,
	}
	if b.dataPlane == v1alpha1.DataPlaneEnvoy {
		programs[b.envoy] = &r.envoyMemory
	}
	for program, memory := range programs {
		p, err := findProcess(program)
		if err != nil {
			return err
		}
		if *memory, err = p.memory(); err != nil {
			return err
		}
	}
	return nil
}
