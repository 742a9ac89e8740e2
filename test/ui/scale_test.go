package ui

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// BenchmarkCluster measures the page for a cluster with 10,000 hostnames: how long the first link
// takes, how long a change of a route takes until the page shows it, and the memory after 20
// changes.
func BenchmarkCluster(b *testing.B) {
	c, err := cluster.Start(b.Context(), cluster.Options{WithoutControllers: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Stop() })
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	if err := c.Kubeconfig(kubeconfig); err != nil {
		b.Fatal(err)
	}
	c.Config.QPS = -1
	kube, err := client.New(c.Config, client.Options{Scheme: manifest.Scheme()})
	if err != nil {
		b.Fatal(err)
	}
	createObjects(b, kube)

	started := time.Now()
	p := serve(b, []string{"KUBECONFIG=" + kubeconfig})
	b.ReportMetric(time.Since(started).Seconds(), "s/start")
	visitor := newVisitor(b, p)
	var waits []time.Duration
	for i := range 20 {
		waits = append(waits, changeAndWait(b, kube, visitor, i))
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Milliseconds()), "ms/change")
	b.ReportMetric(float64(waits[len(waits)-1].Milliseconds()), "ms/slowest-change")
	b.ReportMetric(p.peakMiB(b), "MiB/peak")
	b.ReportMetric(0, "ns/op")
}

// createObjects creates a Gateway, 100 namespaces with 100 hostnames each, and a route for each
// hostname.
func createObjects(b *testing.B, kube client.Client) {
	b.Helper()
	parts := []string{`
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: class, namespace: default}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: class, namespace: default}
spec: {dataPlane: Envoy, limits: {rulesPerTunnel: 20000, listenersPerNamespace: 200}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: default}
spec:
  gatewayClassName: cloudflare-tunnel
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: any, port: 80, protocol: HTTP, hostname: "*.example.com"}]
`}
	for i := range 100 {
		parts = append(parts, teamManifests(fmt.Sprintf("team-%d", i)))
	}
	for _, part := range parts {
		set, err := manifest.Parse("objects", []byte(part), manifest.Options{})
		if err != nil {
			b.Fatal(err)
		}
		create(b, kube, set.Objects)
	}
}

// teamManifests returns a namespace with two ListenerSets, 100 routes and ten Services.
func teamManifests(namespace string) string {
	var all strings.Builder
	fmt.Fprintf(&all, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", namespace)
	for set := range 2 {
		var listeners []string
		for i := range 50 {
			listeners = append(listeners, fmt.Sprintf("{name: h%d, hostname: h%d-%d.%s.example.com, port: 80, protocol: HTTP}", i, set, i, namespace))
		}
		fmt.Fprintf(&all, "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {name: set-%d, namespace: %s}, spec: {parentRef: {name: shared, namespace: default}, listeners: [%s]}}\n",
			set, namespace, strings.Join(listeners, ", "))
		for i := range 50 {
			fmt.Fprintf(&all, "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: route-%d-%d, namespace: %s}, spec: {parentRefs: [{kind: ListenerSet, name: set-%d}], hostnames: [h%d-%d.%s.example.com], rules: [{backendRefs: [{name: web-%d, port: 80}]}]}}\n",
				set, i, namespace, set, set, i, namespace, i%10)
		}
	}
	for i := range 10 {
		fmt.Fprintf(&all, "---\n{apiVersion: v1, kind: Service, metadata: {name: web-%d, namespace: %s}, spec: {ports: [{port: 80}]}}\n", i, namespace)
	}
	return all.String()
}

// create creates the objects, ten at a time after the first one, which can be a namespace.
func create(b *testing.B, kube client.Client, objects []client.Object) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(10)
	for i, object := range objects {
		if i == 0 {
			if err := kube.Create(ctx, object); err != nil {
				b.Fatal(err)
			}
			continue
		}
		group.Go(func() error { return kube.Create(ctx, object) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// visitor opens pages without a browser.
type visitor struct {
	http.Client
	site string
}

func newVisitor(b *testing.B, p *page) *visitor {
	b.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	v := &visitor{http.Client{Jar: jar}, p.site}
	v.get(b, p.link)
	return v
}

func (v *visitor) get(b *testing.B, link string) string {
	b.Helper()
	response, err := v.Get(link) //nolint:noctx // the benchmark has no deadline
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("GET %s: %s, %v", link, response.Status, err)
	}
	return string(body)
}

// changeAndWait changes a route's path and waits until its hostname's page shows it.
func changeAndWait(b *testing.B, kube client.Client, v *visitor, i int) time.Duration {
	b.Helper()
	var route gatewayv1.HTTPRoute
	if err := kube.Get(b.Context(), client.ObjectKey{Namespace: "team-7", Name: "route-0-0"}, &route); err != nil {
		b.Fatal(err)
	}
	path := fmt.Sprintf("/changed-%d", i)
	kind := gatewayv1.PathMatchPathPrefix
	route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &kind, Value: &path}}}
	if err := kube.Update(b.Context(), &route); err != nil {
		b.Fatal(err)
	}
	started, poll := time.Now(), time.NewTicker(20*time.Millisecond)
	defer poll.Stop()
	for !strings.Contains(v.get(b, v.site+"/hostname?gateway=default/shared&name=h0-0.team-7.example.com"), path) {
		if time.Since(started) > timeout {
			b.Fatal("the page does not show the change")
		}
		<-poll.C
	}
	return time.Since(started)
}

var peak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMiB returns the largest memory that the program has had.
func (p *program) peakMiB(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	kib, err := strconv.Atoi(string(peak.FindSubmatch(status)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}
