package web

import (
	"html/template"
	"net/http"
	"strings"
)

// page is one page that the server has.
type page struct {
	pattern  string // for http.ServeMux
	template string // file in templates, which defines "content"
	// view returns what the template shows.
	view func(v *visit) (content any, err error)
}

// pages returns all pages.
func pages() []page {
	return []page{
		{"/{$}", "overview.html", overview},
		{"/hostnames", "hostnames.html", hostnames},
		{"/hostname", "hostname.html", hostname},
		{"/namespaces", "namespaces.html", namespaces},
		{"/why", "why.html", why},
		{"/changes", "changes.html", changes},
		{"/picture", "picture.html", picture},
	}
}

// visit is a request for a page.
type visit struct {
	*http.Request
	*Snapshot
	comparisons *comparisons
}

// functions are the template functions.
var functions = template.FuncMap{"join": strings.Join}
