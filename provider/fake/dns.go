package fake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// DNS implements [provider.DNS] with the zones in a database, for tests. It behaves like
// the real DNS with a healthy API, records all calls, and returns the errors that a test
// scripts. It is safe for concurrent use.
//
// The database is the simulator's: it has Cloudflare's rules for records, and a second
// copy of them would differ from it sooner or later. A test changes zones and records
// through the database like the dashboard does, and asks it what a resolver gets.
type DNS struct {
	mu          sync.Mutex
	database    *zones.Database
	permissions []string // nil: all
	scripted    script
	calls       []DNSCall
}

var (
	_ provider.DNS          = (*DNS)(nil)
	_ provider.ZoneSettings = (*DNS)(nil)
)

// NewDNS returns a DNS for all zones in the database, with all permissions.
func NewDNS(database *zones.Database) *DNS {
	return &DNS{database: database, scripted: script{}}
}

// Zones is documented at [provider.DNS].
func (d *DNS) Zones(ctx context.Context, name string, id provider.ZoneID) (found []provider.Zone, err error) {
	err = d.do(ctx, DNSCall{Op: OpZones, Names: []string{name}, Zone: id}, func() error {
		for _, z := range d.database.Zones() {
			if z.Name == name && (id == "" || string(id) == z.ID) {
				found = append(found, provider.Zone{
					ID: provider.ZoneID(z.ID), Name: z.Name, AccountID: z.Account, Status: string(z.Status), Type: string(z.Type),
				})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Records is documented at [provider.DNS].
func (d *DNS) Records(ctx context.Context, zone provider.ZoneID, names ...string) (found []provider.Record, err error) {
	if len(names) > provider.MaxNames {
		return nil, fmt.Errorf("one call can read %d names", provider.MaxNames)
	}
	err = d.do(ctx, DNSCall{Op: OpRecords, Zone: zone, Names: names}, func() error {
		for _, r := range d.database.Records(string(zone)) {
			if len(names) == 0 || slices.Contains(names, r.Name) {
				found = append(found, asRecord(r))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Apply is documented at [provider.DNS].
func (d *DNS) Apply(ctx context.Context, zone provider.ZoneID, batch provider.Batch) (changed []provider.Record, err error) {
	if batch.Operations() == 0 {
		return nil, ctx.Err()
	}
	if batch.Operations() > provider.MaxBatch {
		return nil, fmt.Errorf("a batch can contain %d changes", provider.MaxBatch)
	}
	err = d.do(ctx, DNSCall{Op: OpApply, Zone: zone, Batch: batch}, func() error {
		result, err := d.database.Apply(string(zone), fieldsOf(batch))
		if err != nil {
			return translate(err)
		}
		for _, r := range slices.Concat(result.Patches, result.Puts, result.Posts) {
			changed = append(changed, asRecord(r))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// Usage is documented at [provider.DNS].
func (d *DNS) Usage(ctx context.Context, zone provider.ZoneID) (usage provider.Usage, err error) {
	err = d.do(ctx, DNSCall{Op: OpUsage, Zone: zone}, func() error {
		z, _ := d.database.Zone(string(zone))
		usage = provider.Usage{Records: len(d.database.Records(string(zone))), Quota: z.Quota()}
		return nil
	})
	if err != nil {
		return provider.Usage{}, err
	}
	return usage, nil
}

// CertificateHosts is documented at [provider.DNS].
func (d *DNS) CertificateHosts(ctx context.Context, zone provider.ZoneID) (hosts []string, err error) {
	err = d.do(ctx, DNSCall{Op: OpCertificateHosts, Zone: zone}, func() error {
		z, _ := d.database.Zone(string(zone))
		for _, p := range z.CertificatePacks {
			if p.Status == "active" {
				hosts = append(hosts, p.Hosts...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), nil
}

// Settings is documented at [provider.ZoneSettings].
func (d *DNS) Settings(ctx context.Context, zone provider.ZoneID, names ...string) (values map[string]string, err error) {
	if len(names) > provider.MaxNames {
		return nil, fmt.Errorf("one call can read %d settings", provider.MaxNames)
	}
	err = d.do(ctx, DNSCall{Op: OpSettings, Zone: zone, Names: names}, func() error {
		z, _ := d.database.Zone(string(zone))
		read := map[string]string{}
		for _, name := range names {
			value, ok := z.Setting(name)
			if !ok {
				return fmt.Errorf("no setting %q", name)
			}
			read[name] = value
		}
		values = read
		return nil
	})
	return values, err
}

// do makes a call: it checks the context, the zone and the permissions, returns scripted
// errors, records the call and wraps its error. It is locked while it calls apply.
func (d *DNS) do(ctx context.Context, call DNSCall, apply func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if call.Err = ctx.Err(); call.Err == nil {
		call.Err = d.scripted.run(call.Op, func() error {
			if err := d.check(call); err != nil {
				return err
			}
			return apply()
		})
	}
	d.calls = append(d.calls, call)
	if call.Err != nil {
		return fmt.Errorf("%s %q: %w", call.Op, call.Zone, call.Err)
	}
	return nil
}

// check returns [provider.ErrForbidden] if the call's zone does not exist, or the token
// lacks the permission.
func (d *DNS) check(call DNSCall) error {
	_, exists := d.database.Zone(string(call.Zone))
	permitted := d.permissions == nil || slices.ContainsFunc(permissions[call.Op], func(p string) bool {
		return slices.Contains(d.permissions, p)
	})
	if !permitted || !exists && (call.Op != OpZones || call.Zone != "") {
		return provider.ErrForbidden
	}
	return nil
}

// fieldsOf returns the batch as the database needs it.
func fieldsOf(b provider.Batch) zones.Batch {
	var batch zones.Batch
	for _, id := range b.Deletes {
		batch.Deletes = append(batch.Deletes, zones.Fields{ID: string(id)})
	}
	for _, p := range b.Patches {
		f := zones.Fields{ID: string(p.ID), Content: p.Target, Comment: p.Comment}
		if p.Proxy {
			f.Proxied, f.TTL = new(true), new(provider.AutomaticTTL)
		}
		batch.Patches = append(batch.Patches, f)
	}
	for _, p := range b.Puts {
		batch.Puts = append(batch.Puts, cname(p.ID, p.CNAME))
	}
	for _, c := range b.Creates {
		batch.Posts = append(batch.Posts, cname("", c))
	}
	return batch
}

func cname(id provider.RecordID, c provider.CNAME) zones.Fields {
	return zones.Fields{
		ID: string(id), Name: &c.Name, Type: new("CNAME"), Content: &c.Target, Proxied: new(true),
		TTL: new(provider.AutomaticTTL), Comment: &c.Comment,
	}
}

func asRecord(r zones.Record) provider.Record {
	return provider.Record{
		ID: provider.RecordID(r.ID), Name: r.Name, Type: r.Type, Content: r.Content, Proxied: r.Proxied,
		TTL: r.TTL, Comment: r.Comment, ModifiedAt: r.ModifiedOn,
	}
}

// translate returns the error of a [provider.DNS] for one of the database.
func translate(err error) error {
	var class error
	if e, ok := errors.AsType[*zones.Error](err); ok {
		switch e.Code {
		case zones.CodeHostExists, zones.CodeCNAMEExists, zones.CodeNSExists, zones.CodeIdentical:
			class = provider.ErrRecordExists
		case zones.CodeNoRecord:
			class = provider.ErrRecordNotFound
		case zones.CodeQuota:
			class = provider.ErrQuotaExceeded
		default:
			class = provider.ErrInvalidRecord
		}
	}
	return fmt.Errorf("%w: %w", class, err)
}
