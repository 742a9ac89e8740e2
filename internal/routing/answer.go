package routing

import (
	"iter"
	"slices"
)

// Shadowed is an entry that matches a request without answering it.
type Shadowed struct {
	Entry *Entry
	// Group is the hostname of the group that the entry belongs to.
	Group string
	// Reason is why another entry answers, as a clause about this entry.
	Reason string
}

// Answer returns the entry that answers the request, or nil when the request gets the
// status 404, or 403 if its hostname is closed. It also returns all other entries that match the request in one of the
// schemes, in the order in which they would answer if the entries before them did not exist.
func (t *Table) Answer(r Request) (*Entry, []Shadowed) {
	var answer *Entry
	var shadowed []Shadowed
	owner := t.Group(r.Host)
	skips, isClosed := owner.confinement(r.Host), t.Access.IsClosed(r.Host)
	for i := range t.Groups {
		g := &t.Groups[i]
		if !Covers(g.Hostname, r.Host) {
			continue
		}
		for e := range g.all() {
			switch {
			case !e.matchesAnyScheme(r):
			case g != owner:
				shadowed = append(shadowed, Shadowed{e, g.Hostname, explainIsolation(owner, g)})
			case !e.Matches(r):
				shadowed = append(shadowed, Shadowed{e, g.Hostname, explainScheme(e)})
			case isClosed:
				shadowed = append(shadowed, Shadowed{e, g.Hostname, explanationClosed})
			case answer == nil && skips(e):
				shadowed = append(shadowed, Shadowed{e, g.Hostname, explanationConfined})
			case answer == nil:
				answer = e
			default:
				shadowed = append(shadowed, Shadowed{e, g.Hostname, g.Explain(answer, e)})
			}
		}
	}
	return answer, shadowed
}

// all returns the Redirects and the Entries, in the order in which they are tried.
func (g *Group) all() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, entries := range [][]*Entry{g.Redirects, g.Entries} {
			for _, e := range entries {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Explain describes why an entry of the group comes after the answer, another one, as a
// clause about the entry.
func (g *Group) Explain(answer, e *Entry) string {
	switch {
	case g.borrows(answer) && !g.borrows(e):
		return "a redirect to https answers requests with http first"
	case answer.InsteadOf == e.InsteadOf:
		return explain(answer, e)
	case answer.InsteadOf.Route != nil:
		return "an HTTPS listener answers first, instead of a redirect to https"
	default:
		return "it only answers instead of a redirect to https that comes later"
	}
}

// borrows reports whether the entry is one of the Redirects.
func (g *Group) borrows(e *Entry) bool { return slices.Contains(g.Redirects, e) }

func explainScheme(e *Entry) string { return "it only answers requests with " + string(e.Scheme) }

const explanationConfined = "a route in another namespace names a narrower hostname, and the Gateway has no room to repeat the rule there"

const explanationClosed = "the hostname must be protected by Cloudflare Access, and is closed until it is"

// confinement returns a function that reports whether an entry that covers the host does
// not apply to it, because of a confined route.
func (g *Group) confinement(host string) func(*Entry) bool {
	isConfined := func(e *Entry) bool { return e.Source.Route.Confined }
	if g == nil || !slices.ContainsFunc(g.Entries, isConfined) {
		return func(*Entry) bool { return false }
	}
	entries := g.Index().EntriesFor(host)
	return func(e *Entry) bool { return !slices.Contains(entries, e) }
}

// Group returns the group that a request with the host belongs to, or nil when no group
// covers the host. The feature GatewayHTTPListenerIsolation requires the most specific
// listener.
func (t *Table) Group(host string) *Group {
	for i := range t.Groups {
		if Covers(t.Groups[i].Hostname, host) {
			return &t.Groups[i]
		}
	}
	return nil
}

func explainIsolation(owner, other *Group) string {
	return "the request belongs to the listener for " + QuoteHostname(owner.Hostname) +
		" and never falls through to the listener for " + QuoteHostname(other.Hostname)
}
