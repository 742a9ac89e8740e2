package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// manyHostnames writes manifests with n hostnames, 100 in each namespace, and returns their file.
func manyHostnames(t testing.TB, n int) string {
	t.Helper()
	const perNamespace, perSet = 100, 10 // validating a ListenerSet takes quadratic time
	var out strings.Builder
	out.WriteString(`apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: class, namespace: infra}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: class, namespace: infra}
spec: {dataPlane: Envoy, limits: {rulesPerTunnel: 100000, listenersPerNamespace: 100000}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: first, hostname: first.example.com, port: 80, protocol: HTTP}]
`)
	for i := range n / perSet {
		namespace := fmt.Sprintf("team-%d", i*perSet/perNamespace)
		var listeners []string
		for j := range perSet {
			listeners = append(listeners, fmt.Sprintf("{name: h%d, hostname: h%d.s%d.%s.example.com, port: 80, protocol: HTTP}", j, j, i%(perNamespace/perSet), namespace))
		}
		fmt.Fprintf(&out, `---
{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {name: set-%[1]d, namespace: %[2]s}, spec: {parentRef: {name: shared, namespace: infra}, listeners: [%[3]s]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: route-%[1]d, namespace: %[2]s}, spec: {parentRefs: [{kind: ListenerSet, name: set-%[1]d}], rules: [{backendRefs: [{name: web-%[1]d, port: 80}]}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web-%[1]d, namespace: %[2]s}, spec: {ports: [{port: 80}]}}
`, i, namespace, strings.Join(listeners, ", "))
	}
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSearchFindsHostnames(t *testing.T) {
	t.Parallel()
	file := manyHostnames(t, 500)
	p := serve(t, nil, "-f", file)
	b := newTab(t)
	b.open(p.link)
	all := readPlan(t, nil, "-f", file).Gateways[0].hostnames()
	b.open(p.site + "/hostnames")
	for _, query := range []string{"h7.", "team-3 s1.", "ROUTE-12", "set-4 h2.", "nothing"} {
		b.focus("#q")
		b.do(selectAll)
		b.enter(query)
		b.waitFor("the answer", fmt.Sprintf(`new URLSearchParams(location.search).get("q") === %q`, query))
		want := slices.DeleteFunc(slices.Clone(all), func(hostname string) bool { return !mentions(hostname, query) })
		if got, text := b.text("#matches")[0], fmt.Sprintf("%d of %d hostnames", len(want), len(all)); got != text {
			t.Errorf("%q finds %q, want %q", query, got, text)
		}
		for _, row := range b.table("#matches + table") {
			if !slices.Contains(want, row["Hostname"]) {
				t.Errorf("%q finds %s", query, row["Hostname"])
			}
		}
		if !eval[bool](b, fmt.Sprintf(`document.activeElement.id === "q" && document.activeElement.value === %q`, query)) {
			t.Errorf("%q is not in the search field, or the field lost the focus", query)
		}
	}
	b.do(selectAll)
	b.enter("team-3")
	b.waitFor("the answer", `document.querySelector("#matches").innerText.startsWith("100 ")`)
	address := eval[string](b, "location.href")
	if shown := b.content(); shown != reopened(b, address) {
		t.Errorf("%s does not reproduce the search: %s", address, shown)
	}
	b.press(kb.Tab) // the filter for Gateways, then for states
	b.press(kb.Tab)
	b.press("s")
	b.waitFor("the filter", `new URLSearchParams(location.search).get("state") === "served"`)
}

// reopened returns the address's content in another tab.
func reopened(b *tab, address string) string {
	other := b.another()
	other.open(address)
	return other.content()
}

// mentions reports whether the search for the words finds a hostname from manyHostnames.
func mentions(hostname, query string) bool {
	var number, set, team int
	if _, err := fmt.Sscanf(hostname, "h%d.s%d.team-%d.example.com", &number, &set, &team); err != nil {
		return strings.Contains(hostname+" gateway infra/shared", strings.ToLower(query))
	}
	id := 10*team + set
	text := fmt.Sprintf("%s\nlistenerset team-%d/set-%d\nhttproute team-%d/route-%d", hostname, team, id, team, id)
	for word := range strings.FieldsSeq(strings.ToLower(query)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// searchScript replaces the text in a field of the form, and returns how many milliseconds later
// the browser has painted the answer. The first number includes the pause before the page asks.
const searchScript = `(async () => {
	const field = document.getElementById(%q), painted = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
	let asked;
	const swapped = new Promise((r) => document.addEventListener("htmx:after:swap", r, { once: true }));
	document.addEventListener("htmx:before:request", () => { asked = performance.now() }, { once: true });
	field.focus();
	field.value = %q;
	const begin = performance.now();
	field.dispatchEvent(new InputEvent("input", { bubbles: true }));
	await swapped;
	await painted();
	return [performance.now() - begin, performance.now() - asked];
})()`

// BenchmarkTenThousandHostnames measures the page with 10,000 hostnames in Chromium: the first
// paint and size, a search, a filter, and the command's memory.
func BenchmarkTenThousandHostnames(b *testing.B) {
	p := serve(b, nil, "-f", manyHostnames(b, 10_000))
	tab := newTab(b)
	tab.open(p.link)
	for name, path := range map[string]string{"overview": "/", "hostnames": "/hostnames", "namespaces": "/namespaces"} {
		b.Run("open "+name, func(b *testing.B) {
			var paints, sizes, nodes []float64
			for b.Loop() {
				tab.open(p.site + path)
				paints = append(paints, eval[float64](tab, `new Promise((r) => new PerformanceObserver((l, o) => { o.disconnect(); r(l.getEntriesByName("first-contentful-paint")[0].startTime) }).observe({ type: "paint", buffered: true }))`))
				sizes = append(sizes, eval[float64](tab, `performance.getEntriesByType("navigation")[0].encodedBodySize / 1024`))
				nodes = append(nodes, eval[float64](tab, `document.querySelectorAll("*").length`))
			}
			b.ReportMetric(median(paints), "ms-first-paint")
			b.ReportMetric(median(sizes), "KiB")
			b.ReportMetric(median(nodes), "elements")
		})
	}
	for field, text := range map[string]func(i int) string{
		"q":         func(i int) string { return fmt.Sprintf("h%d. team-%d", i%10, i%7) },
		"namespace": func(i int) string { return fmt.Sprintf("team-%d", i%7) },
	} {
		b.Run("search "+field, func(b *testing.B) {
			tab.open(p.site + "/hostnames")
			var totals, answers []float64
			for i := 0; b.Loop(); i++ {
				times := eval[[]float64](tab, fmt.Sprintf(searchScript, field, text(i)))
				totals, answers = append(totals, times[0]), append(answers, times[1])
			}
			b.ReportMetric(median(totals), "ms-input-to-paint")
			b.ReportMetric(median(answers), "ms-request-to-paint")
			b.ReportMetric(p.peakMiB(b), "MiB-peak")
		})
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
