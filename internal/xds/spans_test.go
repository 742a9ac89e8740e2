package xds_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// attributes returns the attributes of a span by key.
func attributes(s *tracev1.Span) map[string]string {
	values := map[string]string{}
	for _, a := range s.Attributes {
		values[a.Key] = a.Value.GetStringValue()
	}
	return values
}

// Each request has one span with the documented attributes.
func TestSpanDescribesTheRequest(t *testing.T) {
	b := newTracedBed(t)
	b.apply(t, b.settings(100, v1alpha1.TraceParentIgnored))
	b.send(t, "/app/cart?token=secret")
	b.await(t, 1)
	b.send(t, "/none?token=secret")
	spans := b.await(t, 2)
	name := fmt.Sprintf("shop/web:%d", b.backend.ServicePort)
	common := map[string]string{
		"component": "proxy", "downstream_cluster": "-", "http.method": "GET", "http.protocol": "HTTP/1.1", "node_id": "connector", "zone": "",
		"peer.address": "127.0.0.1", "request_size": "0", "server.address": hostname, "user_agent": "-",
	}
	for i, want := range []map[string]string{
		{
			"http.url": hostname + "/app/cart", "grpc.path": "/app/cart", "http.status_code": "200", "response_flags": "-", "response_size": "4",
			"tunnel_gateway.route": "HTTPRoute team/app rule 0", "tunnel_gateway.backend": name,
		},
		{"http.url": hostname + "/none", "grpc.path": "/none", "http.status_code": "404", "response_flags": "NR", "response_size": "0"},
	} {
		for key, value := range common {
			want[key] = value
		}
		got := attributes(spans[i])
		if cluster := got["upstream_cluster"]; i == 0 && (!strings.HasPrefix(cluster, "s.shop.web.") || got["upstream_cluster.name"] != cluster) {
			t.Errorf("the cluster is %q", cluster)
		}
		delete(got, "upstream_cluster")
		delete(got, "upstream_cluster.name")
		for key := range want {
			if got[key] != want[key] {
				t.Errorf("span %d: the attribute %s is %q, want %q", i, key, got[key], want[key])
			}
			delete(got, key)
		}
		if len(got) > 0 {
			t.Errorf("span %d: further attributes %v", i, got)
		}
	}
}

// The name of a span is the name of the route.
func TestSpanIsNamedAfterTheRoute(t *testing.T) {
	b := newTracedBed(t)
	b.apply(t, b.settings(100, v1alpha1.TraceParentIgnored))
	b.send(t, "/app")
	b.await(t, 1)
	b.send(t, "/none")
	spans := b.await(t, 2)
	for i, want := range []string{"HTTPRoute team/app rule 0", "ingress"} {
		if spans[i].Name != want || spans[i].Kind != tracev1.Span_SPAN_KIND_SERVER || len(spans[i].Events) > 0 {
			t.Errorf("the span is %v, want the name %q", spans[i], want)
		}
	}
}

// Spans have nothing by which a visitor or a backend could be impersonated or identified.
// Envoy has several attributes for gRPC, which a request with the content type gets. The
// message of a gRPC error cannot be left out.
func TestSpansHaveNoSecrets(t *testing.T) {
	b := newTracedBed(t)
	b.apply(t, b.settings(100, v1alpha1.TraceParentTrusted))
	b.backend.response = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\ngrpc-status: 16\r\ngrpc-message: no%20permission\r\n" +
		"Set-Cookie: canary=1\r\nLocation: /canary\r\nX-Envoy-Canary: canary\r\nServer: canary\r\n\r\ncanary"
	lines := []string{
		"X-Forwarded-For: 203.0.113.77", "CF-Connecting-IP: 203.0.113.77", "Content-Type: application/grpc+canary", "Grpc-Timeout: 1S       canary",
		"X-Request-Id: " + strings.Repeat("i", 64) + "canary", "X-Client-Trace-Id: " + strings.Repeat("c", 64) + "canary", "Baggage: a=canary",
	}
	for _, name := range []string{
		"Cookie", "Authorization", "Proxy-Authorization", "Cf-Access-Jwt-Assertion", "Cf-Access-Client-Secret", "User-Agent", "Referer", "Origin", "X-Api-Key",
		"X-Envoy-Downstream-Service-Cluster", "X-Envoy-Downstream-Service-Node", "X-Envoy-Force-Trace", "X-Envoy-Decorator-Operation", "X-Envoy-Original-Path",
		"X-Forwarded-Host", "X-Forwarded-User", "X-B3-TraceId", "X-Ot-Span-Context", "Grpc-Status", "Grpc-Message", "Forwarded", "X-Real-Ip",
	} {
		lines = append(lines, name+": canary")
	}
	targets := []string{"/app?canary", "/app?a=canary&b=%63anary", "/none?canary", "/app;x?canary"}
	for i, target := range targets {
		b.send(t, target, lines...)
		b.await(t, i+1)
	}
	if got := attributes(b.spans()[0])["grpc.message"]; got != "no%20permission" {
		t.Errorf("grpc.message is %q", got)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, resource := range b.resources {
		text := prototext.Format(resource)
		for _, secret := range []string{"canary", "203.0.113"} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("a span contains %s: …%s", secret, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
}

// An attribute is short for every request.
func TestAttributesAreShort(t *testing.T) {
	b := newTracedBed(t)
	b.apply(t, b.settings(100, v1alpha1.TraceParentIgnored))
	long := strings.Repeat("x", 10_000)
	b.send(t, "/app/"+long+"?"+long, "Content-Type: application/grpc"+long, "Grpc-Timeout: "+long, "X-Request-Id: "+long, "X-Client-Trace-Id: "+long, "User-Agent: "+long)
	for key, value := range attributes(b.await(t, 1)[0]) {
		if len(value) > 512 {
			t.Errorf("%s has %d bytes", key, len(value))
		}
	}
}

// The attributes are about the request that the backend got. A request that Envoy repeats
// has one span.
func TestSpanOfARepeatedRequest(t *testing.T) {
	b := newTracedBed(t)
	table := tableFor(b.backend.Backend)
	table.Telemetry.Tracing = b.settings(100, v1alpha1.TraceParentIgnored)
	forward := table.Groups[0].Entries[0].Action.Forward
	forward.Retry = &routing.Retry{Codes: []int{http.StatusServiceUnavailable}, Attempts: 2}
	forward.Filters = &routing.Filters{Rewrite: routing.Rewrite{Hostname: "internal.example.com", Path: &routing.PathChange{Value: "/internal"}}}
	b.backend.response = strings.Replace(plainResponse, "200 OK", "503 Busy", 1)
	b.publish(t, publicationOf(1, table))
	b.awaitAcknowledged(t, 1)
	await(t, "port for requests", func() bool { return listens(b.open) })
	const requests = 5
	for range requests {
		if status := b.send(t, "/app/cart?token=secret"); status != http.StatusServiceUnavailable {
			t.Errorf("the status is %d", status)
		}
	}
	b.await(t, requests)
	if got := len(b.backend.requests); got != 3*requests {
		t.Errorf("the backend got %d requests, want %d", got, 3*requests)
	}
	values := attributes(b.spans()[0])
	if got, want := []string{values["http.url"], values["response_flags"], values["http.status_code"]}, []string{"internal.example.com/internal", "URX", "503"}; !slices.Equal(got, want) {
		t.Errorf("the attributes are %v, want %v", got, want)
	}
}
