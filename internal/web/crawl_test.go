package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// surface is what a browser may act on: elements with their attributes, and the parts of
// addresses that come from no object.
type surface map[string]string // to the first page with it

func (s surface) add(page, thing string) {
	if _, ok := s[thing]; !ok {
		s[thing] = page
	}
}

// addDocument adds what the document contains, and returns its links.
func (s surface) addDocument(t *testing.T, page, body string) (links []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.CommentNode {
			s.add(page, "comment")
		}
		if n.Type != html.ElementNode {
			continue
		}
		s.add(page, n.Data)
		for _, a := range n.Attr {
			s.add(page, n.Data+" "+a.Key+s.addressOf(a))
			if n.Data == "a" && a.Key == "href" && strings.HasPrefix(a.Val, "/") {
				links = append(links, a.Val)
			}
		}
	}
	return links
}

// addressAttributes contain addresses. Those of htmx do too.
var addressAttributes = map[string]bool{
	"href": true, "src": true, "action": true, "formaction": true, "hx-get": true, "hx-replace-url": true, "hx-push-url": true, "hx-target": true, "hx-select": true,
}

// addressOf describes the address in an attribute: its path on the server, without the query;
// or the whole value of a script, or of an attribute of htmx.
func (surface) addressOf(a html.Attribute) string {
	if strings.HasPrefix(a.Key, "hx-") && !strings.HasPrefix(a.Val, "/") {
		return "=" + a.Val
	}
	if !addressAttributes[a.Key] {
		return ""
	}
	u, err := url.Parse(a.Val)
	if err != nil {
		return "=" + a.Val
	}
	if u.Fragment != "" && u.Path == "" {
		return "=#"
	}
	return "=" + u.Scheme + "//" + u.Host + u.Path
}

// crawl visits each page without parameters and with each parameter set to the text, and then
// what they link to.
func crawl(t *testing.T, p *plan.Plan, text string) (surface, map[string]string) {
	t.Helper()
	const most = 200 // pages
	feed := NewFeed()
	feed.Publish(&Snapshot{Plan: p, Before: p, Time: now, Warnings: []string{text}})
	feed.Fail(text)
	s := NewServer(Options{Feed: feed, Hosts: []string{testHost}, Input: text})
	as := visitor(t, s)
	var queue []string
	parameters := []string{"gateway", "name", "q", "state", "access", "namespace", "url", "method", "header", "hostname", "limit"}
	for _, page := range pages() {
		path := strings.TrimSuffix(page.pattern, "{$}")
		queue = append(queue, path)
		all := url.Values{}
		for _, parameter := range parameters {
			queue = append(queue, path+"?"+url.Values{parameter: {text}}.Encode())
			all.Set(parameter, text)
		}
		all.Add("header", "x-a: "+text)
		queue = append(queue, path+"?"+all.Encode())
		for _, host := range []string{"shop." + text + ".example.com", "unknown.example.com"} {
			queue = append(queue, path+"?"+url.Values{"url": {"https://" + host + "/" + text + "?q=" + text}, "method": {"POST"}, "header": {"x-zz: " + text}}.Encode())
		}
	}
	found, bodies := surface{}, map[string]string{}
	for ; len(queue) > 0 && len(bodies) < most; queue = queue[1:] {
		page := queue[0]
		if _, visited := bodies[page]; visited {
			continue
		}
		w := ask(s, page, as)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s: got %d: %s", page, w.Code, w.Body)
		}
		bodies[page] = w.Body.String()
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			queue = append(queue, found.addDocument(t, page, bodies[page])...)
		}
	}
	return found, bodies
}
