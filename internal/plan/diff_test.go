package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

const ourName = "tunnelgateway.dev/controller"

// cloud is an account with one tunnel, which holds what a Gateway of
// old.example.com gets.
type cloud struct {
	*fake.Provider
	id provider.TunnelID
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{Provider: fake.New()}
	tunnel, err := c.CreateTunnel(t.Context(), "known")
	if err != nil {
		t.Fatal(err)
	}
	c.id = tunnel.ID
	c.SetDocument(c.id, *planOf(t, compared("old.example.com", "")).Gateways[0].Config)
	c.ResetCalls()
	return c
}

func (c *cloud) open(context.Context, *gateway.Settings) (string, provider.Provider, error) {
	return fake.AccountID, c.Provider, nil
}

// record is the annotation of a Gateway that has the tunnel.
func (c *cloud) record(change func(*state.Record)) string {
	r := state.Record{Controller: ourName, Account: fake.AccountID, Tunnel: c.id, Origin: state.OriginCreated}
	if change != nil {
		change(&r)
	}
	return annotation(state.RecordAnnotation, r.String())
}

func annotation(name, value string) string { return fmt.Sprintf("    %s: %q\n", name, value) }

// compared is a Gateway of one hostname, with annotations.
func compared(hostname, annotations string) string {
	return `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: g
  namespace: infra
  annotations:
    example.com/a: b
` + annotations + `
spec:
  gatewayClassName: cloudflare-tunnel
  infrastructure: {parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: own}}
  listeners: [{name: a, hostname: ` + hostname + `, port: 80, protocol: HTTP}]
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: own, namespace: infra}
spec: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: infra}
spec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}
`
}

// settled is the same with settings for its tunnel.
func settled(hostname, annotations, tunnel string) string {
	return strings.Replace(compared(hostname, annotations), "spec: {}", "spec: {tunnel: {"+tunnel+"}}", 1)
}

func wantDiff(t *testing.T, p *plan.Plan, want string) {
	t.Helper()
	var out strings.Builder
	if err := p.WriteDiff(&out, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), out.String()); diff != "" {
		t.Errorf("the output differs (-want +got):\n%s", diff)
	}
}

const (
	change = `--- tunnel %s (version 1)
+++ Gateway infra/g
@@ -1,4 +1,4 @@
 ingress:
-- hostname: old.example.com
+- hostname: new.example.com
   service: http://web.infra.svc.cluster.local:80
 - service: http_status:404
`
	addition = `--- new tunnel
+++ Gateway infra/g
@@ -0,0 +1,4 @@
+ingress:
+- hostname: new.example.com
+  service: http://web.infra.svc.cluster.local:80
+- service: http_status:404
`
)

func TestCompare(t *testing.T) {
	c := newCloud(t)
	known := func() string {
		document, _ := c.Document(c.id)
		return document.Hash()
	}()
	change := fmt.Sprintf(change, c.id)
	gone := provider.TunnelID("11111111-1111-4111-8111-111111111111")
	adopted := func(r *state.Record) { r.Origin = state.OriginAdopted }
	foreign := "Gateway infra/g: nothing is pushed before the annotation tunnelgateway.dev/takeover permits it: the tunnel holds a configuration that the controller did not write\n"
	for name, test := range map[string]struct {
		manifests, want string
		different       bool
	}{
		"no difference": {compared("old.example.com", c.record(nil)), "Gateway infra/g: no difference\n", false},
		"a difference":  {compared("new.example.com", c.record(nil)), change, true},
		"no record": {compared("new.example.com", ""),
			"Gateway infra/g: new tunnel: the Gateway has no record of one (annotation tunnelgateway.dev/tunnel)\n" + addition, true},
		"a record without a tunnel": {compared("new.example.com", c.record(func(r *state.Record) { r.Tunnel = "" })),
			"Gateway infra/g: new tunnel: the Gateway has no record of one (annotation tunnelgateway.dev/tunnel)\n" + addition, true},
		"a recorded tunnel that is gone": {compared("new.example.com", c.record(func(r *state.Record) { r.Tunnel = gone })),
			`Gateway infra/g: tunnel "` + string(gone) + `", which the annotation tunnelgateway.dev/tunnel names, does not exist any more; a new one is made unless another of its name is there` + "\n" + addition, true},
		"an adopted tunnel that is gone": {settled("new.example.com", c.record(func(r *state.Record) { r.Tunnel, r.Origin = gone, state.OriginAdopted }), "existing: {id: "+string(gone)+"}"),
			`Gateway infra/g: tunnel "` + string(gone) + `", which the annotation tunnelgateway.dev/tunnel names, does not exist any more; nothing is pushed until the settings name another in tunnel.existing.id` + "\n" + addition, true},
		"paused, with a difference": {compared("new.example.com", c.record(nil)+annotation(state.PausedAnnotation, "true")),
			"Gateway infra/g: paused: nothing is pushed before the annotation tunnelgateway.dev/paused is taken off\n" + change, true},
		"paused, without one": {compared("old.example.com", c.record(nil)+annotation(state.PausedAnnotation, "true")), "Gateway infra/g: no difference\n", false},
		"contested": {compared("new.example.com", c.record(func(r *state.Record) { r.Contested = true })),
			"Gateway infra/g: nothing is pushed: somebody else kept changing the tunnel; see the annotation tunnelgateway.dev/paused\n" + change, true},
		"to be adopted":                     {settled("new.example.com", "", "existing: {id: "+string(c.id)+"}"), foreign + change, true},
		"to be adopted, as it is":           {settled("old.example.com", "", "existing: {id: "+string(c.id)+"}"), "Gateway infra/g: no difference\n", false},
		"to be adopted, which is permitted": {settled("new.example.com", annotation(state.TakeoverAnnotation, "true"), "existing: {id: "+string(c.id)+"}"), change, true},
		"adopted, with a foreign document":  {settled("new.example.com", c.record(adopted), "existing: {id: "+string(c.id)+"}"), foreign + change, true},
		"adopted, with our document": {settled("new.example.com", c.record(func(r *state.Record) { r.Origin, r.Hash = state.OriginAdopted, known }), "existing: {id: "+string(c.id)+"}"),
			change, true},
		"found by its name": {settled("new.example.com", "", "name: known"), change, true},
		"to be made with a name": {settled("new.example.com", "", "name: unknown"),
			"Gateway infra/g: new tunnel: account " + fake.AccountID + " has none called unknown\n" + addition, true},
		"held by another controller": {compared("new.example.com", c.record(func(r *state.Record) { r.Controller = "example.com/other" })),
			"Gateway infra/g: nothing is pushed: controller example.com/other holds the Gateway\n", false},
		"not accepted": {refused, "Gateway infra/refused: nothing is pushed: not accepted: UnsupportedAddress: spec.addresses[0] asks for \"192.0.2.1\"; the address of a tunnel is given by Cloudflare, so remove the value.\n", false},
		"being deleted": {strings.Replace(compared("new.example.com", c.record(nil)), "  name: g\n", "  name: g\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n", 1),
			"Gateway infra/g: nothing is pushed: it is being deleted\n", false},
		"no Gateway": {teams, "There is no Gateway of ours.\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			if err := p.Compare(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			wantDiff(t, p, test.want)
			if p.Different() != test.different {
				t.Errorf("different is %t", p.Different())
			}
		})
	}
	for _, call := range c.Calls() {
		if call.Op != fake.OpConfiguration && call.Op != fake.OpFindTunnel {
			t.Errorf("it calls %s, which a token with the permission to read may not", call.Op)
		}
		// Somebody waits for it.
		if call.Priority != provider.PriorityChange {
			t.Errorf("%s has priority %d", call.Op, call.Priority)
		}
	}
}

// What the controller would not go on with is no difference that a push makes.
func TestCompareFails(t *testing.T) {
	c := newCloud(t)
	local, err := c.CreateTunnel(t.Context(), "local")
	if err != nil {
		t.Fatal(err)
	}
	c.SetLocal(local.ID, true)
	const other = "22222222-2222-4222-8222-222222222222"
	for name, test := range map[string]struct{ manifests, want string }{
		"another account": {compared("new.example.com", c.record(func(r *state.Record) { r.Account = "theirs" })),
			`its tunnel is in account "theirs", as the annotation tunnelgateway.dev/tunnel says, and its settings ask for account ` + fake.AccountID},
		"another tunnel": {settled("new.example.com", c.record(nil), "existing: {id: "+other+"}"), `it has tunnel "` + string(c.id) + `", as the annotation tunnelgateway.dev/tunnel says, and its settings ask for "` + other + `"`},
		"no tunnel to adopt any more": {compared("new.example.com", c.record(func(r *state.Record) { r.Origin = state.OriginAdopted })),
			`it has adopted tunnel "` + string(c.id) + `", as the annotation tunnelgateway.dev/tunnel says, and its settings ask for none any more`},
		"a tunnel to adopt that is not there": {settled("new.example.com", "", "existing: {id: "+other+"}"),
			`tunnel "` + other + `", which the settings name in tunnel.existing.id, does not exist in account ` + fake.AccountID},
		"a locally managed tunnel": {settled("new.example.com", "", "name: local"),
			"tunnel " + string(local.ID) + " is locally managed: its connectors take their configuration from a file, so nothing is pushed to it"},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			err := p.Compare(t.Context(), c.open)
			if want := "Gateway infra/g: " + test.want; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			wantDiff(t, p, "Gateway infra/g: not compared\n")
			if p.Different() {
				t.Error("it is different")
			}
		})
	}
}

// One Gateway that cannot be read hides no other, and no call is made for
// nothing.
func TestCompareGoesOn(t *testing.T) {
	c := newCloud(t)
	named := func(name, hostname, annotations string) string {
		g := strings.Replace(compared(hostname, annotations), "  name: g\n", "  name: "+name+"\n", 1)
		return strings.SplitN(g, "---", 2)[0]
	}
	p := planOf(t, compared("new.example.com", c.record(nil)), named("a", "a.example.com", c.record(nil)), named("z", "z.example.com", ""))
	broken := errors.New("broken")
	c.Fail(fake.OpConfiguration, broken)
	err := p.Compare(t.Context(), c.open)
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "Gateway infra/a: ") || strings.Contains(err.Error(), "infra/g") {
		t.Errorf("the error is %v", err)
	}
	if p.Gateways[0].Diff != nil || p.Gateways[1].Diff == nil || p.Gateways[2].Diff == nil || !p.Different() {
		t.Errorf("the differences are %+v", p.Gateways)
	}
	if calls := c.Calls(); len(calls) != 2 {
		t.Errorf("%d calls, want 2", len(calls))
	}
}

func TestCompareEndsWithItsContext(t *testing.T) {
	c := newCloud(t)
	one := compared("new.example.com", c.record(nil))
	two := strings.SplitN(strings.Replace(one, "  name: g\n", "  name: h\n", 1), "---", 2)[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := planOf(t, one, two).Compare(ctx, c.open); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "infra/h") {
		t.Errorf("the error is %v", err)
	}
}

func TestJSONOfDifferences(t *testing.T) {
	c := newCloud(t)
	p := planOf(t, compared("new.example.com", c.record(nil)))
	if got := decoded(t, p)["gateways"].([]any)[0].(map[string]any); got["diff"] != nil {
		t.Errorf("without a comparison there is %v", got["diff"])
	}
	for name, test := range map[string]struct {
		manifests string
		want      map[string]any
	}{
		"a difference":  {compared("new.example.com", c.record(nil)), map[string]any{"tunnel": string(c.id), "version": 1.0, "different": true, "unified": fmt.Sprintf(change, c.id), "notes": []any{}}},
		"no difference": {compared("old.example.com", c.record(nil)), map[string]any{"tunnel": string(c.id), "version": 1.0, "different": false, "unified": "", "notes": []any{}}},
		"a new tunnel": {compared("new.example.com", ""), map[string]any{"tunnel": "", "version": 0.0, "different": true, "unified": addition,
			"notes": []any{"new tunnel: the Gateway has no record of one (annotation tunnelgateway.dev/tunnel)"}}},
		"nothing to push": {compared("new.example.com", c.record(func(r *state.Record) { r.Controller = "example.com/other" })),
			map[string]any{"tunnel": "", "version": 0.0, "different": false, "unified": "", "notes": []any{"nothing is pushed: controller example.com/other holds the Gateway"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			if err := p.Compare(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			got := decoded(t, p)["gateways"].([]any)[0].(map[string]any)["diff"]
			if diff := cmp.Diff(any(test.want), got); diff != "" {
				t.Errorf("the field differs (-want +got):\n%s", diff)
			}
		})
	}
}
