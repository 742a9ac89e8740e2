package web

import (
	"bytes"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// document is what templates/page.html shows around the content.
type document struct {
	State
	Input string
	// Server identifies the process, whose Revisions are comparable.
	Server string
	Title  string
	Menu   []menuItem
	// Failure is why there is no Content; empty if there is.
	Failure string
	Content any
}

// menuItem is a link in the header. Current is the link's aria-current: "page" for the page
// that is shown, "true" for its section, otherwise empty.
type menuItem struct{ Path, Title, Current string }

// menu contains the pages in the header. section is the path to a page that belongs to the
// item.
var menu = []struct{ path, title, section string }{
	{"/", "Overview", ""},
	{"/hostnames", "Hostnames", "/hostname"},
	{"/namespaces", "Namespaces", ""},
	{"/why", "Why", ""},
	{"/picture", "Picture", ""},
	{"/changes", "Changes", ""},
}

// newMenu returns the menu and the title for the page at path. Changes exist only with
// manifests on top of a cluster.
func newMenu(path string, hasChanges bool) (items []menuItem, title string) {
	for _, m := range menu {
		item := menuItem{Path: m.path, Title: m.title}
		switch path {
		case m.path:
			item.Current, title = "page", m.title
		case m.section:
			item.Current, title = "true", m.title
		}
		if exists(m.path) && (m.path != "/changes" || hasChanges || item.Current != "") {
			items = append(items, item)
		}
	}
	return items, title
}

// exists reports whether there is a page at path.
func exists(path string) bool {
	return slices.ContainsFunc(pages(), func(p page) bool { return strings.TrimSuffix(p.pattern, "{$}") == path })
}

// page serves p. It renders the whole document before it sends the first byte, and from one
// snapshot, so that no visitor sees half a change.
func (s *Server) page(p page) http.Handler {
	parsed := template.Must(template.New("page.html").Funcs(functions).Funcs(linkFunctions).Funcs(tableFunctions).ParseFS(files, "templates/page.html", "templates/parts.html", "templates/"+p.template))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, status := s.document(p, r)
		var out bytes.Buffer
		if err := parsed.Execute(&out, d); err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(visible(out.String())))
	})
}

// document returns what the page shows for the request, and the HTTP status. Content with the
// method status chooses it.
func (s *Server) document(p page, r *http.Request) (d document, status int) {
	d, status = document{State: s.Feed.State(), Input: s.Input, Server: s.id}, http.StatusOK
	d.Menu, d.Title = newMenu(r.URL.Path, d.Snapshot != nil && d.Snapshot.Before != nil)
	if d.Snapshot == nil {
		return d, status
	}
	content, err := p.view(&visit{Request: r, Snapshot: d.Snapshot, comparisons: &s.comparisons})
	if err != nil {
		d.Failure = err.Error()
		return d, http.StatusBadRequest
	}
	if c, ok := content.(interface{ status() int }); ok {
		status = c.status()
	}
	d.Content = content
	return d, status
}

// visible replaces each unprintable character in a document, such as one that changes the
// direction in which the text after it runs, by its escape sequence, as [terminal.Escape] does. URLs in
// attributes contain no such character, because html/template percent-encodes them.
func visible(html string) string { return terminal.EscapeOutput(html) }
