package gateway

import (
	"cmp"
	"iter"
	"strings"
)

// A hostname is an exact name, a wildcard, or empty. The wildcard
// "*.example.com" matches every name below example.com, with any number of
// labels, but not example.com itself. The empty hostname matches every host.

// intersect returns the intersection of the hostname of a listener and the
// hostname of a route, which is the more specific of the two. It returns false
// when they do not intersect.
//
// "A Listener with `test.example.com` as the hostname matches HTTPRoutes that
// have either not specified any hostnames, or have specified at least one of
// `test.example.com` or `*.example.com`." (HTTPRouteSpec.Hostnames)
func intersect(a, b string) (string, bool) {
	switch {
	case covers(a, b):
		return b, true
	case covers(b, a):
		return a, true
	default:
		return "", false
	}
}

// covers reports whether wide matches every host that narrow matches.
func covers(wide, narrow string) bool {
	if wide == "" || wide == narrow {
		return true
	}
	suffix, wildcard := strings.CutPrefix(wide, "*")
	return wildcard && strings.HasSuffix(strings.TrimPrefix(narrow, "*"), suffix)
}

// compareSpecificity orders the hostnames of routes: exact names first, then
// wildcards, each from the longest to the shortest, then the empty hostname.
// Hostnames of the same length are in alphabetical order.
func compareSpecificity(a, b string) int {
	return cmp.Or(
		cmp.Compare(hostnameRank(a), hostnameRank(b)),
		cmp.Compare(len(b), len(a)),
		strings.Compare(a, b),
	)
}

// groupOrder orders the hostnames of listeners: exact names first, then wildcards
// from the most labels to the fewest, then the empty hostname.
type groupOrder struct{ rank, labels int }

func groupOrderOf(hostname string) groupOrder {
	order := groupOrder{rank: hostnameRank(hostname)}
	if order.rank == rankWildcard {
		order.labels = strings.Count(hostname, ".")
	}
	return order
}

func (o groupOrder) compare(other groupOrder) int {
	return cmp.Or(cmp.Compare(o.rank, other.rank), cmp.Compare(other.labels, o.labels))
}

const (
	rankExact = iota
	rankWildcard
	rankAny
)

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

// widerHostnames returns the other hostnames that cover the hostname: the
// wildcards from the narrowest to the widest, then the empty hostname.
func widerHostnames(hostname string) iter.Seq[string] {
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
