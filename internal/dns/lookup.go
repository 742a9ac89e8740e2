package dns

import "github.com/tunnel-gateway/tunnel-gateway/provider"

// Records looks names up in a zone's records, as decisions do.
type Records struct {
	zone string
	view *view
}

// NewRecords returns the records of the zone with the name.
func NewRecords(zone string, records []provider.Record) Records {
	return Records{zone, newView(nil, records, Instant{})}
}

// Addresses returns the A, AAAA and CNAME records with the name.
func (r Records) Addresses(name string) []provider.Record {
	set := r.view.set(name)
	if set == nil {
		return nil
	}
	var found []provider.Record
	for _, record := range set.records {
		if isAddress(record.Type) {
			found = append(found, record)
		}
	}
	return found
}

// Wildcard returns the name of the wildcard that answers for the name, or "" if there is
// none, or if the name has records of any type.
func (r Records) Wildcard(name string) string { return r.view.wildcard(name, r.zone) }

// Delegation returns the name at or above which other nameservers answer for the name, or
// "".
func (r Records) Delegation(name string) string { return r.view.delegation(name, r.zone) }

// Leads returns the target of the last record in the chain of CNAME records that begins
// with the records of the name, or "" if the chain ends with another record, or nowhere.
func (r Records) Leads(name string) string {
	target, _ := r.view.leads(r.view.set(name), r.zone)
	return target
}
