package adoption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Permissions are what the administrator's API token needs for the zones.
const Permissions = "Zone: Read and DNS: Read"

// Zone contains the records of a zone.
type Zone struct {
	Name    string
	records map[string][]provider.Record
	// registries are the names of the TXT records by which external-dns claims records,
	// sorted.
	registries []string
}

// ReadZone reads the zone in the account. It returns an error if the zone's records are not
// in effect, because the controller then changes none.
func ReadZone(ctx context.Context, d provider.DNS, zone v1alpha1.DNSZone, account string) (*Zone, error) {
	found, err := d.Zones(ctx, zone.Name, provider.ZoneID(zone.ID))
	if err != nil {
		return nil, explainRead(zone, err)
	}
	found = slices.DeleteFunc(found, func(z provider.Zone) bool { return z.AccountID != account })
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("zone %s: the API token can read no zone with this name in account %s; it needs the permissions %s for the zone", zone.Name, account, Permissions)
	case len(found) > 1:
		return nil, fmt.Errorf("zone %s: account %s has %d zones with this name; set the zone's id in dns.zones", zone.Name, account, len(found))
	case found[0].Status != "active":
		return nil, fmt.Errorf("zone %s: its status is %q, so its records are not in effect", zone.Name, found[0].Status)
	}
	records, err := readRecords(ctx, d, found[0].ID)
	if err != nil {
		return nil, explainRead(zone, err)
	}
	return NewZone(zone.Name, records), nil
}

// NewZone returns the zone with the records.
func NewZone(name string, records []provider.Record) *Zone {
	z := &Zone{Name: name, records: map[string][]provider.Record{}}
	for _, r := range records {
		z.records[r.Name] = append(z.records[r.Name], r)
		if isRegistry(r) {
			z.registries = append(z.registries, r.Name)
		}
	}
	slices.Sort(z.registries)
	return z
}

// A list of several pages fails while the number of records changes, so it is repeated.
const (
	readAttempts = 3
	readPause    = 2 * time.Second
)

// readRecords lists the records of the zone.
func readRecords(ctx context.Context, d provider.DNS, zone provider.ZoneID) ([]provider.Record, error) {
	for attempt := 1; ; attempt++ {
		records, err := d.Records(ctx, zone)
		var unavailable *provider.UnavailableError
		if attempt == readAttempts || !errors.As(err, &unavailable) {
			return records, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(readPause):
		}
	}
}

// explainRead names the permissions if one is missing.
func explainRead(zone v1alpha1.DNSZone, err error) error {
	if errors.Is(err, provider.ErrForbidden) || errors.Is(err, provider.ErrUnauthorized) {
		return fmt.Errorf("zone %s: %w; the API token needs the permissions %s", zone.Name, err, Permissions)
	}
	return fmt.Errorf("zone %s: %w", zone.Name, err)
}

// addresses returns the records with the name that determine where it leads.
func (z *Zone) addresses(name string) []provider.Record {
	var found []provider.Record
	for _, r := range z.records[name] {
		if r.Type == "A" || r.Type == "AAAA" || r.Type == "CNAME" {
			found = append(found, r)
		}
	}
	return found
}

// wildcard returns the wildcard that answers for the name, or "". A record of any type at
// or above the name ends a wildcard.
func (z *Zone) wildcard(name string) string {
	for len(z.records[name]) == 0 {
		_, parent, ok := strings.Cut(name, ".")
		if !ok || !z.contains(parent) {
			return ""
		}
		if wildcard := "*." + parent; wildcard != name && len(z.addresses(wildcard)) > 0 {
			return wildcard
		}
		name = parent
	}
	return ""
}

// delegation returns the name at or above which other nameservers answer for the name, or
// "".
func (z *Zone) delegation(name string) string {
	for ; name != z.Name && z.contains(name); _, name, _ = strings.Cut(name, ".") {
		if slices.ContainsFunc(z.records[name], func(r provider.Record) bool { return r.Type == "NS" }) {
			return name
		}
	}
	return ""
}

// contains reports whether the name belongs to the zone.
func (z *Zone) contains(name string) bool {
	return name == z.Name || strings.HasSuffix(name, "."+z.Name)
}

// maxChain is how many records a chain can have.
const maxChain = 16

// leadsTo reports whether the record leads to the hostname, directly or through other CNAME
// records in the zone.
func (z *Zone) leadsTo(r provider.Record, hostname string) bool {
	for range maxChain {
		if r.Type != "CNAME" {
			return false
		}
		name := target(r)
		if name == hostname {
			return true
		}
		next := z.addresses(name)
		if len(next) == 0 {
			next = z.addresses(z.wildcard(name))
		}
		if len(next) != 1 {
			return false
		}
		r = next[0]
	}
	return false
}

// target returns the name that a CNAME record leads to.
func target(r provider.Record) string { return strings.ToLower(strings.TrimSuffix(r.Content, ".")) }
