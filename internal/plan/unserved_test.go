package plan_test

import (
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

func TestUnservedRequestsHaveASuggestion(t *testing.T) {
	const manifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners:
  - {name: a, hostname: "*.example.com", port: 80, protocol: HTTP}
  - {name: b, hostname: www.example.net, port: 80, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: shared}]
  hostnames: [shop.example.com, www.example.net]
  rules: [{matches: [{path: {value: /cart}}], backendRefs: [{name: web, port: 80}]}]
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}
`
	p := planOf(t, manifests)
	for host, want := range map[string]string{
		"shop.example.com":  "",
		"shp.example.com":   "no route answers shp.example.com/cart; did you mean shop.example.com?",
		"other.example.com": "no route answers other.example.com/cart",
		"shop.exmple.com":   "shop.exmple.com is not served; did you mean shop.example.com?",
		"team.exampel.com":  "team.exampel.com is not served; did you mean team.example.com?",
		"ww.example.net":    "ww.example.net is not served; did you mean www.example.net?",
		"example.org":       "example.org is not served",
	} {
		if got := p.Unserved(routing.Request{Host: host, Path: "/cart"}); got != want {
			t.Errorf("%s: Unserved = %q, want %q", host, got, want)
		}
	}
	if got, want := p.Unserved(routing.Request{Host: "shop.example.com", Path: "/car"}), "no route answers shop.example.com/car"; got != want {
		t.Errorf("Unserved = %q, want %q", got, want)
	}
}
