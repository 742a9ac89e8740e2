// Package zones simulates Cloudflare's DNS: zones in several accounts, the rules for their
// records, and what a resolver gets from the nameservers. It has no HTTP API; package
// simulator serves one.
//
// The rules come from Cloudflare's documentation and from error messages in public issues.
// A comment names a rule's source if the documentation does not state the rule, and says
// so if it is uncertain.
//
// The tests compare the product with this package, so it shares no code with the product.
package zones

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Options configures a [Database]. The zero value propagates changes at once.
type Options struct {
	// Delay is called for every changed record, and returns how long the nameservers take to
	// notice that change. It must not call the database. Changes of one record are noticed
	// in their order. Nil means no delay.
	Delay func() time.Duration
	// FixedTypes refuses to change a record's type, as Cloudflare did in 2016
	// (hashicorp/terraform#5316). According to cloudflare/cloudflare-go#400, Cloudflare has
	// allowed it since 2019. Without FixedTypes, the database allows it, too.
	FixedTypes bool
}

// RandomDelay returns a [Options.Delay] with random delays below the limit. Cloudflare
// propagates a batch record by record: "propagation of changes is not atomic".
func RandomDelay(limit time.Duration) func() time.Duration {
	return func() time.Duration { return rand.N(limit) } // #nosec G404 -- not a secret
}

// Database is the zones of all accounts. Its methods are safe for concurrent use. A method
// that takes a zone's ID panics if the zone does not exist, except for [Database.Zone].
type Database struct {
	options Options

	mu    sync.Mutex
	zones []*zone // in the order in which they were added
}

// New returns a database without zones.
func New(o Options) *Database {
	if o.Delay == nil {
		o.Delay = func() time.Duration { return 0 }
	}
	return &Database{options: o}
}

// Add adds a zone and returns its ID. Several accounts can have a zone with the same name.
// Only one of them should be active.
func (d *Database) Add(z Zone) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	added := &zone{Zone: z.withDefaults(), served: map[string][]Record{}}
	d.zones = append(d.zones, added)
	return added.ID
}

// Zones returns all zones in the order in which they were added.
func (d *Database) Zones() []Zone {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]Zone, len(d.zones))
	for i, z := range d.zones {
		all[i] = z.Zone
	}
	return all
}

// Zone returns a zone, and whether it exists.
func (d *Database) Zone(id string) (Zone, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if z := d.find(id); z != nil {
		return z.Zone, true
	}
	return Zone{}, false
}

// HasActive reports whether the account has an active zone that contains the hostname, which
// can be a wildcard.
func (d *Database) HasActive(account, hostname string) bool {
	return slices.ContainsFunc(d.Zones(), func(z Zone) bool {
		return z.Account == account && z.Status == Active && (hostname == z.Name || strings.HasSuffix(hostname, "."+z.Name))
	})
}

// Update changes a zone's settings, for example its status. The function must not call the
// database, and must not change the name or the ID.
func (d *Database) Update(id string, change func(*Zone)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.mustFind(id).Zone)
}

// Records returns a zone's records in the order in which they were created.
func (d *Database) Records(id string) []Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mustFind(id).records)
}

func (d *Database) find(id string) *zone {
	for _, z := range d.zones {
		if z.ID == id {
			return z
		}
	}
	return nil
}

func (d *Database) mustFind(id string) *zone {
	z := d.find(id)
	if z == nil {
		panic(fmt.Sprintf("zones: zone %q not found", id))
	}
	return z
}

// newID returns an ID in Cloudflare's format: 32 hexadecimal digits.
func newID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }
