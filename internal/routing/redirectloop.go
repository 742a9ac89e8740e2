package routing

import (
	"net/textproto"
	"path"
	"slices"
	"strings"
)

// RedirectLoop is an entry that redirects requests with the Schemes to their own URL.
type RedirectLoop struct {
	Entry *Entry
	// Group is the hostname of the group that the entry belongs to.
	Group   string
	Schemes Schemes
}

// maxSelfRedirects is how many redirecting entries for one hostname are compared with all
// entries before them. It keeps the time proportional to the entries.
const maxSelfRedirects = 100

// RedirectLoops returns the entries that certainly redirect in a loop: an entry answers
// at least one request, and visitors who follow its redirects send the same request again
// and again. It decides about each entry alone, so it finds no loop through several
// entries. To be fast, it compiles no regular expressions: it omits entries with
// expressions, and entries whose requests an earlier expression could match.
func (t *Table) RedirectLoops() []RedirectLoop {
	var loops []RedirectLoop
	for i := range t.Groups {
		loops = append(loops, t.Groups[i].redirectLoops()...)
	}
	return loops
}

func (g *Group) redirectLoops() []RedirectLoop {
	var loops []RedirectLoop
	var index Index
	hosts, candidates := map[string][]*Entry{}, map[string]int{}
	for _, e := range g.Entries {
		schemes := e.selfRedirects()
		if schemes == 0 || candidates[e.Hostname] == maxSelfRedirects {
			continue // most entries
		}
		candidates[e.Hostname]++
		if index.group == nil {
			index = g.Index()
		}
		if hosts[e.Hostname] == nil {
			hosts[e.Hostname] = index.EntriesFor(e.Hostname)
		}
		if schemes = e.answered(hosts[e.Hostname], schemes); schemes != 0 {
			loops = append(loops, RedirectLoop{Entry: e, Group: g.Hostname, Schemes: schemes})
		}
	}
	return loops
}

// selfRedirects returns the schemes for which the entry redirects every request to its
// own URL, or to one URL that it redirects to itself, so that the match also applies to
// the next request of the visitor.
func (e *Entry) selfRedirects() Schemes {
	redirect := e.Action.Redirect
	if redirect == nil || e.InsteadOf.Route != nil || e.Action.changesNextRequest() {
		return 0 // most entries
	}
	if _, keepsPath := redirect.Path.fixedPath(e.Match.Path); !keepsPath || !redirect.keepsHostname(e.Hostname) || !redirect.keepsMethodOf(e.Match) {
		return 0
	}
	var schemes Schemes
	for _, scheme := range []Scheme{SchemeHTTP, SchemeHTTPS} {
		if e.Scheme.Covers(scheme) && redirect.keepsScheme(scheme) {
			schemes = schemes.With(scheme)
		}
	}
	return schemes
}

// keepsHostname reports whether the redirect keeps every host that the hostname covers.
func (r *Redirect) keepsHostname(hostname string) bool {
	return r.Hostname == "" || r.Hostname == hostname
}

// keepsScheme reports whether the redirect keeps the scheme and its default port.
func (r *Redirect) keepsScheme(scheme Scheme) bool {
	return (r.Scheme == "" || r.Scheme == string(scheme)) && r.LocationPort(scheme) == 0
}

// changesNextRequest reports whether response headers, such as Set-Cookie, can change the
// next request of the visitor.
func (a *Action) changesNextRequest() bool { return a.Response != nil }

// fixedPath returns a path that the match applies to and the change keeps. It returns
// false if the change neither keeps every path that the match applies to nor replaces all
// of them by this one. It accepts nil.
func (c *PathChange) fixedPath(match Path) (fixed string, ok bool) {
	fixed = match.Value
	if match.Kind == PathPrefix {
		fixed += "/-"
	}
	switch {
	case c == nil:
		return fixed, match.Kind != PathExpression
	case c.Prefix:
		return fixed, match.Kind == PathPrefix && strings.TrimSuffix(c.Value, "/") == match.Value
	default:
		fixed = c.Apply("", match)
		return fixed, fixed == match.Value && match.Kind == PathExact || isPlain(fixed) && match.Kind == PathPrefix && match.Matches(fixed)
	}
}

// isPlain reports whether no data plane normalizes the path before it compares it.
func isPlain(p string) bool { return path.Clean(p) == p && !strings.ContainsAny(p, `%?#;\`) }

// keepsMethodOf reports whether the match also applies to the next request from every
// visitor who follows the redirect. Where the method can change, so can headers that
// describe a body.
func (r *Redirect) keepsMethodOf(m *Match) bool {
	return r.nextMethod(m.Method) == m.Method || m.Method == "" && len(m.Headers) == 0
}

// nextMethod returns the method that a visitor who follows the redirect uses next. It
// returns GET where visitors differ, or the request can have any method.
func (r *Redirect) nextMethod(method string) string {
	isKept := r.Status == 307 || r.Status == 308
	if isKept || method == "HEAD" {
		return method
	}
	return "GET"
}

// answered returns the schemes, among the given ones, for which the entry certainly
// answers a request, and the next request of every visitor. entries are all entries for
// its hostname, in order.
func (e *Entry) answered(entries []*Entry, schemes Schemes) Schemes {
	var answered Schemes
	for _, scheme := range []Scheme{SchemeHTTP, SchemeHTTPS} {
		if schemes.Has(scheme) && e.isFirst(entries, scheme) {
			answered = answered.With(scheme)
		}
	}
	return answered
}

func (e *Entry) isFirst(entries []*Entry, scheme Scheme) bool {
	r, ok := e.example(scheme)
	if !ok {
		return false
	}
	next := e.Action.Redirect.nextMethod(e.Match.Method)
	for _, before := range entries {
		switch {
		case before == e:
			return true
		case !before.Scheme.Covers(scheme):
		case before.Match.mayMatch(r), before.takesMethod(next, e):
			return false
		}
	}
	return false
}

// takesMethod reports whether the entry takes precedence over the other because of the
// method alone, for some of its paths.
func (e *Entry) takesMethod(method string, other *Entry) bool {
	if e.Match.Method == "" || e.Match.Method != method || other.Match.Method == method {
		return false // most entries
	}
	_, relation := e.Match.Path.intersect(other.Match.Path)
	return relation != Disjoint
}

// example returns a request that the entry matches, and that matches few other entries.
// It returns false for an entry with expressions.
func (e *Entry) example(scheme Scheme) (Request, bool) {
	m := e.Match
	isExpression := func(v ValueMatch) bool { return v.Expression }
	fixed, ok := e.Action.Redirect.Path.fixedPath(m.Path)
	if !ok || slices.ContainsFunc(m.Headers, isExpression) || slices.ContainsFunc(m.Query, isExpression) {
		return Request{}, false
	}
	r := Request{Scheme: scheme, Path: fixed, Method: m.Method, Headers: map[string][]string{}}
	if !strings.HasPrefix(e.Hostname, "*.") {
		r.Host = e.Hostname
	}
	for _, h := range m.Headers {
		r.Headers[textproto.CanonicalMIMEHeaderKey(h.Name)] = []string{h.Value}
	}
	var query []string
	for _, q := range m.Query {
		query = append(query, q.Name+"="+q.Value)
	}
	r.Query = strings.Join(query, "&")
	return r, m.Matches(r)
}

// IsRedirectLoop reports whether the entry, which answers the request, redirects it to
// its own URL, and answers the next request of the visitor too.
func (t *Table) IsRedirectLoop(e *Entry, r Request) bool {
	redirect := e.Action.Redirect
	if redirect == nil || e.Action.changesNextRequest() || e.Location(r) != r.url() {
		return false
	}
	r.Method = redirect.nextMethod(r.method())
	next, _ := t.Answer(r)
	return next == e
}
