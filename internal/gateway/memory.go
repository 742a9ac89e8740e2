package gateway

// Memory holds the last decision about one Gateway and one data plane, so that the next one
// decides only about what has changed. The zero value is empty.
//
// A Memory is not safe for concurrent use. It keeps its Snapshots, so nothing may change
// them later, and their objects stay in memory.
type Memory struct{ last *decision }

// Build returns the same Result as [Build], which has no memory. It takes over the Result of
// the call before: only its Table and its Reports stay as they were. m can be nil.
func (m *Memory) Build(s *Snapshot, o Options) *Result {
	if m == nil {
		return build(s, o, nil).Result
	}
	last := m.last
	m.last = nil // a panic must not leave a decision that is half changed
	before := newEarlier(last)
	if last == nil || !last.update(s, o) {
		last = build(s, o, before)
		last.kept = last.newKept(before)
		if last.Table != nil {
			last.Table.KeepLists()
		}
	}
	m.last = last
	return last.Result
}
