package ui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

func TestThePageOfACluster(t *testing.T) {
	t.Parallel()
	d := theDemo(t)
	d.unchanged.Lock()
	defer d.unchanged.Unlock()
	p := serve(t, d.environment())
	b := newTab(t)
	b.open(p.link)
	t.Run("equals its plan", func(t *testing.T) {
		var tunnels v1alpha1.TunnelList
		if err := d.kube.List(t.Context(), &tunnels); err != nil {
			t.Fatal(err)
		}
		c := comparison{t, b, p.site, readPlan(t, d.environment()), map[string]*v1alpha1.Tunnel{}}
		for i := range tunnels.Items {
			c.tunnels[tunnels.Items[i].Status.Gateway] = &tunnels.Items[i]
		}
		if len(c.tunnels) < 2 {
			t.Fatalf("the demo has the Tunnels %v", tunnels.Items)
		}
		c.all()
	})
	t.Run("explains a request as plan does", func(t *testing.T) {
		checkWhy(t, b, p.site, question{url: "https://shop.example.com/", headers: []string{"x-canary:always"}}, d.environment())
		checkWhy(t, b, p.site, question{url: "https://team-a.example.com/api/orders", method: "POST"}, d.environment())
	})
	t.Run("follows the cluster", func(t *testing.T) { checkLiveUpdate(t, b, p, d) })
	t.Run("keeps its content without connection", func(t *testing.T) { checkLostCluster(t, d) })
	t.Run("shows what manifests change", func(t *testing.T) { checkChanges(t, d) })
}

// change adds a ListenerSet to the demo, whose hostname no namespace may use, until undo.
func (d *demo) change(t *testing.T, name string) (hostname string, undo func()) {
	t.Helper()
	hostname = name + ".example.com"
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
	set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Name: "shared", Namespace: new(gatewayv1.Namespace("platform"))}
	set.Spec.Listeners = []gatewayv1.ListenerEntry{{Name: "new", Hostname: new(gatewayv1.Hostname(hostname)), Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	if err := d.kube.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	undo = sync.OnceFunc(func() {
		if err := d.kube.Delete(context.WithoutCancel(t.Context()), set); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(undo)
	return hostname, undo
}

// hasRow is an expression that is true if the table has the hostname.
func hasRow(hostname string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#page tbody th a")].some((a) => a.innerText === %q)`, hostname)
}

func checkLiveUpdate(t *testing.T, b *tab, p *page, d *demo) {
	b.in(t)
	b.open(p.site + "/hostnames")
	b.focus("#q")
	b.enter("example")
	b.waitFor("the answer", `location.search.includes("q=example")`)
	b.size(1280, 200)
	eval[bool](b, `window.marked = true, document.getElementById("q").setSelectionRange(1, 3), scrollTo(0, 60), true`)
	hostname, undo := d.change(t, "live-update")
	t.Logf("the page shows a new hostname after %s", b.waitFor("the new hostname", hasRow(hostname)))
	got := eval[[]any](b, `[window.marked, document.activeElement.id, document.activeElement.value, document.activeElement.selectionStart, document.activeElement.selectionEnd, scrollY]`)
	if want := []any{true, "q", "example", 1.0, 3.0, 60.0}; !slices.Equal(got, want) {
		t.Errorf("after the update, the mark, the focus, the text, the selection and the scroll position are %v, want %v", got, want)
	}
	undo()
	b.waitFor("the end of the hostname", "!"+hasRow(hostname))
	b.size(1280, 900)
}

// checkLostCluster breaks the connection between ui and the API server.
func checkLostCluster(t *testing.T, d *demo) {
	link := newBreakableLink(t, d.config.Host)
	p := serve(t, []string{"KUBECONFIG=" + d.kubeconfigThrough(t, link.address)})
	b := newTab(t)
	b.open(p.link)
	b.open(p.site + "/hostnames")
	before := b.table("#matches + table")
	link.cut()
	const banner = `document.querySelector("#page .banner[role=alert]")`
	t.Logf("the page has the banner after %s", b.waitFor("the banner", banner))
	if text := b.text("#page .banner")[0]; !strings.Contains(text, "API server") {
		t.Errorf("the banner says %q", text)
	}
	if after := b.table("#matches + table"); !reflect.DeepEqual(after, before) {
		t.Errorf("without connection, the page shows %v, want %v", after, before)
	}
	hostname, _ := d.change(t, "while-lost")
	link.restore()
	t.Logf("the page shows the change after %s", b.waitFor("the change", "!"+banner+" && "+hasRow(hostname)))
}

// checkChanges shows manifests on top of the demo's cluster.
func checkChanges(t *testing.T, d *demo) {
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	write := func(backend string) {
		manifests := fmt.Sprintf("{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web, namespace: team-a}, spec: {parentRefs: [{kind: ListenerSet, name: team-a}], rules: [{backendRefs: [{name: %s, port: 8080}]}]}}", backend)
		if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("api")
	p := serve(t, nil, "-f", file, "--kubeconfig", d.kubeconfig)
	b := newTab(t)
	b.open(p.link)
	b.click("nav a[href='/changes']")
	b.waitFor("the changes", `document.querySelector("pre.diff")`)
	removed, added := strings.Join(b.text("pre.diff del"), "\n"), strings.Join(b.text("pre.diff ins"), "\n")
	if !strings.Contains(removed, "http://web.team-a.svc.cluster.local:80") || !strings.Contains(added, "http://api.team-a.svc.cluster.local:8080") {
		t.Errorf("the page removes\n%s\nand adds\n%s", removed, added)
	}
	checkAccessibility(b, "/changes")
	checkPhone(b, "/changes")
	checkKeyboard(b, "/changes")
	write("missing")
	b.waitFor("the changed manifest", `document.querySelector("#page").innerText.includes("team-a/missing")`)
}
