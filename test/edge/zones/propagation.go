package zones

import (
	"slices"
	"time"
)

// event is one changed record on its way to the nameservers.
type event struct {
	id            string // the record's
	due           time.Time
	before, after *Record // before is nil for a new record, and after for a deleted one
}

// propagate makes the nameservers notice a change after the delay, but not before an earlier
// change of the same record.
func (z *zone) propagate(e event, delay time.Duration) {
	e.due = time.Now().Add(delay)
	for _, earlier := range z.pending {
		if earlier.id == e.id && earlier.due.After(e.due) {
			e.due = earlier.due
		}
	}
	z.pending = append(z.pending, e)
}

// settle applies the changes that are due at the time to the served records.
func (z *zone) settle(now time.Time) {
	slices.SortStableFunc(z.pending, func(a, b event) int { return a.due.Compare(b.due) })
	for len(z.pending) > 0 && !z.pending[0].due.After(now) {
		z.serve(z.pending[0])
		z.pending = z.pending[1:]
	}
}

func (z *zone) serve(e event) {
	if e.before != nil {
		kept := slices.DeleteFunc(slices.Clone(z.served[e.before.Name]), func(r Record) bool { return r.ID == e.id })
		if z.served[e.before.Name] = kept; len(kept) == 0 {
			delete(z.served, e.before.Name)
		}
	}
	if e.after != nil {
		z.served[e.after.Name] = append(z.served[e.after.Name], *e.after)
	}
}

// Settle makes the nameservers notice all changes now.
func (d *Database) Settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, z := range d.zones {
		for i := range z.pending {
			z.pending[i].due = time.Time{} // sorting is stable, so the order within a record remains
		}
		z.settle(time.Now())
	}
}

// Pending returns how many changes the nameservers have not noticed yet.
func (d *Database) Pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, z := range d.zones {
		z.settle(time.Now())
		total += len(z.pending)
	}
	return total
}
