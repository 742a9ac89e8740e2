package zones

import (
	"cmp"
	"time"
)

// Status is a zone's status in the API.
type Status string

// Values of [Status]. The nameservers answer only for an active zone. The documentation
// says about pending zones that their proxied records are DNS-only; the public DNS does
// not lead to Cloudflare's nameservers then.
const (
	Active  Status = "active"
	Pending Status = "pending"
)

// Type is a zone's type in the API.
type Type string

// Values of [Type].
const (
	Full Type = "full" // Cloudflare's nameservers are authoritative
	// Partial is a CNAME setup: other nameservers are authoritative, and lead single
	// hostnames to Cloudflare. [Zone.Forwarded] lists these hostnames.
	Partial Type = "partial"
)

// Plan is a zone's plan.
type Plan string

// Values of [Plan]. The other paid plans have the same limits here as Pro.
const (
	Free Plan = "free"
	Pro  Plan = "pro"
)

// Zone describes a zone.
type Zone struct {
	Name    string
	ID      string // generated if empty
	Account string // the account's ID
	Status  Status // Active if empty
	Type    Type   // Full if empty
	Plan    Plan   // Free if empty
	// CreatedOn is now if it is zero. It decides the quota of a Free zone.
	CreatedOn time.Time
	// RecordQuota is the number of records that the zone can have. 0 selects the plan's.
	RecordQuota int
	// Forwarded are the hostnames in a Partial zone for which the other nameservers have a
	// CNAME to <hostname>.cdn.cloudflare.net. Other hostnames have no address.
	Forwarded []string
	// CertificatePacks are the zone's edge certificates. Nil selects the Universal
	// certificate for the apex and one level below it.
	CertificatePacks []CertificatePack
	// NoGRPC switches gRPC off. The API does not have this setting.
	NoGRPC bool
	// Settings are the values of settings that differ from those of a new zone, by name.
	Settings map[string]string
}

// defaultSettings are the settings that the simulator has, with the values of a new zone.
var defaultSettings = map[string]string{"always_use_https": "off", "ssl": "full", "security_level": "medium"}

// Setting returns the value of a setting, and whether there is a setting with the name.
func (z Zone) Setting(name string) (string, bool) {
	value, ok := defaultSettings[name]
	if changed, isSet := z.Settings[name]; ok && isSet {
		value = changed
	}
	return value, ok
}

// CertificatePack is a pack of edge certificates for the same hosts.
type CertificatePack struct {
	ID     string   `json:"id"`     // generated if empty
	Type   string   `json:"type"`   // for example "universal" or "advanced"
	Hosts  []string `json:"hosts"`  // can contain wildcards for one level
	Status string   `json:"status"` // for example "active" or "pending_validation"
	// Expires is when the certificates expire. Zero means in 90 days.
	Expires time.Time `json:"-"`
}

func (z Zone) withDefaults() Zone {
	z.Name = normalize(z.Name)
	z.ID = cmp.Or(z.ID, newID())
	z.Status = cmp.Or(z.Status, Active)
	z.Type = cmp.Or(z.Type, Full)
	z.Plan = cmp.Or(z.Plan, Free)
	if z.CreatedOn.IsZero() {
		z.CreatedOn = time.Now().UTC()
	}
	if z.CertificatePacks == nil {
		z.CertificatePacks = []CertificatePack{{ID: newID(), Type: "universal", Hosts: []string{z.Name, "*." + z.Name}, Status: "active"}}
	}
	return z
}

// smallQuota is when Cloudflare lowered the quota of new Free zones.
var smallQuota = time.Date(2024, 9, 1, 0, 0, 0, 0, time.UTC)

// Quota returns the number of records that the zone can have.
func (z Zone) Quota() int {
	switch {
	case z.RecordQuota != 0:
		return z.RecordQuota
	case z.Plan != Free:
		return 3500
	case z.CreatedOn.Before(smallQuota):
		return 1000
	default:
		return 200
	}
}

// commentLimit returns how many characters a comment can have.
func (z Zone) commentLimit() int {
	if z.Plan == Free {
		return 100
	}
	return 500
}

// tagLimit returns how many tags a record can have. Free zones have no tags.
func (z Zone) tagLimit() int {
	if z.Plan == Free {
		return 0
	}
	return 20
}

// batchLimit returns how many operations a batch can contain.
func (z Zone) batchLimit() int {
	if z.Plan == Free {
		return 200
	}
	return 3500
}

// zone is a zone and its records.
type zone struct {
	Zone
	records []Record // the database, in the order in which they were created
	pending []event  // changes that the nameservers have not noticed yet
	served  map[string][]Record
}
