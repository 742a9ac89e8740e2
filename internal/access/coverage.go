package access

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// unprotecting are the types of applications that protect no hostname. An application of an
// unknown type does.
var unprotecting = []string{"app_launcher", "biso", "bookmark", "dash_sso", "infrastructure", "saas", "warp"}

// coverage finds the applications without a tag of this installation that cover a hostname.
type coverage struct {
	// byHost has the applications by the hostnames and wildcards that they name.
	byHost map[string][]*provider.Application
	// patterns are the names with a wildcard, each with its labels, sorted.
	patterns []pattern
}

type pattern struct {
	host   string
	labels []string
}

// newCoverage returns the coverage of the applications, which are sorted by their IDs.
func newCoverage(applications []*provider.Application) *coverage {
	c := &coverage{byHost: map[string][]*provider.Application{}}
	for _, a := range applications {
		if slices.Contains(unprotecting, a.Type) {
			continue
		}
		for _, domain := range a.Domains {
			host := hostOf(domain)
			if len(c.byHost[host]) == 0 && strings.Contains(host, "*") {
				c.patterns = append(c.patterns, pattern{host, strings.Split(host, ".")})
			}
			if !slices.Contains(c.byHost[host], a) {
				c.byHost[host] = append(c.byHost[host], a)
			}
		}
	}
	slices.SortFunc(c.patterns, func(a, b pattern) int { return strings.Compare(a.host, b.host) })
	return c
}

// hostOf returns the hostname or the wildcard in what an application covers.
func hostOf(domain string) string {
	host, _, _ := strings.Cut(domain, "/")
	return host
}

// exact returns the application that covers exactly the hostname or the wildcard, without a
// path, or nil. Cloudflare has at most one.
func (c *coverage) exact(name string) *provider.Application {
	for _, a := range c.byHost[name] {
		if slices.Contains(a.Domains, name) {
			return a
		}
	}
	return nil
}

// covering returns an application that covers the hostname, all hostnames of the wildcard,
// or some of their paths, or nil. An application for exactly this name precedes.
func (c *coverage) covering(name string) *provider.Application {
	if a := c.exact(name); a != nil {
		return a
	}
	if all := c.byHost[name]; len(all) > 0 {
		return all[0]
	}
	labels := strings.Split(name, ".")
	for _, p := range c.patterns {
		if p.covers(labels) {
			return c.byHost[p.host][0]
		}
	}
	return nil
}

// covers reports whether the pattern covers the name with the labels. A wildcard covers one
// label, or the rest of one. (Source: Cloudflare's documentation of application paths.)
func (p pattern) covers(labels []string) bool {
	if len(labels) != len(p.labels) {
		return false
	}
	for i, label := range labels {
		if !matchesLabel(p.labels[i], label) {
			return false
		}
	}
	return true
}

// matchesLabel reports whether the label of a pattern, in which each asterisk stands for any
// characters, covers the label. Only the label "*" covers itself.
func matchesLabel(glob, label string) bool {
	parts := strings.Split(glob, "*")
	if len(parts) == 1 || label == "*" {
		return glob == label
	}
	rest, ok := strings.CutPrefix(label, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// parentWildcard returns the wildcard that covers the hostname at Cloudflare: the one of its
// own level. A wildcard has none, because it covers one level itself.
func parentWildcard(name string) string {
	if strings.HasPrefix(name, "*.") {
		return ""
	}
	_, rest, ok := strings.Cut(name, ".")
	if !ok {
		return ""
	}
	return "*." + rest
}
