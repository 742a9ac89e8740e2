package routing

import (
	"slices"
	"sync/atomic"
)

// knownLists are lists that a table has returned. They make the same lists of a later table
// cheap, which differs in few entries. A table can be read by several goroutines.
type knownLists struct{ hosts atomic.Pointer[knownHosts] }

// knownHosts are the lists of [Table.Hosts] for the other hostnames.
type knownHosts struct {
	also  []string
	lists []*Host
}

// KeepLists makes the table keep the lists of [Table.Hosts], for itself and for
// [Table.Replace]. The table takes space for them until it is dropped.
func (t *Table) KeepLists() { t.known = &knownLists{} }

// find returns the lists for the other hostnames, or nil if they are not known. k can be nil.
func (k *knownLists) find(also []string) []*Host {
	if k == nil {
		return nil
	}
	if known := k.hosts.Load(); known != nil && slices.Equal(known.also, also) {
		return known.lists
	}
	return nil
}

// keep keeps the lists, unless k is nil.
func (k *knownLists) keep(also []string, lists []*Host) {
	if k != nil {
		k.hosts.Store(&knownHosts{slices.Clone(also), lists})
	}
}

// Replace returns the table with other entries in the place of some. A new entry differs
// from the old one only in its Action, so the order and the hostnames stay. The tables
// share everything else, including the lists in [Table.Hosts] that have no replaced entry.
func (t *Table) Replace(replaced map[*Entry]*Entry) *Table {
	next := *t
	next.Groups = slices.Clone(t.Groups)
	for i := range next.Groups {
		g := &next.Groups[i]
		g.Redirects, g.Entries = replaceIn(g.Redirects, replaced), replaceIn(g.Entries, replaced)
	}
	if t.known == nil {
		return &next
	}
	next.known = &knownLists{}
	if known := t.known.hosts.Load(); known != nil {
		lists := slices.Clone(known.lists)
		for i, host := range lists {
			lists[i] = host.replace(replaced)
		}
		next.known.hosts.Store(&knownHosts{known.also, lists})
	}
	return &next
}

// replace returns the same host if it contains no replaced entry.
func (h *Host) replace(replaced map[*Entry]*Entry) *Host {
	if !slices.ContainsFunc(h.Entries, func(e *Entry) bool { return replaced[e] != nil }) {
		return h
	}
	next := *h
	next.Entries = replaceIn(h.Entries, replaced)
	return &next
}

// replaceIn returns the same slice if it contains no replaced entry.
func replaceIn(entries []*Entry, replaced map[*Entry]*Entry) []*Entry {
	isShared := true
	for i, e := range entries {
		other, ok := replaced[e]
		if !ok {
			continue // most entries
		}
		if isShared {
			entries, isShared = slices.Clone(entries), false
		}
		entries[i] = other
	}
	return entries
}
