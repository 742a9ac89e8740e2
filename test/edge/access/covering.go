package access

import (
	"regexp"
	"slices"
	"strings"
)

// Covering returns the application that protects a URL, and whether there is one. "The more
// specific rule takes precedence", and inherits nothing. Which of a narrower hostname and a
// longer path is more specific is uncertain; here it is the hostname.
func (d *Database) Covering(account, host, path string) (Application, bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	var best *application
	var bestDomain pattern
	for _, candidate := range a.applications {
		if !slices.Contains(protecting, candidate.parsed.Type) {
			continue
		}
		for _, domain := range candidate.parsed.domains() {
			p := newPattern(domain)
			if p.covers(host, path) && (best == nil || p.narrowerThan(bestDomain)) {
				best, bestDomain = candidate, p
			}
		}
	}
	if best == nil {
		return Application{}, false
	}
	return best.view(a), true
}

// pattern is a domain of an application.
type pattern struct{ host, path string }

func newPattern(domain string) pattern {
	host, path, _ := strings.Cut(domain, "/")
	return pattern{host, path}
}

// covers reports whether the pattern covers a URL. In a hostname, a wildcard stands for any
// part of one label.
func (p pattern) covers(host, path string) bool {
	patterns, labels := strings.Split(p.host, "."), strings.Split(host, ".")
	if len(patterns) != len(labels) {
		return false
	}
	for i, pattern := range patterns {
		if !matchesLabel(pattern, labels[i]) {
			return false
		}
	}
	return p.coversPath(strings.TrimPrefix(path, "/"))
}

func matchesLabel(pattern, label string) bool {
	prefix, suffix, wildcard := strings.Cut(pattern, "*")
	if !wildcard {
		return pattern == label
	}
	return len(label) >= len(prefix)+len(suffix) && strings.HasPrefix(label, prefix) && strings.HasSuffix(label, suffix)
}

// coversPath reports whether the pattern's path covers a path without its first slash. It
// covers everything below it. In a path, a wildcard stands for several segments: "alpha/*"
// covers "alpha/one", but not "alpha".
func (p pattern) coversPath(path string) bool {
	if p.path == "" {
		return true
	}
	parts := strings.Split(p.path, "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	ok, _ := regexp.MatchString("^"+strings.Join(parts, ".*")+"(/.*)?$", path) // the expression is valid
	return ok
}

// narrowerThan compares two patterns that cover the same URL.
func (p pattern) narrowerThan(other pattern) bool {
	if n, m := strings.Count(p.host, "*"), strings.Count(other.host, "*"); n != m {
		return n < m
	}
	if len(p.host) != len(other.host) {
		return len(p.host) > len(other.host)
	}
	return len(strings.ReplaceAll(p.path, "*", "")) > len(strings.ReplaceAll(other.path, "*", ""))
}
