package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// A team's files alone have nobody who speaks about them.
func TestStray(t *testing.T) {
	const more = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: more, namespace: team}\n" +
		"spec: {parentRefs: [{kind: ListenerSet, name: none}, {name: a}, {name: b}, {name: c}, {kind: Service, group: '', name: mesh}]}\n"
	for name, test := range map[string]struct {
		manifests []string
		want      string
		good      bool
	}{
		"a team alone":            {[]string{teams}, "There is no Gateway of ours.\n2 ListenerSets and 1 HTTPRoute refer to parents that are not among the manifests (Gateway infra/shared): add --context to lay them over a cluster.\n", false},
		"a route more":            {[]string{more}, "There is no Gateway of ours.\n1 HTTPRoute refers to parents that are not among the manifests (Gateway team/a, Gateway team/b, Gateway team/c and 1 more): add --context to lay them over a cluster.\n", false},
		"nothing":                 {nil, "There is no Gateway of ours.\n", false},
		"another's Gateway":       {[]string{strings.Replace(shared, "cloudflare-tunnel", "internal", 1), teams}, "There is no Gateway of ours. Of those that there are: infra/shared is of a class that does not exist.\n", false},
		"a Gateway beside it":     {[]string{shared, more}, "HTTPRoute refers to parents that are not among the manifests", false},
		"a Gateway, nothing else": {[]string{shared}, "Gateway infra/shared", true},
	} {
		t.Run(name, func(t *testing.T) {
			made := planOf(t, append(test.manifests, "{apiVersion: v1, kind: Namespace, metadata: {name: infra}}")...)
			if got := printed(t, made); !strings.Contains(got, test.want) {
				t.Errorf("it prints %q, want %q", got, test.want)
			}
			if got := made.Good(); got != test.good {
				t.Errorf("Good = %t, want %t", got, test.good)
			}
		})
	}
	source := read(t, teams, "-")
	source.Live = true
	if got, want := makePlan(t, source, now).Stray(), "2 ListenerSets and 1 HTTPRoute refer to parents that do not exist (Gateway infra/shared)."; got != want {
		t.Errorf("with a cluster it says %q, want %q", got, want)
	}
}

// Of a paused Gateway nothing is in effect but what was pushed before.
func TestPausedAndDeleted(t *testing.T) {
	paused := compared("new.example.com", annotation(state.PausedAnnotation, "true"))
	const note = "Gateway infra/g: paused: nothing is pushed before the annotation tunnelgateway.dev/paused is taken off\n"
	made := planOf(t, paused)
	for name, got := range map[string]string{"table": printed(t, made), "why": why(t, made, "new.example.com")} {
		if !strings.Contains(got, note) || name == "table" && (strings.Contains(got, "is in effect") || made.Good()) {
			t.Errorf("%s says of a paused Gateway:\n%s", name, got)
		}
	}
	record := state.Record{Controller: ourName, Tunnel: "t", Hash: made.Gateways[0].Config.Hash()}
	before := planOf(t, compared("new.example.com", annotation(state.PausedAnnotation, "true")+annotation(state.RecordAnnotation, record.String())))
	if got := printed(t, before); !strings.Contains(got, "is in effect. The Gateway is paused by its annotation") || !before.Good() {
		t.Errorf("of a Gateway that was paused after its push:\n%s", got)
	}
	const ending = "Gateway infra/g: nothing is pushed: it is being deleted\n"
	deleted := planOf(t, strings.Replace(compared("new.example.com", ""), "  name: g\n", "  name: g\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n", 1))
	for name, got := range map[string]string{"table": printed(t, deleted), "why": why(t, deleted, "new.example.com")} {
		if !strings.Contains(got, ending) {
			t.Errorf("%s says of a Gateway that is being deleted:\n%s", name, got)
		}
	}
}

func why(t *testing.T, p *plan.Plan, host string) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Why(gateway.Request{Host: host, Path: "/"}).WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
