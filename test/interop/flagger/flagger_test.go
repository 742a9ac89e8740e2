package flagger

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// releases are the tests in which Flagger releases a version.
var releases = map[string]func(*testing.T, *bed){
	"advances to all visitors":                        advances,
	"is rolled back if a check fails":                 isRolledBack,
	"advances while its metrics are good":             advancesByMetrics,
	"is rolled back if requests fail":                 isRolledBackForErrors,
	"is rolled back if it is slow":                    isRolledBackForLatency,
	"is rolled back if it gets no requests":           isRolledBackWithoutRequests,
	"keeps a visitor at the new version":              keepsVisitors,
	"mirrors requests before visitors get it":         mirrorsRequests,
	"stops the site with ingress rules":               stopsTheSite,
	"is refused by the policy, and the site stays up": isRefused,
}

// TestFlagger releases applications concurrently, because Flagger takes at least ten seconds
// for each step.
func TestFlagger(t *testing.T) {
	b := startBed(t)
	t.Run("a release", func(t *testing.T) {
		for name, test := range releases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, b)
			})
		}
	})
	t.Run("an autoscaler knows the load", func(t *testing.T) { knowsTheLoad(t, b) })
}

// expectVersion checks that every visitor with the cookies gets the version.
func (c *canary) expectVersion(t *testing.T, want string, cookies ...*http.Cookie) {
	t.Helper()
	for range 50 {
		if got := c.visit(t.Context(), cookies...).text; got != want {
			t.Fatalf("%s: a visitor got %s, want version %s", c.namespace, got, want)
		}
	}
}

func advances(t *testing.T, b *bed) {
	c := b.newCanary(t, "advancing", setup{})
	v := c.startVisitors(t)
	c.release(t)
	c.waitForStatus(t, "canaryWeight", "10")
	c.waitForStatus(t, "canaryWeight", "50")
	c.waitForPhase(t, "Succeeded")
	c.expectVersion(t, "2")
	c.checkParents(t)
	// Flagger writes the route for each step, and not because the API server or the controller
	// has changed it: with the weights 0, 10, 50 and 0.
	if got := c.route(t).Generation; got != 4 {
		t.Errorf("the route has generation %d, want 4", got)
	}
	v.check(t, "1", "2")
}

func isRolledBack(t *testing.T, b *bed) {
	c := b.newCanary(t, "failing", setup{
		check: "fail", parent: map[string]any{"name": "envoy", "namespace": "platform", "sectionName": "web"},
		analysis: map[string]any{"stepWeights": []any{int64(50)}},
	})
	v := c.startVisitors(t)
	c.release(t)
	c.waitForPhase(t, "Failed")
	c.expectVersion(t, "1")
	c.checkParents(t)
	v.check(t, "1", "2")
}

func keepsVisitors(t *testing.T, b *bed) {
	c := b.newCanary(t, "affine", setup{
		parent: map[string]any{"name": "envoy", "namespace": "platform", "port": int64(80)},
		analysis: map[string]any{
			"stepWeights":     []any{int64(50)},
			"sessionAffinity": map[string]any{"cookieName": "shop-version"},
		},
	})
	v := c.startVisitors(t)
	c.release(t)
	c.waitForStatus(t, "canaryWeight", "50")
	var cookie *http.Cookie
	eventually(t, "a visitor gets the new version and a cookie", func() (bool, string) {
		a := c.visit(t.Context())
		if a.text == "2" && len(a.cookies) == 1 {
			cookie = a.cookies[0]
		}
		return cookie != nil, a.text
	})
	if cookie.Name != "shop-version" || cookie.MaxAge <= 0 {
		t.Errorf("the cookie is %s", cookie)
	}
	other := &http.Cookie{Name: "theme", Value: "dark"} // #nosec G124 -- a browser sends only the name and the value
	c.expectVersion(t, "2", other, cookie)
	c.waitForPhase(t, "Succeeded")
	eventually(t, "the cookie is deleted after the release", func() (bool, string) {
		a := c.visit(t.Context(), cookie)
		return a.text == "2" && len(a.cookies) == 1 && a.cookies[0].MaxAge < 0, a.text
	})
	c.checkParents(t)
	v.check(t, "1", "2")
}

// listenerSet is the ListenerSet for the team in [mirrorsRequests].
const listenerSet = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: shop, namespace: mirrored}
spec:
  parentRef: {name: envoy, namespace: platform}
  listeners: [{name: shop, hostname: mirrored.example.com, port: 80, protocol: HTTP}]
`

func mirrorsRequests(t *testing.T, b *bed) {
	c := b.newCanary(t, "mirrored", setup{
		objects:  listenerSet,
		parent:   map[string]any{"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": "shop", "sectionName": "shop"},
		analysis: map[string]any{"stepWeights": nil, "iterations": int64(2), "mirror": true},
	})
	v := c.startVisitors(t)
	c.release(t)
	eventually(t, "the new version receives copies", func() (bool, string) {
		received, err := c.received(t.Context())
		return received > 10, fmt.Sprintf("%d (%v)", received, err)
	})
	if answers := v.answers(); len(answers) != 1 || answers["1"] == 0 {
		t.Errorf("while requests are mirrored, the answers are %v, want only version 1", answers)
	}
	b.awaitScrape(t)
	if counted, err := b.query(t.Context(), `envoy_tunnel_gateway_requests_total{backend="mirrored/shop-canary:8080"}`); err != nil || len(counted) > 0 {
		t.Errorf("the metrics count mirrored requests: %v (%v)", counted, err)
	}
	c.waitForPhase(t, "Succeeded")
	c.expectVersion(t, "2")
	c.checkParents(t)
	v.check(t, "1", "2")
}

// stopsTheSite shows what the policy prevents. Flagger waits, because the route's
// condition is False.
func stopsTheSite(t *testing.T, b *bed) {
	c := b.newCanary(t, "unprotected", setup{gateway: "ingress-rules"})
	c.checkParents(t)
	c.release(t)
	c.waitForWarning(t, "parent ingress-rules is not ready (status: False")
	if got := c.visit(t.Context()).text; got != "status 500" {
		t.Errorf("a visitor got %s, want status 500", got)
	}
	c.waitForPhase(t, "Progressing")
}

func isRefused(t *testing.T, b *bed) {
	c := b.newCanary(t, "protected", setup{gateway: "ingress-rules", label: "ingress-rules"})
	v := c.startVisitors(t)
	c.release(t)
	c.waitForWarning(t, "a rule has several backendRefs with a weight above 0")
	served := v.answers()["1"]
	eventually(t, "visitors still reach the site", func() (bool, string) {
		return v.answers()["1"] > served+int(time.Second/visitInterval), ""
	})
	c.waitForPhase(t, "Progressing")
	v.check(t, "1")
	for _, warning := range c.warnings(t) {
		if strings.Contains(warning, "is not ready (status") {
			t.Errorf("the policy let a route pass that is not accepted: %s", warning)
		}
	}
}
