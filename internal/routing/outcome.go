package routing

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
)

// Apply returns the path of a request after the change, for a request that the
// match applies to. The table of HTTPPathModifier.ReplacePrefixMatch defines the
// slashes.
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

// Location returns the Location header of a redirect for a request that the entry
// answers. A request without a scheme counts as https, which visitors of
// Cloudflare's edge use.
func (e *Entry) Location(r Request) string {
	redirect := e.Action.Redirect
	scheme := cmp.Or(redirect.Scheme, "https")
	location := scheme + "://" + cmp.Or(redirect.Hostname, r.Host)
	if redirect.Port != 0 && !isDefaultPort(scheme, redirect.Port) {
		location += ":" + strconv.Itoa(int(redirect.Port))
	}
	path := (&url.URL{Path: r.Path}).EscapedPath()
	if redirect.Path != nil {
		path = redirect.Path.Apply(path, e.Match.Path) // the replacement is escaped already
	}
	if location += path; r.Query != "" {
		location += "?" + r.Query
	}
	return location
}

func isDefaultPort(scheme string, port int32) bool {
	return scheme == "http" && port == 80 || scheme == "https" && port == 443
}
