package routing

// Attempt is an entry that a data plane compares with a request.
type Attempt struct {
	Entry *Entry
	// Matches reports whether the entry matches the request in one of the schemes.
	Matches bool
	// Reason is why the entry does not answer, as a clause about this entry; empty if it
	// answers.
	Reason string
}

// Attempts returns the entries for the host of a request, in the order in which they are
// tried: all entries of [Table.Answer], and the ones before the answer that do not
// match. Without an answer, it returns every entry for the host in the group to which the
// request belongs.
func (t *Table) Attempts(r Request) []Attempt {
	type place struct {
		group string
		entry *Entry
	}
	answer, shadowed := t.Answer(r)
	reasons := make(map[place]string, len(shadowed))
	for _, s := range shadowed {
		reasons[place{s.Group, s.Entry}] = s.Reason
	}
	var all []Attempt
	owner, answered := t.Group(r.Host), false
	for i := range t.Groups {
		g := &t.Groups[i]
		for e := range g.all() {
			reason, isShadowed := reasons[place{g.Hostname, e}]
			switch {
			case isShadowed:
				all = append(all, Attempt{Entry: e, Matches: true, Reason: reason})
			case g != owner || answered || !Covers(e.Hostname, r.Host):
			case e == answer:
				all, answered = append(all, Attempt{Entry: e, Matches: true}), true
			default:
				all = append(all, Attempt{Entry: e, Reason: e.Match.Mismatch(r)})
			}
		}
	}
	return all
}
