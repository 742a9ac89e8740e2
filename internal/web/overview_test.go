package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	unservedGateways = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: deleted, namespace: infra, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [example.com/wait]}
spec: {gatewayClassName: cloudflare-tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: internal, namespace: infra}
spec: {gatewayClassName: internal, listeners: [{name: a, port: 80, protocol: HTTP}]}
`
	lostRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost, namespace: team}
spec: {parentRefs: [{name: gone}]}
`
	tunnelOfShared = `
apiVersion: tunnelgateway.dev/v1alpha1
kind: Tunnel
metadata: {name: infra.shared, namespace: tunnel-gateway}
spec:
  name: id.infra.shared
  accountID: 0123456789abcdef0123456789abcdef
  controllerName: tunnelgateway.dev/controller
  clusterUID: uid
  deletionPolicy: Delete
  gateway: {namespace: infra, name: shared}
status:
  tunnelID: 11111111-2222-3333-4444-555555555555
  phase: Serving
  connectors: {desired: 2, ready: 1, summary: 1/2}
  conditions:
  - {type: ConnectorsReady, status: "False", reason: Unavailable, message: One connector is not ready., lastTransitionTime: "2026-01-01T00:00:00Z"}
`
)

// texts returns the text of each item of the list after the heading with the ID.
func (n node) texts(id string) []string {
	for _, heading := range n.all("h2") {
		if heading.attribute("id") != id {
			continue
		}
		for s := heading.NextSibling; s != nil; s = s.NextSibling {
			if s.Data == "ul" {
				var all []string
				for _, item := range (node{s}).all("li") {
					all = append(all, item.text())
				}
				return all
			}
		}
	}
	return nil
}

func TestOverviewShowsProblemsBeforeGateways(t *testing.T) {
	p := planOf(t, sharedGateway, teamObjects, unservedGateways, tunnelOfShared, lostRoute)
	page := open(t, p, "/", http.StatusOK)
	problems := strings.Join(page.texts("problems"), "\n")
	for _, problem := range append(p.Problems(), p.ListenerProblems()...) {
		if !strings.Contains(problems, problem.Reason+" "+problem.Condition+" "+problem.Message) || !strings.Contains(problems, problem.Owner.String()) {
			t.Errorf("the page does not show %s:\n%s", problem, problems)
		}
	}
	remarks := strings.Join(page.texts("remarks"), "\n")
	for _, mistake := range p.Mistakes {
		if !strings.Contains(remarks, mistake.Object.String()+" "+mistake.Message) {
			t.Errorf("the page does not show the mistake %v:\n%s", mistake, remarks)
		}
	}
	if len(p.Problems()) == 0 || len(p.Mistakes) == 0 {
		t.Error("the manifests have no problems or mistakes")
	}
	if diff := cmp.Diff([]string{"skipped 1 of kind Pod"}, page.texts("warnings")); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	want := []string{
		"Gateway infra/deleted : being deleted, so the controller does not push its configuration",
		`Gateway infra/internal : GatewayClass "internal" not found`,
	}
	if diff := cmp.Diff(want, page.texts("unserved")); diff != "" {
		t.Errorf("Gateways that are not served (-want +got):\n%s", diff)
	}
}

func TestOverviewDescribesEachGateway(t *testing.T) {
	p := planOf(t, sharedGateway, teamObjects, otherGateway, tunnelOfShared)
	rows := open(t, p, "/", http.StatusOK).rows()
	if len(rows) != 2 {
		t.Fatalf("rows: %q", rows)
	}
	want := []string{"infra/other", "cloudflare-tunnel", "none", "IngressRules", "none in the cluster", "not known", "1 hostname served : 1 Namespaces", "none"}
	if diff := cmp.Diff(want, rows[0]); diff != "" {
		t.Errorf("infra/other (-want +got):\n%s", diff)
	}
	want = []string{
		"infra/shared", "cloudflare-tunnel", "11111111-2222-3333-4444-555555555555.cfargotunnel.com", "IngressRules", "Serving id.infra.shared",
		"1/2 One connector is not ready.", "5 hostnames served : 5 Namespaces",
	}
	if diff := cmp.Diff(want, rows[1][:7]); diff != "" {
		t.Errorf("infra/shared (-want +got):\n%s", diff)
	}
}

func TestOverviewWithoutGatewaysSaysWhy(t *testing.T) {
	page := open(t, planOf(t, unservedGateways), "/", http.StatusOK)
	if text := "No Gateway uses this controller. Gateway infra/deleted: being deleted"; !strings.Contains(page.text(), text) {
		t.Errorf("the page does not say %q: %s", text, page.text())
	}
}

func TestOverviewGroupsEqualProblems(t *testing.T) {
	var sets []string
	for _, name := range strings.Split("a b c d e f g h i j k l m o p", " ") {
		sets = append(sets, "{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {name: "+name+", namespace: team}, spec: {parentRef: {name: other, namespace: infra}, listeners: [{name: x, port: 80, protocol: HTTP}]}}")
	}
	problems := open(t, planOf(t, append(sets, otherGateway)...), "/", http.StatusOK).texts("problems")
	if len(problems) != 2 || !strings.Contains(problems[0], "ListenerSet team/a , ListenerSet team/b") || !strings.HasSuffix(problems[0], "and 5 more") {
		t.Errorf("problems: %q", problems)
	}
}

func TestNamespacesShowWhatIsUsedAndRefused(t *testing.T) {
	page := open(t, planOfFiles(t, "../gateway/testdata/limit-of-listeners-per-namespace.in.yaml"), "/namespaces", http.StatusOK)
	want := [][]string{
		{"rulesPerTunnel", "5 of 1000", ""},
		{"listenersPerNamespace", "2 of 2", "team-a"},
		{"regularExpressionsPerNamespace", "0 of 1000", ""},
		{"regularExpressionsPerTunnel", "0 of 5000", ""},
		{"team-a", "2 of 2", "0 of 1000", "0", "1", "hostnames of team-a , picture of team-a"},
		{"team-b", "1 of 2", "0 of 1000", "0", "0", "hostnames of team-b , picture of team-b"},
	}
	if diff := cmp.Diff(want, page.rows()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if meter := page.all("meter")[1]; meter.attribute("max") != "2" || meter.attribute("value") != "2" || meter.attribute("aria-label") == "" {
		t.Errorf("the meter of listenersPerNamespace has the attributes %v", meter.Attr)
	}
	if text := "ListenerSet team-a/young : listener three: The listener is above limits.listenersPerNamespace"; !strings.Contains(page.text(), text) {
		t.Errorf("the page does not say %q: %s", text, page.text())
	}
	if link := page.links()["hostnames of team-a"]; link != "/hostnames?gateway=infra%2Fshared&namespace=team-a" {
		t.Errorf("team-a links to %s", link)
	}
}

func TestNamespacesShowTheChosenGateway(t *testing.T) {
	p := planOf(t, sharedGateway, teamObjects, otherGateway)
	for query, want := range map[string][]string{
		"": {"Gateway infra/other", "Gateway infra/shared"}, "gateway=infra/other": {"Gateway infra/other"}, "gateway=infra/gone": nil,
	} {
		page := open(t, p, "/namespaces?"+query, http.StatusOK)
		var got []string
		for _, heading := range page.all("h2") {
			got = append(got, heading.text())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
		if (len(want) == 0) != strings.Contains(page.text(), "There is no Gateway infra/gone that the controller serves.") {
			t.Errorf("%s: %s", query, page.text())
		}
	}
}
