package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// Without its Gateway, nothing in a team's files gets a status.
func TestStray(t *testing.T) {
	const more = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: more, namespace: team}\n" +
		"spec: {parentRefs: [{kind: ListenerSet, name: none}, {name: a}, {name: b}, {name: c}, {kind: Service, group: '', name: mesh}]}\n"
	for name, test := range map[string]struct {
		manifests []string
		want      string
		good      bool
	}{
		"a team alone":            {[]string{teams}, "No Gateway uses this controller.\n2 ListenerSets and 1 HTTPRoute refer to parents that are not among the manifests (Gateway infra/shared): add --context to lay them over a cluster.\n", false},
		"a route more":            {[]string{more}, "No Gateway uses this controller.\n1 HTTPRoute refers to parents that are not among the manifests (Gateway team/a, Gateway team/b, Gateway team/c and 1 more): add --context to lay them over a cluster.\n", false},
		"nothing":                 {nil, "No Gateway uses this controller.\n", false},
		"another's Gateway":       {[]string{strings.Replace(shared, "cloudflare-tunnel", "internal", 1), teams}, "No Gateway uses this controller. Gateway infra/shared: GatewayClass \"internal\" not found.\n", false},
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
	if got, want := makePlan(t, source, now).Unattached(), "2 ListenerSets and 1 HTTPRoute refer to parents that do not exist (Gateway infra/shared)."; got != want {
		t.Errorf("with a cluster it says %q, want %q", got, want)
	}
}

// Only the configuration that was pushed before is in effect while a Gateway is
// paused.
func TestPausedAndDeleted(t *testing.T) {
	const note = "Gateway infra/g: " + tunnel.PausedMessage + "\n"
	for name, manifests := range map[string]string{
		"without a Tunnel object": compared("new.example.com", paused),
		"with one":                compared("new.example.com", paused) + object("tunnelID: t, configuration: {hash: other}"),
	} {
		made := planOf(t, manifests)
		for output, got := range map[string]string{"table": printed(t, made), "why": why(t, made, "new.example.com")} {
			if !strings.Contains(got, note) || output == "table" && (strings.Contains(got, "is in effect") || made.Good()) {
				t.Errorf("%s of a paused Gateway %s is\n%s", output, name, got)
			}
		}
	}
	hash := planOf(t, compared("new.example.com", "")).Gateways[0].Config.Hash()
	before := planOf(t, compared("new.example.com", paused)+object("tunnelID: t, configuration: {hash: "+hash+"}"))
	if got := printed(t, before); !strings.Contains(got, "is in effect. "+tunnel.PausedMessage) || !before.Good() {
		t.Errorf("a Gateway that was paused after its push gives\n%s", got)
	}
	const ending = "Gateway infra/g is being deleted, so nothing is pushed.\n"
	deleted := planOf(t, strings.Replace(compared("new.example.com", ""), "  name: g\n", "  name: g\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n", 1))
	for output, got := range map[string]string{"table": printed(t, deleted), "why": why(t, deleted, "new.example.com")} {
		if !strings.Contains(got, ending) {
			t.Errorf("%s of a Gateway that is being deleted is\n%s", output, got)
		}
	}
}

// A problem that the Tunnel objects show is in the conditions and in the table,
// also when Cloudflare is not asked.
func TestProblemsOfTunnels(t *testing.T) {
	hash := planOf(t, compared("new.example.com", "")).Gateways[0].Config.Hash()
	for name, test := range map[string]struct{ manifests, reason, message string }{
		"settings not applied": {settled("new.example.com", existing(otherTunnel)) + object("tunnelID: t, configuration: {hash: "+hash+"}"),
			"SettingsNotApplied", "The setting tunnel.existing selects another tunnel than Tunnel infra.g records"},
		"another cluster":  {compared("new.example.com", "") + strings.Replace(object("tunnelID: t"), "clusterUID: cluster", "clusterUID: restored", 1), "Pending", "Tunnel infra.g was created in another cluster"},
		"a tunnel in use":  {settled("new.example.com", existing(otherTunnel)) + kubeSystem + rival(otherTunnel), "Pending", "The tunnel of Tunnel infra.g is in use by another Gateway."},
		"external changes": {compared("new.example.com", "") + object("tunnelID: t, contested: true, configuration: {hash: "+hash+"}"), "Pending", "The configuration of tunnel t was changed externally 3 times"},
		"a deletion":       {compared("new.example.com", "") + object("tunnelID: t, deleting: true"), "Pending", "The tunnel of a previous Gateway with this name is being deleted."},
		"no problem":       {compared("new.example.com", "") + object("tunnelID: t"), "Programmed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			chosen := options
			chosen.Account = credentials.Default{}
			made, err := plan.Make(t.Context(), read(t, test.manifests, "-"), chosen, now)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(printed(t, made), "Gateway infra/g: "+test.message) || made.Good() != (test.message == "") {
				t.Errorf("good is %t, and the output is\n%s", made.Good(), printed(t, made))
			}
			for _, status := range made.Statuses {
				if status.Kind != gateway.KindGateway {
					continue
				}
				programmed := meta.FindStatusCondition(status.Status.(gatewayv1.GatewayStatus).Conditions, "Programmed")
				if programmed == nil || programmed.Reason != test.reason || !strings.Contains(programmed.Message, test.message) {
					t.Errorf("the condition is %+v, want the reason %s and the message %q", programmed, test.reason, test.message)
				}
			}
		})
	}
}

// The address is that of the tunnel that the Tunnel object records.
func TestAddress(t *testing.T) {
	for manifests, want := range map[string]bool{compared("new.example.com", "") + object("tunnelID: t"): true, compared("new.example.com", "") + kubeSystem: false} {
		if got := strings.Contains(printed(t, planOf(t, manifests)), `"value": "t.cfargotunnel.com"`); got != want {
			t.Errorf("the address is there: %t, want %t", got, want)
		}
	}
}

func why(t *testing.T, p *plan.Plan, host string) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Explain(gateway.Request{Host: host, Path: "/"}).WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
