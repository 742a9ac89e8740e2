package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// changesOf returns the changes between the plans for two manifests.
func changesOf(t *testing.T, before, after string) (*plan.Changes, *plan.Plan, *plan.Plan) {
	t.Helper()
	old, p := planOf(t, before), planOf(t, after)
	changes, err := p.ChangesFrom(old)
	if err != nil {
		t.Fatal(err)
	}
	return changes, old, p
}

// Hostnames that come, go, or have another owner, state or Access are changes.
func TestChangesOfHostnames(t *testing.T) {
	const cluster = shared + "---" + teams
	replaced := func(oldnew ...string) string { return strings.NewReplacer(oldnew...).Replace(cluster) }
	envoy := envoyManifests(t)
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":          {cluster, cluster, nil},
		"a hostname comes": {replaced("- {name: a, hostname: team.example.com, port: 80, protocol: HTTP}\n", ""), cluster, []string{"Added team.example.com: - -> ListenerSet team/admitted, served, open"}},
		"a hostname goes":  {cluster, replaced("- {name: a, hostname: team.example.com, port: 80, protocol: HTTP}\n", ""), []string{"Removed team.example.com: ListenerSet team/admitted, served, open -> -"}},
		"an owner":         {cluster, replaced("listeners: [{name: home, hostname: home", "listeners: [{name: home, hostname: main"), []string{"Changed home.example.com: Gateway infra/shared+ListenerSet team/admitted, served+HostnameConflict, open -> ListenerSet team/admitted, served, open", "Added main.example.com: - -> Gateway infra/shared, served, open"}},
		"a hostname of a route below a wildcard": {envoy, strings.ReplaceAll(envoy, "hostnames: [shop.example.com]", "hostnames: [shop.example.com, new.example.com]"), []string{
			"Added new.example.com: - -> Gateway infra/web, served, open",
		}},
		"Access": {envoy, strings.ReplaceAll(envoy, "hostname: admin.example.com, access", "hostname: idle.example.com, access"), []string{
			"Removed admin.example.com: Gateway infra/web, served, protected: example -> -",
			"Changed idle.example.com: Gateway infra/web, served, open -> Gateway infra/web, served, protected: example",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			changes, _, _ := changesOf(t, test.before, test.after)
			var got []string
			for _, g := range changes.Gateways {
				for _, h := range g.Hostnames {
					got = append(got, string(h.Change)+" "+h.Hostname+": "+summaryText(h.Before)+" -> "+summaryText(h.After))
				}
				if (g.Change == "") != (test.want == nil) {
					t.Errorf("the change of Gateway %s is %q", g.Name, g.Change)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("hostnames (-want +got):\n%s", diff)
			}
		})
	}
}

func summaryText(s *plan.HostnameSummary) string {
	if s == nil {
		return "-"
	}
	var owners []string
	for _, o := range s.Owners {
		owners = append(owners, o.String())
	}
	return strings.Join(owners, "+") + ", " + strings.Join(s.States, "+") + ", " + s.Access
}

// The differences of entries and of configurations are those of plan --diff.
func TestChangesOfEntriesAndConfigurations(t *testing.T) {
	changes, before, after := changesOf(t, envoyManifests(t), envoyManifests(t, "weight: 3", "weight: 4"))
	after.CompareTables(before)
	g := changes.Gateways[0]
	if g.Change != plan.Changed || g.Routes == "" || g.Routes != after.Gateways[0].Diff.Routes {
		t.Errorf("got the change %q with the routes\n%s\nwant\n%s", g.Change, g.Routes, after.Gateways[0].Diff.Routes)
	}
	if g.Configuration != "" {
		t.Errorf("the configuration differs:\n%s", g.Configuration)
	}
	const web, old = "path: {type: PathPrefix, value: /api}", "path: {type: PathPrefix, value: /old}"
	changes, _, _ = changesOf(t, shared+"---"+strings.ReplaceAll(teams, web, old), shared+"---"+teams)
	want := []plan.DiffLine{
		{Kind: plan.DiffHeader, Text: "--- configuration of Gateway infra/shared in the cluster"},
		{Kind: plan.DiffHeader, Text: "+++ configuration of Gateway infra/shared with the manifests"},
		{Kind: plan.DiffRemoved, Text: "-  path: ^/old(/|$)"}, {Kind: plan.DiffAdded, Text: "+  path: ^/api(/|$)"},
	}
	var got []plan.DiffLine
	for _, line := range plan.DiffLines(changes.Gateways[0].Configuration) {
		if line.Kind != plan.DiffUnchanged && line.Kind != plan.DiffHunk {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// A Gateway that only one of the plans has is added or removed, with everything of it.
func TestChangesOfGateways(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		want          plan.ChangeKind
		sign          string
	}{"a new one": {teams, shared + "---" + teams, plan.Added, "+"}, "one that is gone": {shared + "---" + teams, teams, plan.Removed, "-"}} {
		t.Run(name, func(t *testing.T) {
			changes, _, _ := changesOf(t, test.before, test.after)
			if len(changes.Gateways) != 1 || changes.Gateways[0].Change != test.want || len(changes.Gateways[0].Hostnames) != 3 {
				t.Fatalf("got %+v", changes.Gateways)
			}
			for _, unified := range []string{changes.Gateways[0].Routes, changes.Gateways[0].Configuration} {
				lines := plan.DiffLines(unified)
				if len(lines) < 4 || !strings.HasPrefix(lines[0].Text, "--- ") || strings.HasPrefix(lines[0].Text, "--- no ") != (test.want == plan.Added) ||
					strings.HasPrefix(lines[1].Text, "+++ no ") != (test.want == plan.Removed) {
					t.Fatalf("got the difference %q", unified)
				}
				for _, line := range lines[3:] {
					if !strings.HasPrefix(line.Text, test.sign) {
						t.Errorf("got the line %q", line.Text)
					}
				}
			}
		})
	}
}

// Objects change if a problem ends or begins.
func TestChangesOfObjects(t *testing.T) {
	const cluster = shared + "---" + teams
	missing := strings.ReplaceAll(cluster, "name: web, port: 80}", "name: missing, port: 80}")
	route := plan.Owner{Kind: "HTTPRoute", Namespace: "team", Name: "web"}
	for name, test := range map[string]struct {
		before, after string
		want          map[plan.Owner]plan.ChangeKind
	}{
		"nothing":         {cluster, cluster, nil},
		"worse":           {cluster, missing, map[plan.Owner]plan.ChangeKind{route: plan.Worse}},
		"better":          {missing, cluster, map[plan.Owner]plan.ChangeKind{route: plan.Better}},
		"another problem": {missing, strings.ReplaceAll(missing, "name: missing, port: 80}", "name: web, port: 80, kind: Unknown}"), map[plan.Owner]plan.ChangeKind{route: plan.Changed}},
		"a new object": {shared + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {shared: allowed}}}", missing, map[plan.Owner]plan.ChangeKind{
			route: plan.Added, {Kind: "ListenerSet", Namespace: "team", Name: "admitted"}: plan.Added, {Kind: "ListenerSet", Namespace: "outside", Name: "older-but-outside"}: plan.Added,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			changes, _, _ := changesOf(t, test.before, test.after)
			got := map[plan.Owner]plan.ChangeKind{}
			for _, o := range changes.Objects {
				got[o.Object] = o.Change
				if begins := o.Change != plan.Better; begins != (len(o.Begun) > 0) {
					t.Errorf("%s: %s has the problems %v", o.Object, o.Change, o.Begun)
				}
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// The JSON encoding has empty lists instead of null.
func TestChangesInJSON(t *testing.T) {
	changes, _, _ := changesOf(t, shared, shared)
	got, err := json.Marshal(changes)
	if want := `{"gateways":[{"namespace":"infra","name":"shared","hostnames":[]}],"objects":[]}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
