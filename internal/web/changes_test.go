package web_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/web"
)

// changesGateway is a Gateway with a listener for each hostname, and a route.
func changesGateway(hostnames ...string) string {
	var b strings.Builder
	b.WriteString(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners:
`)
	for i, hostname := range hostnames {
		fmt.Fprintf(&b, "  - {name: l%d, hostname: %s, port: 80, protocol: HTTP}\n", i, hostname)
	}
	return b.String() + `
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: infra}
spec:
  parentRefs: [{name: shared}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`
}

// changesSnapshot is a snapshot of manifests on top of a cluster.
func changesSnapshot(t *testing.T, before, after string) *web.Snapshot {
	t.Helper()
	old, _ := planText(t, before)
	p, _ := planText(t, after)
	return &web.Snapshot{Plan: p, Before: old, Time: planTime}
}

// cells returns the texts of a table's rows below the heading.
func cells(document *html.Node) [][]string {
	var rows [][]string
	for _, body := range elements(document, hasTag("tbody")) {
		for _, row := range elements(body, hasTag("tr")) {
			var texts []string
			for _, cell := range elements(row, hasTag("td", "th")) {
				texts = append(texts, textOf(cell))
			}
			rows = append(rows, texts)
		}
	}
	return rows
}

// The page shows hostnames, entries, configuration and conditions that differ, with signs.
func TestChangesShowWhatManifestsChange(t *testing.T) {
	after := strings.ReplaceAll(changesGateway("a.example.com", "new.example.com"), "backendRefs: [{name: web,", "backendRefs: [{name: missing,")
	v := newVisitor(t, changesSnapshot(t, changesGateway("a.example.com", "old.example.com"), after))
	document := v.page(t, "/changes")
	want := [][]string{
		{"new.example.com", "+ added", "Gateway infra/shared", "served", "open"},
		{"old.example.com", "− removed", "Gateway infra/shared", "served", "open"},
	}
	if diff := cmp.Diff(want, cells(document)); diff != "" {
		t.Errorf("hostnames (-want +got):\n%s", diff)
	}
	diffs := elements(document, hasClass("diff"))
	if len(diffs) != 2 {
		t.Fatalf("got %d differences, want those of entries and of the configuration", len(diffs))
	}
	for _, d := range diffs {
		for tag, sign := range map[string]string{"ins": "+", "del": "-"} {
			lines := elements(d, hasTag(tag))
			if len(lines) == 0 {
				t.Errorf("no line is marked as %s: %s", tag, textOf(d))
			}
			for _, line := range lines {
				if !strings.HasPrefix(textOf(line), sign) {
					t.Errorf("the line %q lacks the sign %s", textOf(line), sign)
				}
			}
		}
	}
	text := textOf(document)
	for _, want := range []string{"HTTPRoute infra/web ↓ worse", "ResolvedRefs: BackendNotFound:", "2 hostnames change"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// Without a difference, and without manifests, the page says so.
func TestChangesWithoutChanges(t *testing.T) {
	p, _ := planText(t, changesGateway("a.example.com"))
	for want, snapshot := range map[string]*web.Snapshot{
		"The manifests change nothing.":                    {Plan: p, Before: p},
		"tunnel-gateway ui -f teams/ --context production": {Plan: p},
	} {
		if text := textOf(newVisitor(t, snapshot).page(t, "/changes")); !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// A change of thousands of lines stays a page; a link shows all of it.
func TestChangesAreLimited(t *testing.T) {
	var hostnames []string
	for i := range 300 {
		hostnames = append(hostnames, fmt.Sprintf("h%03d.example.com", i))
	}
	gateways := strings.ReplaceAll(changesGateway(hostnames[:60]...), "shared", "other") + "---" + changesGateway(hostnames[60:120]...)
	after := gateways
	for i := range 4 {
		after += "---" + strings.ReplaceAll(changesGateway(hostnames[60*i:60*i+60]...), "shared", fmt.Sprintf("new-%d", i))
	}
	v := newVisitor(t, changesSnapshot(t, gateways, after))
	document := v.page(t, "/changes")
	lines := func(document *html.Node) int { return len(elements(document, hasTag("ins"))) }
	if got := lines(document); got == 0 || got > 4*2*200 {
		t.Errorf("got %d lines, want at most 200 for each difference", got)
	}
	link := elements(document, func(n *html.Node) bool { return n.Data == "a" && textOf(n) == "Show all" })
	if len(link) != 1 {
		t.Fatalf("no link shows all:\n%.2000s", textOf(document))
	}
	all := v.page(t, attribute(link[0], "href"))
	if lines(all) <= lines(document) || strings.Contains(textOf(all), "not shown") {
		t.Errorf("the link shows %d lines, the page %d", lines(all), lines(document))
	}
}

// The page reads from Cloudflare once for each link, however often it is opened, and never
// because of an update.
func TestChangesReadFromCloudflareWhenAsked(t *testing.T) {
	snapshot := changesSnapshot(t, changesGateway("a.example.com"), changesGateway("a.example.com"))
	var reads atomic.Int32
	snapshot.Compare = func(context.Context) (*plan.Plan, error) {
		compared, _ := planText(t, changesGateway("a.example.com"))
		compared.Gateways[0].Diff = &plan.Diff{
			Different: true, Notes: []string{"An external change replaced the tunnel configuration."}, Unified: fmt.Sprintf("--- tunnel\n+++ Gateway\n@@ -1 +1 @@\n-old\n+read %d\n", reads.Add(1)),
		}
		return compared, errors.New("Gateway infra/other: no credentials")
	}
	v := newVisitor(t, snapshot)
	if document := v.page(t, "/changes"); reads.Load() != 0 || readLink(t, document) != "/changes?read=1" {
		t.Fatalf("the page itself has read %d times", reads.Load())
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			text := textOf(v.page(t, "/changes?read=1"))
			for _, want := range []string{"Read at ", "+read 1", "no credentials", "An external change"} {
				if !strings.Contains(text, want) {
					t.Errorf("the page lacks %q:\n%s", want, text)
				}
			}
		})
	}
	group.Wait()
	document := v.page(t, "/changes?read=1")
	if reads.Load() != 1 || readLink(t, document) != "/changes?read=2" {
		t.Fatalf("the link has read %d times", reads.Load())
	}
	if text := textOf(v.page(t, "/changes?read=2")); reads.Load() != 2 || !strings.Contains(text, "+read 2") {
		t.Errorf("the next link has read %d times:\n%s", reads.Load(), text)
	}
	if text := textOf(v.page(t, "/changes?read=1")); reads.Load() != 2 || !strings.Contains(text, "+read 2") {
		t.Errorf("the first link reads again, or shows an older answer:\n%s", text)
	}
}

// readLink returns the link that reads from Cloudflare.
func readLink(t *testing.T, document *html.Node) string {
	t.Helper()
	links := elements(document, func(n *html.Node) bool { return strings.HasPrefix(attribute(n, "href"), "/changes?read=") })
	if len(links) != 1 {
		t.Fatalf("%d links read from Cloudflare", len(links))
	}
	return attribute(links[0], "href")
}

// A comparison from before a change says that it is old.
func TestChangesSayThatAComparisonIsOld(t *testing.T) {
	snapshot := func() *web.Snapshot {
		s := changesSnapshot(t, changesGateway("a.example.com"), changesGateway("a.example.com"))
		s.Compare = func(context.Context) (*plan.Plan, error) { return nil, errors.New("refused") }
		return s
	}
	v := newVisitor(t, snapshot())
	const old = "The page has changed since"
	if text := textOf(v.page(t, "/changes?read=1")); strings.Contains(text, old) || !strings.Contains(text, "refused") {
		t.Errorf("got the page:\n%s", text)
	}
	v.feed.Publish(snapshot())
	if text := textOf(v.page(t, "/changes?read=1")); !strings.Contains(text, old) {
		t.Errorf("the page lacks %q:\n%s", old, text)
	}
}

// Without an API token, no link reads from Cloudflare.
func TestChangesWithoutATokenDoNotRead(t *testing.T) {
	document := newVisitor(t, changesSnapshot(t, changesGateway("a.example.com"), changesGateway("a.example.com"))).page(t, "/changes?read=1")
	links := elements(document, func(n *html.Node) bool { return strings.Contains(attribute(n, "href"), "read=") })
	if len(links) > 0 || !slices.ContainsFunc(elements(document, hasTag("p")), func(n *html.Node) bool { return strings.Contains(textOf(n), "With an API token") }) {
		t.Errorf("got the page:\n%s", textOf(document))
	}
}
