package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/web"
)

// versioned returns manifests in which every hostname, route and Service has the version in its name.
func versioned(version, hostnames int) string {
	var listeners []string
	for i := range hostnames {
		listeners = append(listeners, fmt.Sprintf("{name: l%d, hostname: h%d.v%d.example.com, port: 80, protocol: HTTP}", i, i, version))
	}
	return fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: shared, namespace: infra}, spec: {gatewayClassName: cloudflare-tunnel, listeners: [%[2]s]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: route-v%[1]d, namespace: infra}, spec: {parentRefs: [{name: shared}], rules: [{backendRefs: [{name: web-v%[1]d, port: 80}]}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web-v%[1]d, namespace: infra}, spec: {ports: [{port: 80}]}}
`, version, strings.Join(listeners, ", "))
}

// revision is an expression for the revision that the page shows.
const revision = `Number(document.getElementById("page").dataset.revision)`

// openFeed opens a path on the feed's site, and marks the document, so that publishTo finds a reload.
func openFeed(t *testing.T, f *feed, path string) *tab {
	t.Helper()
	b := newTab(t)
	b.open(f.link)
	b.open(f.site + path)
	b.waitFor("the event stream", `performance.getEntriesByType("resource").some((e) => e.name.endsWith("/events")) || `+revision+` > 0`)
	eval[bool](b, "window.marked = true")
	return b
}

// publishTo publishes the manifests and waits until the tab shows them.
func publishTo(b *tab, f *feed, manifests string) {
	b.t.Helper()
	f.publish(manifests)
	b.waitFor("the update", fmt.Sprintf("%s === %d", revision, f.State().Revision))
	if !eval[bool](b, "window.marked === true") {
		b.t.Error("the update has loaded the page again")
	}
}

func TestAnUpdateKeepsWhatTheUserDoes(t *testing.T) {
	t.Parallel()
	f := serveFeed(t, versioned(1, 60))
	b := openFeed(t, f, "/hostnames")
	b.focus("#q")
	b.enter("example")
	b.waitFor("the answer", `location.search.includes("q=example")`)
	eval[bool](b, `document.getElementById("q").setSelectionRange(2, 5), scrollTo(0, 700), true`)
	publishTo(b, f, versioned(2, 60))
	got := eval[[]any](b, `[document.activeElement.id, document.activeElement.value, document.activeElement.selectionStart, document.activeElement.selectionEnd, scrollY]`)
	if want := []any{"q", "example", 2.0, 5.0, 700.0}; !slices.Equal(got, want) {
		t.Errorf("after an update, the focus, the text, the selection and the scroll position are %v, want %v", got, want)
	}
	if hostname := b.table("#matches + table")[0]["Hostname"]; hostname != "h0.v2.example.com" {
		t.Errorf("the table begins with %s", hostname)
	}
}

func TestAnUpdateKeepsTheFocusOnALink(t *testing.T) {
	t.Parallel()
	const more = `---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: another, namespace: infra}, spec: {gatewayClassName: cloudflare-tunnel, listeners: [{name: a, hostname: a.example.com, port: 80, protocol: HTTP}]}}
`
	f := serveFeed(t, versioned(1, 60))
	b := openFeed(t, f, "/hostnames")
	link := eval[string](b, `(() => { const a = document.querySelectorAll("#page tbody th a")[30]; a.focus(); return a.getAttribute("href") })()`)
	publishTo(b, f, versioned(1, 60)+more)
	if got := eval[string](b, `document.activeElement.getAttribute("href")`); got != link {
		t.Errorf("the focus is on %q, want %q", got, link)
	}
	if rows := b.table("#matches + table"); rows[0]["Hostname"] != "a.example.com" || rows[0]["Gateway"] != "infra/another" {
		t.Errorf("the table begins with %v", rows[0])
	}
}

func TestAnUpdateKeepsAnUnsentQuestion(t *testing.T) {
	t.Parallel()
	f := serveFeed(t, versioned(1, 2))
	b := openFeed(t, f, "/why")
	b.focus("#why-url")
	b.enter("h0.v1.exam")
	publishTo(b, f, versioned(2, 2))
	if text := eval[string](b, `document.getElementById("why-url").value`); text != "h0.v1.exam" {
		t.Errorf("the field contains %q", text)
	}
}

func TestAnUpdateRedrawsThePicture(t *testing.T) {
	t.Parallel()
	f := serveFeed(t, versioned(1, 2))
	b := openFeed(t, f, "/picture?namespace=infra")
	publishTo(b, f, versioned(2, 3))
	if g := checkDrawing(b); len(g.Nodes) != 6 || !strings.Contains(g.Nodes[1].Text, "h0.v2.") {
		t.Errorf("the picture has the nodes %q", idsOf(g))
	}
}

// watchScript collects in each frame which versions the header and the table show.
const watchScript = `(() => {
	window.frames_ = [];
	const look = () => {
		const table = [...document.querySelectorAll("#page tbody tr")].map((r) => r.innerText.match(/\.v(\d+)\./)?.[1]);
		const time = document.querySelector(".source time").dateTime.slice(-3, -1);
		window.frames_.push([String(Number(time)), ...new Set(table)].join(" "));
		requestAnimationFrame(look);
	};
	look();
	return true;
})()`

func TestNoFrameShowsAHalfUpdatedTable(t *testing.T) {
	t.Parallel()
	const versions, hostnames = 20, 60
	f := serveFeed(t, versioned(0, hostnames))
	b := openFeed(t, f, "/hostnames")
	eval[bool](b, watchScript)
	for version := 1; version <= versions; version++ {
		s := &web.Snapshot{Plan: planOf(t, versioned(version, hostnames)), Time: feedTime.Add(time.Duration(version) * time.Second)}
		f.Publish(s)
		if version%3 == 0 { // in between, versions come while the page updates
			b.waitFor("the newest version", fmt.Sprintf("%s === %d", revision, f.State().Revision))
		}
	}
	b.waitFor("the last version", fmt.Sprintf(`%s === %d`, revision, f.State().Revision))
	frames := eval[[]string](b, "window.frames_")
	shown := map[string]bool{}
	for _, frame := range frames {
		versions := strings.Fields(frame)
		if len(versions) != 2 || versions[0] != versions[1] && frame != "0 0" {
			t.Errorf("a frame shows the versions %q: first that of the header, then those in the table", frame)
		}
		shown[frame] = true
	}
	if len(shown) < 3 {
		t.Errorf("%d frames show only %d versions", len(frames), len(shown))
	}
}

func TestAProblemOfTheClusterIsABanner(t *testing.T) {
	t.Parallel()
	f := serveFeed(t, versioned(1, 2))
	b := openFeed(t, f, "/hostnames")
	f.Fail("The connection to the cluster is lost since 12:00.")
	const banner = `document.querySelector("#page .banner[role=alert]")`
	b.waitFor("the banner", banner)
	if text := b.text("#page .banner")[0]; text != "The connection to the cluster is lost since 12:00." {
		t.Errorf("the banner says %q", text)
	}
	if rows := b.table("#matches + table"); len(rows) != 2 {
		t.Errorf("without connection, the table has the rows %v", rows)
	}
	publishTo(b, f, versioned(2, 2))
	if eval[bool](b, "!!"+banner) {
		t.Error("the banner stays after the connection was restored")
	}
}
