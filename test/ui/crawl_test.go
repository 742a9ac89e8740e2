package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// visit follows the links from the overview, and calls check for each page, but only once for pages
// with the same path and parameter names.
func visit(t *testing.T, b *tab, site string, check func(path string)) {
	t.Helper()
	queue, seen := []string{"/"}, map[string]bool{"/": true}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if status := b.open(site + path); status != http.StatusOK {
			t.Errorf("%s returns %d", path, status)
		}
		check(path)
		for _, link := range eval[[]string](b, `[...document.querySelectorAll("a[href]")].map((a) => new URL(a.getAttribute("href"), location).href)`) {
			next, ok := strings.CutPrefix(link, site)
			if !ok {
				t.Errorf("%s links to another site: %s", path, link)
				continue
			}
			next, _, _ = strings.Cut(next, "#")
			if kind := kindOf(t, next); !seen[kind] {
				seen[kind] = true
				queue = append(queue, next)
			}
		}
	}
	t.Logf("visited %d pages", len(seen))
}

// kindOf returns the path and the names of the parameters that have a value.
func kindOf(t *testing.T, link string) string {
	t.Helper()
	parsed, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, values := range parsed.Query() {
		if !slices.Equal(values, []string{""}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(append([]string{parsed.Path}, names...), " ")
}

// axeScript runs axe and returns one line for each element with a violation.
const axeScript = `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.flatMap((v) =>
	v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + n.html + ": " + n.failureSummary)))`

// checkAccessibility checks the open page with axe in both themes, on a desktop and on a phone,
// and that it has one main heading.
func checkAccessibility(b *tab, path string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](axe))
	defer b.theme("light")
	defer b.size(1280, 900)
	for _, width := range []int64{1280, 390} {
		b.size(width, 900)
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			for _, violation := range eval[[]string](b, axeScript) {
				b.t.Errorf("%s, %d pixels wide, %s theme: %s", path, width, theme, violation)
			}
		}
	}
	if headings := b.text("h1"); len(headings) != 1 {
		b.t.Errorf("%s has the headings %q, want one", path, headings)
	}
}

// checkPhone checks that the open page is not wider than a small phone.
func checkPhone(b *tab, path string) {
	b.t.Helper()
	b.size(360, 640)
	defer b.size(1280, 900)
	if width := eval[int](b, "document.documentElement.scrollWidth"); width > 360 {
		widest := eval[[]string](b, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > 360 && !e.closest(".scroll")).map((e) => e.outerHTML.slice(0, 120)).slice(0, 3)`)
		b.t.Errorf("%s is %d pixels wide on a phone with 360: %q", path, width, widest)
	}
}

// controls are the elements that the keyboard must reach.
const controls = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled)`

// focusScript describes the element with the focus. A node in the picture shows the focus by its
// shape's line.
const focusScript = `(() => {
	const e = document.activeElement, s = getComputedStyle(e), shape = e.querySelector(".outline");
	const line = shape && getComputedStyle(shape);
	return {
		Control: e.dataset.testControl ?? "",
		Visible: line ? parseFloat(line.strokeWidth) >= 3 && line.stroke === s.color : s.outlineStyle !== "none" && s.outlineWidth !== "0px",
	};
})()`

// checkKeyboard checks that Tab reaches each control on the open page in document
// order, and that the focus is visible.
func checkKeyboard(b *tab, path string) {
	b.t.Helper()
	expected := eval[[]string](b, controls+`.map((e, i) => { e.dataset.testControl = i; return e.outerHTML.slice(0, 150) })`)
	if len(expected) > 80 {
		expected = expected[:80]
	}
	next := 0
	for presses := 0; next < len(expected) && presses < 2*len(expected)+20; presses++ {
		b.press(kb.Tab)
		focus := eval[struct {
			Control string
			Visible bool
		}](b, focusScript)
		if focus.Control == "" {
			continue // a box that scrolls, or the document
		}
		if focus.Control != fmt.Sprint(next) {
			b.t.Errorf("%s: Tab reaches control %s before %d: %s", path, focus.Control, next, expected[next])
			return
		}
		if !focus.Visible {
			b.t.Errorf("%s: the focus is not visible: %s", path, expected[next])
		}
		next++
	}
	if next < len(expected) {
		b.t.Errorf("%s: Tab does not reach %s", path, expected[next])
	}
}

// press presses a key.
func (b *tab) press(key string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(key))
}

func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"internal/plan/testdata/why.yaml", "internal/plan/testdata/envoy.yaml"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			p := serve(t, nil, "-f", file)
			b := newTab(t)
			b.open(p.link)
			visit(t, b, p.site, func(path string) {
				checkAccessibility(b, path)
				checkPhone(b, path)
				checkKeyboard(b, path)
			})
		})
	}
}

func TestSkipLink(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", "config/samples")
	b := newTab(t)
	b.open(p.link)
	b.press(kb.Tab)
	if visible := eval[bool](b, `(() => { const e = document.activeElement, r = e.getBoundingClientRect(); return e.classList.contains("skip") && r.width > 50 && r.height > 10 && document.elementFromPoint(r.x + 5, r.y + 5) === e })()`); !visible {
		t.Error("the first Tab does not show the link to the content")
	}
	b.press(kb.Enter)
	b.press(kb.Tab)
	if inside := eval[bool](b, `document.activeElement.closest("#page") !== null`); !inside {
		t.Errorf("Tab after the link reaches %q, which is not in the content", b.text(":focus"))
	}
}

func TestEveryPageWorksWithoutScripts(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", "internal/plan/testdata/envoy.yaml")
	b := newTab(t)
	b.open(p.link)
	with := map[string]string{}
	visit(t, b, p.site, func(path string) {
		eval[bool](b, `document.getElementById("drawing")?.remove() ?? true`) // the table below it has the same content
		with[path] = b.content()
	})
	b.withoutScripts()
	visit(t, b, p.site, func(path string) {
		if without := b.content(); without != with[path] {
			t.Errorf("%s shows without scripts\n%s\nwith scripts\n%s", path, without, with[path])
		}
	})
	b.open(p.site + "/hostnames")
	b.focus("#q")
	b.enter("shop")
	b.click(".filters button[type=submit]")
	b.waitFor("the answer", `location.search.includes("q=shop")`)
	for _, row := range b.table("#matches + table") {
		if !strings.Contains(row["Hostname"]+row["Owner"], "shop") {
			t.Errorf("the search without scripts finds %v", row)
		}
	}
}
