package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// largeManifests returns a Gateway with 100 ListenerSets of 100 hostnames each, and a route
// for each pair of hostnames.
func largeManifests() []string {
	const sets, hostnames = 100, 100
	all := []string{`
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: class, namespace: infra}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: class, namespace: infra}
spec: {limits: {rulesPerTunnel: 100000, listenersPerNamespace: 100000}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: any, port: 80, protocol: HTTP}]
`}
	for i := range sets {
		namespace := fmt.Sprintf("team-%d", i)
		var listeners []string
		for j := range hostnames {
			listeners = append(listeners, fmt.Sprintf("{name: h%d, hostname: h%d.%s.example.com, port: 80, protocol: HTTP}", j, j, namespace))
		}
		for first := 0; first < hostnames; first += 50 { // a ListenerSet has at most 64 listeners
			all = append(all, fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {name: set-%d, namespace: %s}, spec: {parentRef: {name: shared, namespace: infra}, listeners: [%s]}}`,
				first, namespace, strings.Join(listeners[first:first+50], ", ")))
		}
		all = append(all, fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: %s}, spec: {ports: [{port: 80}]}}", namespace))
		for j := 0; j < hostnames; j += 2 {
			all = append(all, fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: route-%d, namespace: %s}, spec: {parentRefs: [{kind: ListenerSet, name: set-%d}], hostnames: [h%d.%s.example.com, h%d.%s.example.com], rules: [{backendRefs: [{name: web, port: 80}]}]}}`,
				j, namespace, j/50*50, j, namespace, j+1, namespace))
		}
	}
	return all
}

// BenchmarkPages measures the pages of a Gateway with 10,000 hostnames, and how long the first
// page of a snapshot builds the tables.
func BenchmarkPages(b *testing.B) {
	p := planOf(b, largeManifests()...)
	if rows := len(p.NewHostnames().Rows); rows != 10001 {
		b.Fatalf("the table has %d hostnames, want 10001", rows)
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			(&Snapshot{Plan: p}).Hostnames()
		}
	})
	feed := NewFeed()
	feed.Publish(&Snapshot{Plan: p, Time: now})
	s := NewServer(Options{Feed: feed, Hosts: []string{testHost}})
	cookies := ask(s, s.NewLink()).Result().Cookies()
	for name, path := range map[string]string{
		"overview":   "/",
		"all":        "/hostnames",
		"search":     "/hostnames?q=h77.team-9",
		"no match":   "/hostnames?q=nothing",
		"5000 rows":  "/hostnames?limit=5000",
		"hostname":   "/hostname?gateway=infra/shared&name=h5.team-5.example.com",
		"unknown":    "/hostname?gateway=infra/shared&name=h5.taem-5.example.com",
		"namespaces": "/namespaces",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := ask(s, path, func(r *http.Request) { r.AddCookie(cookies[0]) })
				if w.Code != http.StatusOK && name != "unknown" {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
