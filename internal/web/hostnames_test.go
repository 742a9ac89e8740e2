package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

const (
	sharedGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: home, hostname: home.example.com, port: 80, protocol: HTTP}
  - {name: any, port: 80, protocol: HTTP}
  - {name: apps, hostname: "*.apps.example.com", port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
`
	teamObjects = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: hosts, namespace: team}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners:
  - {name: a, hostname: team.example.com, port: 80, protocol: HTTP}
  - {name: b, hostname: home.example.com, port: 80, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: team}
spec:
  parentRefs: [{kind: ListenerSet, name: hosts, sectionName: a}]
  rules:
  - matches: [{path: {value: /api}}]
    backendRefs: [{name: web, port: 80}]
  - backendRefs: [{name: missing, port: 80}]
  - matches: [{path: {value: /late}}, {path: {value: /api}}]
    backendRefs: [{name: web, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: blue, namespace: team}
spec:
  parentRefs: [{name: shared, namespace: infra, sectionName: apps}]
  hostnames: [blue.apps.example.com]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}]}}
`
	otherGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: home, hostname: home.example.com, port: 80, protocol: HTTP}]
`
)

// firstCells returns the first cell of each row.
func firstCells(n node) []string {
	var all []string
	for _, row := range n.rows() {
		all = append(all, row[0])
	}
	return all
}

func TestHostnamesShowTheTable(t *testing.T) {
	page := open(t, planOf(t, sharedGateway, teamObjects), "/hostnames", http.StatusOK)
	want := [][]string{
		{"*", "Gateway infra/shared", "80 HTTP", "served", "open", "none", "why * , picture of *"},
		{"*.apps.example.com", "Gateway infra/shared", "80 HTTP", "served", "open", "none", "why *.apps.example.com , picture of *.apps.example.com"},
		{"blue.apps.example.com", "Gateway infra/shared", "80 HTTP", "served", "open", "1", "why blue.apps.example.com , picture of blue.apps.example.com"},
		{"home.example.com", "Gateway infra/shared ListenerSet team/hosts", "80 HTTP 80 HTTP", "served HostnameConflict", "open", "none", "why home.example.com , picture of home.example.com"},
		{"team.example.com", "ListenerSet team/hosts", "80 HTTP", "served", "open", "1", "why team.example.com , picture of team.example.com"},
	}
	if diff := cmp.Diff(want, page.rows()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if link := page.links()["*.apps.example.com"]; link != "/hostname?gateway=infra%2Fshared&name=%2A.apps.example.com" {
		t.Errorf("the wildcard links to %s", link)
	}
}

func TestFiltersSelectRows(t *testing.T) {
	p := planOf(t, sharedGateway, teamObjects, otherGateway)
	for query, want := range map[string][]string{
		"":                                    {"*", "*.apps.example.com", "blue.apps.example.com", "home.example.com also on infra/shared", "home.example.com also on infra/other", "team.example.com"},
		"gateway=infra/other":                 {"home.example.com also on infra/shared"},
		"q=TEAM.EXAMPLE":                      {"team.example.com"},
		"q=httproute+team%2Fblue":             {"blue.apps.example.com"},
		"q=listenerset":                       {"home.example.com also on infra/other", "team.example.com"},
		"q=listenerset+home":                  {"home.example.com also on infra/other"},
		"q=nothing":                           nil,
		"state=HostnameConflict":              {"home.example.com also on infra/other"},
		"access=closed":                       nil,
		"namespace=team":                      {"blue.apps.example.com", "home.example.com also on infra/other", "team.example.com"},
		"gateway=&q=&state=&access=open&q=":   {"*", "*.apps.example.com", "blue.apps.example.com", "home.example.com also on infra/shared", "home.example.com also on infra/other", "team.example.com"},
		"gateway=infra/shared&namespace=team": {"blue.apps.example.com", "home.example.com also on infra/other", "team.example.com"},
	} {
		page := open(t, p, "/hostnames?"+query, http.StatusOK)
		if diff := cmp.Diff(want, firstCells(page)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

// A form shows the filter of its URL, so that a link reproduces the page.
func TestFormShowsTheFilter(t *testing.T) {
	page := open(t, planOf(t, sharedGateway, teamObjects), "/hostnames?q=Team&state=Gone&gateway=infra/shared&namespace=team", http.StatusOK)
	values := map[string]string{}
	for _, input := range page.all("input") {
		values[input.attribute("name")] = input.attribute("value")
	}
	for _, list := range page.all("select") {
		for _, option := range list.all("option") {
			if slices.ContainsFunc(option.Attr, func(a html.Attribute) bool { return a.Key == "selected" }) {
				values[list.attribute("name")] = option.text()
			}
		}
	}
	want := map[string]string{"q": "Team", "state": "Gone", "gateway": "infra/shared", "namespace": "team"}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if form := page.one("form"); form.attribute("action") != "/hostnames" || form.attribute("method") != "" {
		t.Error("the form does not work without scripts")
	}
}

func TestALongTableHasALinkForMore(t *testing.T) {
	page := open(t, planOf(t, sharedGateway, teamObjects), "/hostnames?q=example&limit=2", http.StatusOK)
	if got := firstCells(page); len(got) != 2 || !strings.Contains(page.text(), "4 of 5 hostnames") {
		t.Errorf("rows %q of the page: %s", got, page.text())
	}
	if link := page.links()["Show more"]; link != "/hostnames?limit=4&q=example" {
		t.Errorf("the link for more is %q", link)
	}
}

func TestHostnamesExplainAnEmptyTable(t *testing.T) {
	for text, page := range map[string]node{
		"No hostname matches.":                     open(t, planOf(t, sharedGateway), "/hostnames?q=nothing", http.StatusOK),
		"No listener of a Gateway has a hostname.": open(t, planOf(t, teamObjects), "/hostnames", http.StatusOK),
	} {
		if !strings.Contains(page.text(), text) {
			t.Errorf("the page does not say %q: %s", text, page.text())
		}
	}
}
