package dns

import (
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// apply returns the step that makes the changes that can be made now. Creations need no
// read: Cloudflare refuses them if a record exists. Edits need one.
func (d *decider) apply(a *agenda) (Step, bool) {
	limit := provider.MaxBatch
	if d.Memory.limit > 0 {
		limit = d.Memory.limit
	}
	step := Step{Action: Apply, ID: d.id, Requests: 1}
	for _, c := range a.creates[:min(len(a.creates), limit)] {
		d.add(&step, c)
	}
	for _, c := range a.edits {
		if step.Batch.Operations()+c.operations(d.Memory.recreate) > limit && step.Batch.Operations() > 0 {
			break
		}
		if d.isFresh(c.Name) {
			d.add(&step, c)
		}
	}
	return step, step.Batch.Operations() > 0
}

// add adds the change to the step.
func (d *decider) add(step *Step, c change) {
	b := &step.Batch
	switch c.Operation {
	case Create:
		b.Creates = append(b.Creates, d.cname(c))
	case Repair:
		b.Patches = append(b.Patches, provider.Patch{ID: c.record.ID, Proxy: true})
	case Move:
		cname := d.cname(c)
		b.Patches = append(b.Patches, provider.Patch{ID: c.record.ID, Target: &cname.Target, Comment: &cname.Comment, Proxy: true})
	case Release:
		b.Patches = append(b.Patches, provider.Patch{ID: c.record.ID, Comment: new(string)})
	case Delete:
		b.Deletes = append(b.Deletes, c.record.ID)
	case Adopt:
		d.addAdoption(b, c)
	}
	if c.adoption != nil {
		step.Adoptions = append(step.Adoptions, *c.adoption)
	}
	step.Changes = append(step.Changes, c.Change)
	step.changes = append(step.changes, c)
}

// cname returns the record as the controller writes it.
func (d *decider) cname(c change) provider.CNAME {
	return provider.CNAME{Name: c.Name, Target: c.party.target, Comment: d.Options.mark(d.id, c.Name, c.party.target)}
}

// addAdoption marks a record that leads to the Gateway, and replaces another one.
func (d *decider) addAdoption(b *provider.Batch, c change) {
	cname := d.cname(c)
	switch {
	case !c.replaces():
		b.Patches = append(b.Patches, provider.Patch{ID: c.record.ID, Comment: &cname.Comment, Proxy: needsRepair(c.record)})
	case d.Memory.recreate && c.record.Type != typeCNAME:
		b.Deletes = append(b.Deletes, c.record.ID)
		b.Creates = append(b.Creates, cname)
	default:
		b.Puts = append(b.Puts, provider.Put{ID: c.record.ID, CNAME: cname})
	}
}

// replaces reports whether an adoption replaces a record that leads elsewhere.
func (c change) replaces() bool {
	return !LeadsDirectly(c.record, c.party.target)
}

// operations returns how many operations of a batch the change needs at most.
func (c change) operations(recreate bool) int {
	if c.Operation == Adopt && recreate {
		return 2
	}
	return 1
}
