package ui

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// shownGraph is what the drawing contains.
type shownGraph struct {
	Nodes []shownNode
	Edges [][2]string
}

// shownNode is a node in the drawing, with the boxes around its shape and its texts.
type shownNode struct {
	ID, Text, Link string
	Box            shownBox
	Texts          []shownBox
}

type shownBox struct{ Left, Top, Right, Bottom float64 }

// overlaps reports whether the boxes have more than a line in common.
func (b shownBox) overlaps(o shownBox) bool {
	return b.Left+1 < o.Right && o.Left+1 < b.Right && b.Top+1 < o.Bottom && o.Top+1 < b.Bottom
}

func (b shownBox) contains(o shownBox) bool {
	return b.Left <= o.Left+1 && o.Right <= b.Right+1 && b.Top <= o.Top+1 && o.Bottom <= b.Bottom+1
}

const drawingScript = `(() => {
	const box = (e) => { const r = e.getBoundingClientRect(); return { Left: r.left, Top: r.top, Right: r.right, Bottom: r.bottom } };
	return {
		Nodes: [...document.querySelectorAll("#drawing [data-node]")].map((n) => ({
			ID: n.dataset.node, Text: [...n.querySelectorAll("text")].map((t) => t.textContent).join("\n"), Link: n.getAttribute("href"),
			Box: box(n.querySelector(".outline")), Texts: [...n.querySelectorAll("text")].map(box) })),
		Edges: [...document.querySelectorAll("#drawing .edge")].map((e) => [e.dataset.from, e.dataset.to]),
	};
})()`

// tableScript returns the nodes and edges in the table below the drawing.
const tableScript = `({
	Nodes: [...document.querySelectorAll("#graph tbody tr")].map((r) => ({ ID: r.dataset.node, Text: r.querySelector("th").innerText, Link: r.querySelector("a").getAttribute("href") })),
	Edges: [...document.querySelectorAll("#graph tbody tr")].flatMap((r) => [...r.querySelectorAll("[data-to]")].map((to) => [r.dataset.node, to.dataset.to])),
})`

// checkDrawing checks that the drawing has what the table has, and that it can be read.
func checkDrawing(b *tab) shownGraph {
	b.t.Helper()
	drawn, table := eval[shownGraph](b, drawingScript), eval[shownGraph](b, tableScript)
	if ids, want := idsOf(drawn), idsOf(table); !slices.Equal(ids, want) || len(ids) == 0 {
		b.t.Errorf("the drawing has the nodes %q, the table has %q", ids, want)
	}
	if !slices.Equal(sorted(drawn.Edges), sorted(table.Edges)) {
		b.t.Errorf("the drawing has the edges %q, the table has %q", drawn.Edges, table.Edges)
	}
	for i, n := range drawn.Nodes {
		for _, text := range n.Texts {
			if !n.Box.contains(text) {
				b.t.Errorf("the text of %s is outside of its shape: %v in %v", n.Text, text, n.Box)
			}
		}
		for _, other := range drawn.Nodes[:i] {
			if n.Box.overlaps(other.Box) {
				b.t.Errorf("the nodes %s and %s overlap: %v and %v", n.Text, other.Text, n.Box, other.Box)
			}
		}
	}
	return drawn
}

func idsOf(g shownGraph) (all []string) {
	for _, n := range g.Nodes {
		all = append(all, n.ID+" "+n.Link)
	}
	slices.Sort(all)
	return all
}

func sorted(edges [][2]string) [][2]string {
	slices.SortFunc(edges, func(a, b [2]string) int { return strings.Compare(a[0]+"\n"+a[1], b[0]+"\n"+b[1]) })
	return edges
}

func TestPictureOfAHostname(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", "config/samples")
	b := newTab(t)
	b.open(p.link)
	b.open(p.site + "/picture?hostname=team-a.example.com")
	g := checkDrawing(b)
	want := [][2]string{
		{"Gateway platform/shared", "ListenerSet team-a/team-a"}, {"Gateway platform/shared", "ListenerSet team-b/team-b-late"},
		{"HTTPRoute team-a/web", "Service team-a/api"}, {"HTTPRoute team-a/web", "Service team-a/web"},
		{"Hostname team-a.example.com", "HTTPRoute team-a/web"},
		{"ListenerSet team-a/team-a", "Hostname team-a.example.com"}, {"ListenerSet team-b/team-b-late", "Hostname team-a.example.com"},
	}
	names := map[string]string{}
	for _, n := range g.Nodes {
		kind, label, _ := strings.Cut(n.Text, "\n")
		kind, _, _ = strings.Cut(kind, ":")
		names[n.ID] = kind + " " + label
	}
	var got [][2]string
	for _, e := range g.Edges {
		got = append(got, [2]string{names[e[0]], names[e[1]]})
	}
	if !slices.Equal(sorted(got), want) {
		t.Errorf("the picture has the edges\n%q\nwant\n%q", got, want)
	}
	if texts := eval[[]string](b, `[...document.querySelectorAll("#drawing .failure")].map((e) => e.textContent)`); !slices.Equal(texts, []string{"✗ HostnameConflict"}) {
		t.Errorf("the picture says %q about the listener that is refused", texts)
	}
}

// TestPictureWith200Nodes draws the largest picture, for a namespace with more objects.
func TestPictureWith200Nodes(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", largeNamespace(t))
	b := newTab(t)
	b.open(p.link)
	b.open(p.site + "/picture?namespace=shop")
	g := checkDrawing(b)
	if len(g.Nodes) != 200 {
		t.Errorf("the picture has %d nodes, want 200", len(g.Nodes))
	}
	if height := g.Nodes[0].Texts[1].Bottom - g.Nodes[0].Texts[1].Top; height < 9 {
		t.Errorf("the text is %.1f pixels high", height)
	}
	if !strings.Contains(b.content(), "leaves out") {
		t.Errorf("the page does not say that the picture is not complete: %s", b.content())
	}
	b.size(390, 844)
	b.open(p.site + "/picture?namespace=shop")
	checkDrawing(b)
}

// largeNamespace writes a namespace with 100 hostnames, whose routes share Services.
func largeNamespace(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: shared, namespace: infra}, spec: {gatewayClassName: cloudflare-tunnel, allowedListeners: {namespaces: {from: All}}, listeners: [{name: one, hostname: one.example.com, port: 80, protocol: HTTP}]}}
`)
	for i := range 100 {
		fmt.Fprintf(&out, `---
{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {name: set-%[1]d, namespace: shop}, spec: {parentRef: {name: shared, namespace: infra}, listeners: [{name: h, hostname: a-rather-long-hostname-%[1]d.shop.example.com, port: 80, protocol: HTTP}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: route-%[1]d, namespace: shop}, spec: {parentRefs: [{kind: ListenerSet, name: set-%[1]d}], rules: [{matches: [{path: {value: /a}}], backendRefs: [{name: web-%[2]d, port: 80}]}, {backendRefs: [{name: web-%[3]d, port: 80}]}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web-%[1]d, namespace: shop}, spec: {ports: [{port: 80}]}}
`, i, i%7, i%11)
	}
	file := t.TempDir() + "/manifests.yaml"
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPictureWithTheKeyboard(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", "config/samples")
	b := newTab(t)
	b.open(p.link)
	b.open(p.site + "/picture?namespace=team-b")
	b.focus("#drawing svg")
	view := func() []float64 {
		return eval[[]float64](b, `document.querySelector("#drawing svg").getAttribute("viewBox").split(" ").map(Number)`)
	}
	begin := view()
	for _, step := range []struct {
		key    string
		before func(before, after []float64) bool
	}{
		{kb.ArrowRight, func(before, after []float64) bool { return after[0] > before[0] }},
		{kb.ArrowLeft, func(before, after []float64) bool { return after[0] < before[0] }},
		{kb.ArrowDown, func(before, after []float64) bool { return after[1] > before[1] }},
		{kb.ArrowUp, func(before, after []float64) bool { return after[1] < before[1] }},
		{"+", func(before, after []float64) bool { return after[2] < before[2] }},
		{"-", func(before, after []float64) bool { return after[2] > before[2] }},
	} {
		before := view()
		b.press(step.key)
		if after := view(); !step.before(before, after) {
			t.Errorf("the key %q shows %v after %v", step.key, after, before)
		}
	}
	b.press("0")
	if end := view(); !slices.Equal(end, begin) {
		t.Errorf("0 shows %v, want %v", end, begin)
	}
	b.press(kb.Tab)
	focus := eval[string](b, `document.activeElement.dataset.node`)
	if related := eval[int](b, `document.querySelectorAll("#drawing .node.related").length`); related < 2 {
		t.Errorf("the focus on %q shows %d objects that belong to it", focus, related)
	}
	b.press(kb.Enter)
	b.waitFor("the page of the object", `location.pathname !== "/picture"`)
	if path := eval[string](b, "location.pathname+location.search"); path != "/hostnames?gateway=platform%2Fshared" {
		t.Errorf("Enter on %q opens %s", focus, path)
	}
}
