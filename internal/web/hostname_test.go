package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHostnameShowsItsListenersAndEntries(t *testing.T) {
	page := open(t, planOf(t, sharedGateway, teamObjects), "/hostname?gateway=infra/shared&name=TEAM.example.com", http.StatusOK)
	want := [][]string{
		{"ListenerSet team/hosts", "a", "80 HTTP", "served", "1"},
		{"1", "PathPrefix /late", "HTTPRoute team/web rule 2, match 0", "http://web.team.svc.cluster.local:80", "reachable"},
		{"2", "PathPrefix /api", "HTTPRoute team/web rule 0, match 0", "http://web.team.svc.cluster.local:80", "reachable"},
		{
			"3", "PathPrefix /api", "HTTPRoute team/web rule 2, match 1", "http://web.team.svc.cluster.local:80",
			"shadowed by HTTPRoute team/web rule 0 match 0: it is a later rule of the same route",
		},
		{"4", "every path", "HTTPRoute team/web rule 1, match 0", "status 500", "BackendNotFound: Service team/missing does not exist"},
	}
	if diff := cmp.Diff(want, page.rows()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	links := page.links()
	if links["Why does a request get its answer?"] != "/why?url=https%3A%2F%2Fteam.example.com%2F" ||
		links["Picture"] != "/picture?gateway=infra%2Fshared&hostname=team.example.com" {
		t.Errorf("links: %v", links)
	}
}

func TestHostnameOfARouteNamesTheListenersThatReceiveItsRequests(t *testing.T) {
	page := open(t, planOf(t, sharedGateway, teamObjects), "/hostname?gateway=infra/shared&name=blue.apps.example.com", http.StatusOK)
	if !strings.Contains(page.text(), "Only routes have this hostname. Its requests belong to the listeners for *.apps.example.com .") {
		t.Error(page.text())
	}
	page = open(t, planOf(t, sharedGateway), "/hostname?gateway=infra/shared&name=*", http.StatusOK)
	if !strings.Contains(page.text(), "No route serves this hostname, so requests get the status 404.") {
		t.Error(page.text())
	}
}

func TestConflictShowsTheMessageOfTheCondition(t *testing.T) {
	page := open(t, planOf(t, sharedGateway, teamObjects, otherGateway), "/hostname?gateway=infra/shared&name=home.example.com", http.StatusOK)
	rows := page.rows()
	if len(rows) < 2 || !strings.HasPrefix(rows[1][3], "HostnameConflict ") || len(rows[1][3]) < 40 {
		t.Errorf("rows: %q", rows)
	}
	if link := page.one("main").links()["infra/other"]; !strings.Contains(page.text(), "Other Gateways have this hostname too: infra/other") {
		t.Errorf("the other Gateway is missing (%s): %s", link, page.text())
	}
}

func TestUnknownHostnameSuggestsOthers(t *testing.T) {
	p := planOf(t, sharedGateway, teamObjects, otherGateway)
	for query, want := range map[string][]string{
		"gateway=infra/shared&name=teams.example.com":       {"team.example.com on infra/shared"},
		"gateway=infra/shared&name=x.apps.example.com":      {"These hostnames cover it:", "*.apps.example.com on infra/shared"},
		"gateway=infra/gone&name=home.example.com":          {"Gateway infra/gone has no such hostname", "These Gateways have it: infra/other infra/shared"},
		"name=home.example.com":                             {"No Gateway was chosen", "infra/shared"},
		"gateway=infra/shared&name=%3Cscript%3Ealert(1)%3C": {"<script>alert(1)<"},
		"": {"No Gateway was chosen"},
	} {
		page := open(t, p, "/hostname?"+query, http.StatusNotFound)
		for _, text := range want {
			if !strings.Contains(page.text(), text) {
				t.Errorf("%s: the page does not say %q: %s", query, text, page.text())
			}
		}
	}
}

func TestClosedHostnameSaysSo(t *testing.T) {
	p := planOfFiles(t, "../gateway/testdata/access-levels.in.yaml")
	page := open(t, p, "/hostname?gateway=infra/shared&name=class.example.com", http.StatusOK)
	for _, text := range []string{"closed: Pending", "Demanded by TunnelConfiguration tunnel-gateway/defaults (GatewayClass)", "not tried", "Requests get the status 403 until Cloudflare Access protects the hostname."} {
		if !strings.Contains(page.text(), text) {
			t.Errorf("the page does not say %q: %s", text, page.text())
		}
	}
	if rows := firstCells(open(t, p, "/hostnames?access=closed", http.StatusOK)); len(rows) == 0 {
		t.Error("no hostname is closed in the table")
	}
}

func TestLongNamesAreShown(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Join([]string{label, label, label, strings.Repeat("b", 61)}, ".") // 253 characters
	p := planOf(t, strings.Replace(otherGateway, "home.example.com", long, 1))
	link := open(t, p, "/hostnames", http.StatusOK).links()[long]
	if got := open(t, p, link, http.StatusOK).one("h1").text(); got != long {
		t.Errorf("the page of the long hostname has the heading %q", got)
	}
}
