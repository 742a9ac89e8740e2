package main

import (
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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

const (
	changeTimeout = time.Minute
	// changePause is the time between two changes. It exceeds the time for which the controller
	// combines changes.
	changePause = 1500 * time.Millisecond
	// Requests that start up to changeWindow after a change begins count as meanwhile,
	// even if the change takes less time.
	changeWindow = 250 * time.Millisecond
)

// changes is what a measurement with route changes returns.
type changes struct {
	// Backend is about routes that get another Service, and Hostname about new routes with a new hostname.
	Backend, Hostname changeTimes
	// P99 is that of other requests while routes get another Service. It is 0 without other requests.
	P99 time.Duration
}

// changeTimes has values for each change.
type changeTimes struct {
	// Served is the time from the write to the first response from the route's present Service.
	Served []time.Duration
	// CPU is the controller's processor time, with everything that follows the change in the pause.
	CPU []time.Duration
}

// measureChanges changes and creates routes one after the other. Unless the request's load has no
// connections, other requests are sent meanwhile.
func (b *bed) measureChanges(ctx context.Context, r request) (any, error) {
	loadContext, stop := context.WithCancel(ctx)
	defer stop()
	var samples []sample
	ended := make(chan error, 1)
	go func() {
		var err error
		samples, err = r.Load.run(loadContext, b.address)
		ended <- err
	}()
	profiled := b.profile(ctx, r)
	v := newVisitor(b.address)
	defer v.client.CloseIdleConnections()
	var c changes
	var starts []time.Time
	for range r.Changes {
		starts = append(starts, time.Now())
		if err := b.measureChange(ctx, &c.Backend, func(ctx context.Context) error { return b.change(ctx, v) }); err != nil {
			return nil, err
		}
	}
	// New hostnames come last, because the garbage that they leave would be collected during changes of Services.
	for range r.Changes {
		if err := b.measureChange(ctx, &c.Hostname, func(ctx context.Context) error { return b.add(ctx, v) }); err != nil {
			return nil, err
		}
	}
	stop()
	if err := <-ended; err != nil {
		return nil, err
	}
	samples = slices.DeleteFunc(samples, func(s sample) bool {
		for i, start := range starts {
			if !s.start.Before(start) && s.start.Before(start.Add(max(changeWindow, c.Backend.Served[i]))) {
				return false
			}
		}
		return true
	})
	c.P99 = percentile(samples, 0.99)
	return c, errors.Join(<-profiled, b.removeAdded(ctx))
}

// measureChange makes one change, and waits until the controller has done what follows.
func (b *bed) measureChange(ctx context.Context, c *changeTimes, change func(context.Context) error) error {
	before, err := b.controllerCPU()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	start := time.Now()
	if err := change(limited); err != nil {
		return err
	}
	took := time.Since(start)
	time.Sleep(changePause)
	after, err := b.controllerCPU()
	c.Served, c.CPU = append(c.Served, took), append(c.CPU, after-before)
	return err
}

// change changes the next route, and waits for the first response from its new Service.
func (b *bed) change(ctx context.Context, v *visitor) error {
	route, err := b.changeRoute(ctx)
	if err != nil {
		return err
	}
	return b.waitForAnswer(ctx, v, hostname(route*b.PerRoute), b.answer(route*b.PerRoute), time.Millisecond)
}

// add creates a route with a new hostname, and waits for the first response.
func (b *bed) add(ctx context.Context, v *visitor) error {
	b.added++
	route, service := b.route(0), b.added%b.services()
	route.Name = addedName(b.added)
	name := route.Name + ".example.com"
	route.Spec.Hostnames, route.Spec.Rules = []gatewayv1.Hostname{gatewayv1.Hostname(name)}, forwardTo(serviceName(service))
	if err := b.kube.Create(ctx, route); err != nil {
		return err
	}
	return b.waitForAnswer(ctx, v, name, b.addressOf(service), time.Millisecond)
}

// removeAdded deletes the routes with new hostnames, so that later measurements have as many hostnames as
// before.
func (b *bed) removeAdded(ctx context.Context) error {
	for ; b.added > 0; b.added-- {
		route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: addedName(b.added)}}
		if err := b.kube.Delete(ctx, route); err != nil {
			return err
		}
	}
	return b.waitForController(ctx)
}

func addedName(i int) string { return fmt.Sprintf("added-%d", i) }

// changeRoute sends the requests for a route's hostnames to the next Service, and returns the
// index of the route. Successive changes are far apart in the table.
func (b *bed) changeRoute(ctx context.Context) (int, error) {
	const spread = 15
	index := b.changed % spread * b.routes() / spread
	b.changed++
	to := (b.forwards[index] + 1) % b.services()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"rules": forwardTo(serviceName(to))}})
	if err != nil {
		return 0, err
	}
	route := b.route(index)
	b.forwards[index] = to
	return index, b.kube.Patch(ctx, route, client.RawPatch(types.MergePatchType, patch))
}

// restart stops the controller and, with the data plane Envoy, kills Envoy, and changes a
// route. It returns the time from the start of the controller until the change and other routes' hostnames
// are served.
func (b *bed) restart(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, servingTimeout)
	defer cancel()
	if err := b.stopController(); err != nil {
		return 0, err
	}
	route, err := b.changeRoute(ctx)
	if err != nil {
		return 0, err
	}
	if b.DataPlane == v1alpha1.DataPlaneEnvoy {
		if err := b.killEnvoy(ctx); err != nil {
			return 0, err
		}
	}
	v := newVisitor(b.address)
	defer v.client.CloseIdleConnections()
	start := time.Now()
	if err := b.startController(); err != nil {
		return 0, err
	}
	for _, index := range []int{route, 0, b.routes() / 2, b.routes() - 1} {
		if err := b.waitForAnswer(ctx, v, hostname(index*b.PerRoute), b.answer(index*b.PerRoute), 5*time.Millisecond); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	return took, b.waitForController(ctx)
}

// killEnvoy kills Envoy. The node starts it again.
func (b *bed) killEnvoy(ctx context.Context) error {
	var pods corev1.PodList
	if err := b.kube.List(ctx, &pods, client.InNamespace(cluster.ControllerNamespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := b.node.KillContainer(ctx, client.ObjectKeyFromObject(&pods.Items[i]), "envoy"); err != nil {
			return err
		}
	}
	return nil
}

// profile writes a CPU profile of the controller, its metrics before and after it, and a profile of
// its heap, if the request names a directory. The result follows when the profile ends.
func (b *bed) profile(ctx context.Context, r request) <-chan error {
	ended := make(chan error, 1)
	if r.Profile == "" {
		ended <- nil
		return ended
	}
	go func() {
		var errs []error
		for _, page := range []struct{ path, suffix string }{
			{"metrics", "before.txt"},
			{fmt.Sprintf("debug/pprof/profile?seconds=%d", 2*time.Duration(r.Changes)*changePause/time.Second), "pprof"},
			{"metrics", "after.txt"},
			{"debug/pprof/heap", "heap.pprof"},
		} {
			file := fmt.Sprintf("%s-%d.%s", b.DataPlane, b.Hostnames, page.suffix)
			errs = append(errs, download(ctx, "http://"+metricsAddress+"/"+page.path, filepath.Join(r.Profile, file)))
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
