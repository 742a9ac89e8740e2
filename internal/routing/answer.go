package routing

import "slices"

// Shadowed is an entry that matches a request without answering it.
type Shadowed struct {
	Entry *Entry
	// Group is the hostname of the group of the entry.
	Group string
	// Reason is why another entry answers, as a clause about this entry.
	Reason string
}

// Answer returns the entry that answers the request, or nil when the request gets
// the status 404. It also returns all other entries that match the request, in the
// order in which they would answer if the entries before them did not exist.
func (t *Table) Answer(r Request) (*Entry, []Shadowed) {
	var answer *Entry
	var shadowed []Shadowed
	owner := t.Group(r.Host)
	skips := owner.confinement(r.Host)
	for i := range t.Groups {
		g := &t.Groups[i]
		if !Covers(g.Hostname, r.Host) {
			continue
		}
		for j := range g.Entries {
			switch e := &g.Entries[j]; {
			case !Covers(e.Hostname, r.Host) || !e.Match.Matches(r):
			case g != owner:
				shadowed = append(shadowed, Shadowed{e, g.Hostname, explainIsolation(owner, g)})
			case answer == nil && skips(e):
				shadowed = append(shadowed, Shadowed{e, g.Hostname, explanationConfined})
			case answer == nil:
				answer = e
			default:
				shadowed = append(shadowed, Shadowed{e, g.Hostname, explain(answer, e)})
			}
		}
	}
	return answer, shadowed
}

const explanationConfined = "a route of another namespace names a narrower hostname, and the Gateway has no room to repeat the rule there"

// confinement returns a function that reports whether an entry that covers the host does
// not apply to it, because of a confined route.
func (g *Group) confinement(host string) func(*Entry) bool {
	isConfined := func(e Entry) bool { return e.Source.Route.Confined }
	if g == nil || !slices.ContainsFunc(g.Entries, isConfined) {
		return func(*Entry) bool { return false }
	}
	entries := g.Index().EntriesFor(host)
	return func(e *Entry) bool { return !slices.Contains(entries, e) }
}

// Group returns the group that a request with the host belongs to, or nil when no
// group covers the host. The feature GatewayHTTPListenerIsolation requires the most
// specific listener.
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
