package adoption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Permissions are what the administrator's API token needs for the zones.
const Permissions = "Zone: Read and DNS: Read"

// Zone contains the records of a zone.
type Zone struct {
	Name string
	dns.Records
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
		return nil, fmt.Errorf("zone %s: the API token cannot read a zone with this name in account %s; it needs the permissions %s for the zone", zone.Name, account, Permissions)
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
	z := &Zone{Name: name, Records: dns.NewRecords(name, records)}
	for _, r := range records {
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
