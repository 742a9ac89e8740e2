package gateway

import (
	"cmp"
	"iter"
	"strings"
)

// A hostname is an exact name, a wildcard ("*.example.com", which stands for
// every name below example.com, however many labels, but not for example.com
// itself), or empty for every host.

// intersect returns the hostname that both a listener and a route mean, the
// more specific of the two, and false when there is none.
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

// covers reports whether every host that narrow matches is matched by wide
// too.
func covers(wide, narrow string) bool {
	if wide == "" || wide == narrow {
		return true
	}
	suffix, wildcard := strings.CutPrefix(wide, "*")
	return wildcard && strings.HasSuffix(strings.TrimPrefix(narrow, "*"), suffix)
}

// compareSpecificity orders hostnames as a route wrote them: the longest exact
// name first, then the longest wildcard, then none; equals by the alphabet.
func compareSpecificity(a, b string) int {
	return cmp.Or(
		cmp.Compare(hostnameRank(a), hostnameRank(b)),
		cmp.Compare(len(b), len(a)),
		strings.Compare(a, b),
	)
}

// groupOrder orders the hostnames of listeners: exact names, then wildcards with
// more labels before those with fewer, then none.
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

// widerHostnames returns the wildcards that cover the hostname besides itself, the
// narrowest first, and at last the empty hostname.
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
