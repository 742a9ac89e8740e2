package envoy

import "github.com/tunnel-gateway/tunnel-gateway/internal/routing"

// The sizes of the parts of an entry. Envoy keeps the route message and what it compiles
// from it, so that each part takes more memory than its text.
const (
	// sizePerRule is the size that counts as one rule.
	sizePerRule = 1 << 10
	// partSize is added to the texts of a header, a query parameter, an origin, a backend or a
	// mirror.
	partSize = 128
	// originExpressionSize is added to an origin that Envoy compares by an expression.
	originExpressionSize = 512
	// freeAuthorities is the size of the certificate authorities that do not count: a few
	// certificates.
	freeAuthorities = 4 << 10
)

// entryCost returns how many rules an entry with the match and the action counts as: its
// routes, times one more for each [sizePerRule] bytes in its values. With the largest
// values that the API accepts, a tenant could otherwise exhaust the memory of the
// controller and Envoy.
func entryCost(m *routing.Match, a *routing.Action) int {
	size, routes := matchSize(m)+changesSize(a.Response)+corsSize(a.CORS), countRoutes(m)
	if a.Redirect != nil {
		routes *= countRedirects(a.Redirect)
		size += len(a.Redirect.Hostname) + pathSize(a.Redirect.Path)
	}
	if a.Forward != nil {
		size += forwardSize(a.Forward)
	}
	return routes * (1 + size/sizePerRule)
}

func matchSize(m *routing.Match) int {
	size := len(m.Path.Value)
	for _, values := range [][]routing.ValueMatch{m.Headers, m.Query} {
		for _, v := range values {
			size += partSize + len(v.Name) + len(v.Value)
		}
	}
	return size
}

func forwardSize(f *routing.Forward) int {
	size := filtersSize(f.Filters)
	for i := range f.Backends {
		b := &f.Backends[i]
		size += filtersSize(b.Filters) + changesSize(b.Response) + authoritiesSize(b.Backend.TLS)
		if len(f.Backends) > 1 {
			size += partSize + len(b.Backend.Service.Namespace) + len(b.Backend.Service.Name)
		}
	}
	return size
}

func filtersSize(f *routing.Filters) int {
	if f == nil {
		return 0
	}
	size := changesSize(f.Request) + len(f.Rewrite.Hostname) + pathSize(f.Rewrite.Path)
	for _, m := range f.Mirrors {
		size += partSize + len(m.Backend.Service.Namespace) + len(m.Backend.Service.Name) + authoritiesSize(m.Backend.TLS)
	}
	return size
}

// authoritiesSize returns the size of large certificate authorities. Each cluster has its
// own copy.
func authoritiesSize(tls *routing.BackendTLS) int {
	if tls == nil || len(tls.Authorities) <= freeAuthorities {
		return 0
	}
	return len(tls.Authorities)
}

func changesSize(c *routing.HeaderChanges) int {
	if c == nil {
		return 0
	}
	size := 0
	for _, headers := range [][]routing.Header{c.Set, c.Add} {
		for _, h := range headers {
			size += partSize + len(h.Name) + len(h.Value)
		}
	}
	for _, name := range c.Remove {
		size += len(name)
	}
	return size
}

func pathSize(c *routing.PathChange) int {
	if c == nil {
		return 0
	}
	return len(c.Value)
}

func corsSize(c *routing.CORS) int {
	if c == nil {
		return 0
	}
	size := 0
	for _, texts := range [][]string{c.AllowOrigins, c.AllowMethods, c.AllowHeaders, c.ExposeHeaders} {
		for _, text := range texts {
			size += len(text)
		}
	}
	for _, origin := range c.AllowOrigins {
		for _, m := range originMatchers(origin) {
			size += partSize
			if m.GetSafeRegex() != nil {
				size += originExpressionSize
			}
		}
	}
	return size
}
