package routing

import (
	"cmp"
	"iter"
	"strings"
)

// A hostname is an exact name, a wildcard, or empty. The wildcard
// "*.example.com" matches every name below example.com, with any number of
// labels, but not example.com itself. The empty hostname matches every host.

// Covers reports whether the hostname wide matches every host that the hostname
// narrow matches.
func Covers(wide, narrow string) bool {
	if wide == "" || wide == narrow {
		return true
	}
	suffix, wildcard := strings.CutPrefix(wide, "*")
	return wildcard && strings.HasSuffix(strings.TrimPrefix(narrow, "*"), suffix)
}

// Intersect returns the hostname that a listener hostname and a route hostname share,
// which is the more specific one. It returns false when they do not intersect.
//
// "A Listener with `test.example.com` as the hostname matches HTTPRoutes that have either
// not specified any hostnames, or have specified at least one of `test.example.com` or
// `*.example.com`." (HTTPRouteSpec.Hostnames)
func Intersect(a, b string) (string, bool) {
	switch {
	case Covers(a, b):
		return b, true
	case Covers(b, a):
		return a, true
	default:
		return "", false
	}
}

// WiderHostnames returns the other hostnames that cover the hostname: the
// wildcards from the narrowest to the widest, then the empty hostname.
func WiderHostnames(hostname string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if hostname == "" {
			return
		}
		_, rest, _ := strings.Cut(strings.TrimPrefix(hostname, "*."), ".")
		for rest != "" {
			if !yield("*." + rest) {
				return
			}
			_, rest, _ = strings.Cut(rest, ".")
		}
		yield("")
	}
}

// MostSpecific returns the most specific hostname in the map that covers the hostname.
func MostSpecific[V any](hostnames map[string]V, hostname string) (string, bool) {
	if _, ok := hostnames[hostname]; ok {
		return hostname, true
	}
	for wide := range WiderHostnames(hostname) {
		if _, ok := hostnames[wide]; ok {
			return wide, true
		}
	}
	return "", false
}

// HasWider reports whether the map contains another hostname that covers the
// hostname.
func HasWider[V any](hostnames map[string]V, hostname string) bool {
	if len(hostnames) == 0 {
		return false
	}
	for wide := range WiderHostnames(hostname) {
		if _, ok := hostnames[wide]; ok {
			return true
		}
	}
	return false
}

// CompareGroups orders listener hostnames: exact names first, then wildcards from the
// most labels to the fewest, then the empty hostname. Hostnames with equal rank are in
// alphabetical order.
func CompareGroups(a, b string) int {
	rank := hostnameRank(a)
	if order := cmp.Compare(rank, hostnameRank(b)); order != 0 {
		return order
	}
	if rank == rankWildcard {
		if order := cmp.Compare(strings.Count(b, "."), strings.Count(a, ".")); order != 0 {
			return order
		}
	}
	return strings.Compare(a, b)
}

// CompareRouteHostnames orders route hostnames: exact names first, then wildcards, each
// from the longest to the shortest, then the empty hostname. Equally long hostnames are
// in alphabetical order.
func CompareRouteHostnames(a, b string) int {
	return cmp.Or(
		cmp.Compare(hostnameRank(a), hostnameRank(b)),
		cmp.Compare(len(b), len(a)),
		strings.Compare(a, b),
	)
}

const (
	rankExact = iota
	rankWildcard
	rankAny
)

// IsExact reports whether a table hostname covers a single host.
func IsExact(hostname string) bool { return hostnameRank(hostname) == rankExact }

func hostnameRank(hostname string) int {
	switch {
	case hostname == "":
		return rankAny
	case strings.HasPrefix(hostname, "*."):
		return rankWildcard
	default:
		return rankExact
	}
}
