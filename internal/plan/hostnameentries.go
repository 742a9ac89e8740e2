package plan

import (
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// HostnameEntry is a routing table entry for requests for one hostname.
type HostnameEntry struct {
	Entry
	// MatchText is the Match, with the Scheme if there is one.
	MatchText string
	Action    Action
	// Failure is why the entry returns an error; empty if it does not.
	Failure string
	// OriginRequest are the settings on the entry's listeners in JSON; empty if there are
	// none.
	OriginRequest string
	// ShadowedBy are the entries that answer all requests that this one matches. It is empty
	// if requests can reach the entry.
	ShadowedBy []ShadowingEntry
}

// ShadowingEntry is an entry that comes before another one.
type ShadowingEntry struct {
	Entry
	// Reason is why it comes first, as a clause about the other entry.
	Reason string `json:"reason"`
}

// ShadowedEntry is an entry that no request for its hostname reaches.
type ShadowedEntry struct {
	Entry
	// Before are the entries that answer all requests that it matches.
	Before []ShadowingEntry `json:"before"`
}

// Entries returns the entries for requests for the hostname, in the order in which they are
// tried. Requests that no entry matches get the status 404. If the hostname is closed, the
// entries would be tried if it was open.
func (r *HostnameRow) Entries() []HostnameEntry {
	if r.host == nil {
		return nil
	}
	shadowedBy := shadowsOf(r.host, r.plan.groups[r.Receiver()])
	all := make([]HostnameEntry, len(r.host.Entries))
	for i, e := range r.host.Entries {
		entry := newEntry(e)
		all[i] = HostnameEntry{
			Entry: entry, MatchText: entry.matchWithScheme(), Action: newAction(e.Action, r.plan.gateway.result.Table.ClusterDomain),
			ShadowedBy: shadowedBy[e],
		}
		if e.Action.Problem != nil {
			all[i].Failure = e.Action.Problem.Reason + ": " + e.Action.Problem.Cause
		}
		if e.OriginRequest != nil {
			all[i].OriginRequest = compact(e.OriginRequest)
		}
	}
	return all
}

// shadowsOf returns, by entry of the host that no request reaches, the entries before it. The
// host belongs to the group.
func shadowsOf(host *routing.Host, group *routing.Group) map[*routing.Entry][]ShadowingEntry {
	shadowedBy := map[*routing.Entry][]ShadowingEntry{}
	host.Reachable(func(e, before *routing.Entry) {
		shadowedBy[e] = append(shadowedBy[e], ShadowingEntry{newEntry(before), group.Explain(before, e)})
	})
	return shadowedBy
}

// newShadowedEntries returns the shadowed entries of the table, each once: a narrower hostname
// has the same shadows. It returns an empty list without a table.
func newShadowedEntries(t *routing.Table) []ShadowedEntry {
	all := []ShadowedEntry{}
	if t == nil {
		return all
	}
	groups := groupsOf(t)
	for _, host := range t.Hosts() {
		if len(host.Entries) < 2 {
			continue // most hostnames
		}
		receiver, _ := routing.MostSpecific(groups, host.Hostname)
		shadowedBy := shadowsOf(host, groups[receiver])
		for _, e := range host.Entries {
			if before := shadowedBy[e]; before != nil && e.Hostname == host.Hostname {
				all = append(all, ShadowedEntry{newEntry(e), before})
			}
		}
	}
	return all
}

// groupsOf returns the groups of the table by hostname.
func groupsOf(t *routing.Table) map[string]*routing.Group {
	groups := make(map[string]*routing.Group, len(t.Groups))
	for i := range t.Groups {
		groups[t.Groups[i].Hostname] = &t.Groups[i]
	}
	return groups
}
