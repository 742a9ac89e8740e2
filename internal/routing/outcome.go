package routing

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
)

// Apply returns the path after the change, for a request that the match applies to. The
// table in HTTPPathModifier.ReplacePrefixMatch defines the slashes.
func (c *PathChange) Apply(path string, match Path) string {
	if !c.Prefix {
		return cmp.Or(c.Value, "/")
	}
	rest := strings.TrimPrefix(path, match.Value)
	replacement := strings.TrimSuffix(c.Value, "/")
	if rest != "" && !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	return cmp.Or(replacement+rest, "/")
}

// Location returns the Location header for a request that the entry redirects. The data
// plane that serves redirects compares paths with their escapes, which stay.
func (e *Entry) Location(r Request) string {
	redirect := e.Action.Redirect
	origin := cmp.Or(redirect.Scheme, string(r.scheme())) + "://" + cmp.Or(redirect.Hostname, r.Host)
	if port := redirect.LocationPort(r.scheme()); port != 0 {
		origin += ":" + strconv.Itoa(int(port))
	}
	path := escapedPath(r.Path)
	if redirect.Path != nil {
		path = redirect.Path.Apply(path, e.Match.Path)
	}
	return origin + path + r.querySuffix()
}

// url returns the request URL, in the form of [Entry.Location].
func (r Request) url() string {
	return string(r.scheme()) + "://" + r.Host + escapedPath(r.Path) + r.querySuffix()
}

// querySuffix returns the query with the question mark, or "".
func (r Request) querySuffix() string {
	if r.Query == "" {
		return ""
	}
	return "?" + r.Query
}

// escapedPath returns a request path for a URL. A data plane compares paths either
// decoded or with their escapes.
func escapedPath(path string) string {
	if decoded, err := url.PathUnescape(path); err == nil {
		return (&url.URL{Path: decoded, RawPath: path}).EscapedPath()
	}
	return (&url.URL{Path: path}).EscapedPath()
}

// LocationPort returns the port in the Location header for a request with the scheme, or
// 0 for none. The header omits the well-known port for its own scheme.
// (HTTPRequestRedirectFilter.Port)
func (r *Redirect) LocationPort(request Scheme) int32 {
	if isDefaultPort(cmp.Or(r.Scheme, string(request)), r.Port) {
		return 0
	}
	return r.Port
}

func isDefaultPort(scheme string, port int32) bool {
	return scheme == "http" && port == 80 || scheme == "https" && port == 443
}
