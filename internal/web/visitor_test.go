package web_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/web"
)

var planOptions = plan.Options{Options: gateway.Options{
	ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
}}

// planTime is when the plans of the tests are built.
var planTime = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)

// planText returns the plan for manifests. It skips manifests that plan rejects.
func planText(t *testing.T, manifests string) (*plan.Plan, *state.Source) {
	t.Helper()
	source, err := state.FromFiles([]string{"-"}, manifest.Options{Stdin: strings.NewReader(manifests)}, planOptions.ControllerName, config.DefaultClassName)
	if err != nil {
		t.Skip("plan rejects the manifests: ", err)
	}
	p, err := plan.Build(t.Context(), source, planOptions, planTime)
	if err != nil {
		t.Fatal(err)
	}
	return p, source
}

// visitor opens pages of a server with a session.
type visitor struct {
	feed   *web.Feed
	server *web.Server
	cookie *http.Cookie
}

const visitorHost = "127.0.0.1:8088"

func newVisitor(t *testing.T, snapshot *web.Snapshot) *visitor {
	t.Helper()
	feed := web.NewFeed()
	feed.Publish(snapshot)
	v := &visitor{feed: feed, server: web.NewServer(web.Options{Feed: feed, Hosts: []string{visitorHost}, Input: "tests"})}
	response := v.get(v.server.NewLink()).Result()
	if len(response.Cookies()) != 1 {
		t.Fatalf("the link begins no session: %s", response.Status)
	}
	v.cookie = response.Cookies()[0]
	return v
}

func (v *visitor) get(path string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Host = visitorHost
	if v.cookie != nil {
		request.AddCookie(v.cookie)
	}
	recorder := httptest.NewRecorder()
	v.server.ServeHTTP(recorder, request)
	return recorder
}

// page returns the parsed page.
func (v *visitor) page(t *testing.T, path string) *html.Node {
	t.Helper()
	recorder := v.get(path)
	if recorder.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", path, recorder.Code, recorder.Body)
	}
	document, err := html.Parse(recorder.Body)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// elements returns the elements below a node for which the function returns true.
func elements(n *html.Node, is func(*html.Node) bool) []*html.Node {
	var all []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && is(d) {
			all = append(all, d)
		}
	}
	return all
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func hasTag(tags ...string) func(*html.Node) bool {
	return func(n *html.Node) bool { return slices.Contains(tags, n.Data) }
}

func hasID(id string) func(*html.Node) bool {
	return func(n *html.Node) bool { return attribute(n, "id") == id }
}

func hasClass(class string) func(*html.Node) bool {
	return func(n *html.Node) bool { return slices.Contains(strings.Fields(attribute(n, "class")), class) }
}

// textOf returns the text in a node, with single spaces.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
