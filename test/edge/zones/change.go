package zones

import (
	"slices"
	"time"
)

// Batch is several changes, which the database applies in the order of these fields, or
// not at all.
type Batch struct {
	Deletes []Fields `json:"deletes"` // only the ID matters
	Patches []Fields `json:"patches"` // fields that are not set keep their value
	Puts    []Fields `json:"puts"`    // fields that are not set get their default
	Posts   []Fields `json:"posts"`
}

// Result is the records that a batch has deleted, changed or created.
type Result struct {
	Deletes []Record `json:"deletes"`
	Patches []Record `json:"patches"`
	Puts    []Record `json:"puts"`
	Posts   []Record `json:"posts"`
}

// Apply applies a batch to a zone. If an operation fails, it changes nothing and returns
// the first error, an [*Error].
func (d *Database) Apply(id string, b Batch) (Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	z := d.mustFind(id)
	if n := len(b.Deletes) + len(b.Patches) + len(b.Puts) + len(b.Posts); n > z.batchLimit() {
		// The documentation states the limit, but not the error.
		return Result{}, invalid(CodeInvalidRecord, "DNS Validation Error: a batch can contain %d operations.", z.batchLimit())
	}
	t := &transaction{zone: z.Zone, fixedTypes: d.options.FixedTypes, now: time.Now().UTC(), records: slices.Clone(z.records)}
	result := Result{
		Deletes: t.each(b.Deletes, t.remove),
		Patches: t.each(b.Patches, t.patch),
		Puts:    t.each(b.Puts, t.put),
		Posts:   t.each(b.Posts, t.create),
	}
	if t.err != nil {
		return Result{}, t.err
	}
	z.records = t.records
	for _, e := range t.events {
		z.propagate(e, d.options.Delay())
	}
	return result, nil
}

// Create creates a record.
func (d *Database) Create(id string, f Fields) (Record, error) {
	result, err := d.Apply(id, Batch{Posts: []Fields{f}})
	return first(result.Posts), err
}

// Put overwrites a record.
func (d *Database) Put(id, record string, f Fields) (Record, error) {
	f.ID = record
	result, err := d.Apply(id, Batch{Puts: []Fields{f}})
	return first(result.Puts), err
}

// Patch changes the fields of a record that are set.
func (d *Database) Patch(id, record string, f Fields) (Record, error) {
	f.ID = record
	result, err := d.Apply(id, Batch{Patches: []Fields{f}})
	return first(result.Patches), err
}

// Delete deletes a record.
func (d *Database) Delete(id, record string) error {
	_, err := d.Apply(id, Batch{Deletes: []Fields{{ID: record}}})
	return err
}

func first(records []Record) Record {
	if len(records) == 0 {
		return Record{}
	}
	return records[0]
}

// transaction is a copy of a zone's records, to which a batch is applied.
type transaction struct {
	zone       Zone
	fixedTypes bool
	now        time.Time
	records    []Record
	events     []event
	err        error // the first error; nothing is changed after it
}

// each applies one operation after the other, until one fails.
func (t *transaction) each(all []Fields, operation func(Fields) (Record, error)) []Record {
	changed := []Record{}
	for _, f := range all {
		if t.err != nil {
			break
		}
		var r Record
		r, t.err = operation(f)
		changed = append(changed, r)
	}
	return changed
}

func (t *transaction) index(id string) int {
	return slices.IndexFunc(t.records, func(r Record) bool { return r.ID == id })
}

func (t *transaction) remove(f Fields) (Record, error) {
	i := t.index(f.ID)
	if i < 0 {
		return Record{}, noRecord()
	}
	removed := t.records[i]
	t.records = slices.Delete(t.records, i, i+1)
	t.events = append(t.events, event{id: removed.ID, before: &removed})
	return removed, nil
}

func (t *transaction) patch(f Fields) (Record, error) {
	i := t.index(f.ID)
	if i < 0 {
		return Record{}, noRecord()
	}
	return t.replace(i, f.merge(t.records[i]))
}

func (t *transaction) put(f Fields) (Record, error) {
	i := t.index(f.ID)
	if i < 0 {
		return Record{}, noRecord()
	}
	old := t.records[i]
	return t.replace(i, f.merge(Record{ID: old.ID, CreatedOn: old.CreatedOn}))
}

// replace replaces the record at the index. A request that changes nothing does not change
// the time of modification; whether Cloudflare does the same is uncertain.
func (t *transaction) replace(i int, r Record) (Record, error) {
	old := t.records[i]
	r, err := t.check(r)
	switch {
	case err != nil:
		return Record{}, err
	case t.fixedTypes && r.Type != old.Type:
		return Record{}, invalid(CodeInvalidRecord, "Editing types after a record has been created is not allowed.")
	case r.equals(old):
		return old, nil
	}
	r.ModifiedOn = t.now
	t.records[i] = r
	t.events = append(t.events, event{id: r.ID, before: &old, after: &r})
	return r, nil
}

func (t *transaction) create(f Fields) (Record, error) {
	r, err := t.check(f.merge(Record{ID: newID(), CreatedOn: t.now, ModifiedOn: t.now}))
	if err != nil {
		return Record{}, err
	}
	if len(t.records) >= t.zone.Quota() {
		return Record{}, invalid(CodeQuota, "Record quota exceeded.")
	}
	t.records = append(t.records, r)
	t.events = append(t.events, event{id: r.ID, after: &r})
	return r, nil
}

// check returns the record as the API stores it.
func (t *transaction) check(r Record) (Record, error) {
	r, err := t.zone.complete(r)
	if err != nil {
		return Record{}, err
	}
	return r, t.zone.checkBeside(r, t.records)
}
