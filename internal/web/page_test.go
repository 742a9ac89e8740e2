package web

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// now is the time of each snapshot.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// planOf returns the plan for the manifests.
func planOf(t testing.TB, manifests ...string) *plan.Plan {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(manifests, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return planOfFiles(t, path)
}

func planOfFiles(t testing.TB, paths ...string) *plan.Plan {
	t.Helper()
	o := plan.Options{Options: gateway.Options{ControllerName: config.DefaultControllerName, ControllerNamespace: "tunnel-gateway", ClusterDomain: "cluster.local"}}
	source, err := state.FromFiles(paths, manifest.Options{}, o.ControllerName, config.DefaultClassName)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Build(t.Context(), source, o, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// open returns the main element of a page with the plan, which must have the status.
func open(t testing.TB, p *plan.Plan, path string, status int) node {
	t.Helper()
	feed := NewFeed()
	feed.Publish(&Snapshot{Plan: p, Time: now, Warnings: []string{"skipped 1 of kind Pod"}})
	s := NewServer(Options{Feed: feed, Hosts: []string{testHost}})
	cookies := ask(s, s.NewLink()).Result().Cookies()
	response := ask(s, path, func(r *http.Request) { r.AddCookie(cookies[0]) })
	if response.Code != status {
		t.Fatalf("%s: status %d, want %d: %s", path, response.Code, status, response.Body)
	}
	root, err := html.Parse(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return node{root}.one("main")
}

// node is an element of a page.
type node struct{ *html.Node }

// all returns the elements below the node with the name.
func (n node) all(name string) []node {
	var all []node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			all = append(all, node{d})
		}
	}
	return all
}

// one returns the first element with the name, or an empty element.
func (n node) one(name string) node {
	for _, found := range n.all(name) {
		return found
	}
	return node{&html.Node{}}
}

// text returns the text, with single spaces between words.
func (n node) text() string {
	var words []string
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			words = append(words, strings.Fields(d.Data)...)
		}
	}
	return strings.Join(words, " ")
}

func (n node) attribute(name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// rows returns the cells of the body of each table: the texts of each row.
func (n node) rows() [][]string {
	var rows [][]string
	for _, body := range n.all("tbody") {
		for _, tr := range body.all("tr") {
			var cells []string
			for d := range tr.ChildNodes() {
				if d.Data == "td" || d.Data == "th" {
					cells = append(cells, node{d}.text())
				}
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// links returns the addresses of the links by their text.
func (n node) links() map[string]string {
	links := map[string]string{}
	for _, a := range n.all("a") {
		links[a.text()] = a.attribute("href")
	}
	return links
}
