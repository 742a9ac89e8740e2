package provider

import (
	"context"
	"time"
)

// MaxBatch is how many operations a [Batch] can contain. (Source: Cloudflare's limit for
// zones with the Free plan. Other plans allow 3,500.)
const MaxBatch = 200

// MaxNames is how many names [DNS] can read in one call. Each takes a request, and the API
// request budget does not delay requests within a call. More would leave no request to
// tunnels, and would exceed [CallTimeout].
const MaxNames = 20

// ZoneID is a zone's ID in the Cloudflare API.
type ZoneID string

// Zone is a DNS zone.
type Zone struct {
	ID   ZoneID
	Name string
	// AccountID is the account that owns the zone. Several accounts can have a zone with
	// the same name.
	AccountID string
	// Status is "active" for a zone whose records are in effect. Other values are, for
	// example, "pending" and "moved".
	Status string
	// Type is "full" if Cloudflare's nameservers are authoritative for the zone, and
	// "partial" if other nameservers lead single hostnames to Cloudflare.
	Type string
}

// RecordID is a DNS record's ID in the Cloudflare API. A record keeps its ID when a patch
// or a put changes it.
type RecordID string

// AutomaticTTL is the TTL that Cloudflare chooses. Every proxied record has it.
const AutomaticTTL = 1

// Record is a DNS record of any type, as Cloudflare stores it.
type Record struct {
	ID RecordID
	// Name is the full name, in lower case, in Punycode and without a dot at its end.
	Name string
	// Type is, for example, "CNAME".
	Type string
	// Content is a CNAME record's target, and an A record's address.
	Content string
	Proxied bool
	// TTL is in seconds, or [AutomaticTTL].
	TTL int
	// Comment is empty for a record without a comment.
	Comment string
	// ModifiedAt is when the record was created or last changed.
	ModifiedAt time.Time
}

// CNAME is a record as the controller writes it: a proxied CNAME record with
// [AutomaticTTL].
type CNAME struct {
	// Name is the full name. It must be in the zone: Cloudflare appends the zone's name to
	// any other name.
	Name string
	// Target is the record's content.
	Target string
	// Comment has at most 100 characters in a zone with the Free plan, and no line breaks.
	Comment string
}

// Patch changes some fields of a record, and keeps the others.
type Patch struct {
	ID RecordID
	// Target replaces the content. Nil keeps it.
	Target *string
	// Comment replaces the comment. Nil keeps it; an empty text removes it.
	Comment *string
	// Proxy makes the record proxied, with [AutomaticTTL].
	Proxy bool
}

// Put replaces a record by a CNAME record with the same ID. Cloudflare may refuse to change
// a record's type with [ErrInvalidRecord]; a batch that deletes the record and creates
// another one always can.
type Put struct {
	ID    RecordID
	CNAME CNAME
}

// Batch contains changes of a zone's records. Cloudflare applies them in the order of the
// fields, and applies all of them or none.
//
// The API has no conditional changes: a change applies to the record as it is then, not as
// the caller has read it.
type Batch struct {
	Deletes []RecordID
	Patches []Patch
	Puts    []Put
	Creates []CNAME
}

// Operations returns how many operations the batch contains.
func (b Batch) Operations() int {
	return len(b.Deletes) + len(b.Patches) + len(b.Puts) + len(b.Creates)
}

// Usage is how much of a zone's quota for records is used.
type Usage struct {
	// Records is how many records the zone has, of all types.
	Records int
	// Quota is how many records the zone can have. It is 0 if the API states none, because
	// the quota is the account's.
	Quota int
}

// DNS calls the Cloudflare API for the zones that one API token can access. They can belong
// to several accounts. A DNS neither decides which records are wanted nor knows to whom a
// record belongs.
//
// Every method returns within [CallTimeout] and has [PriorityDNS]; a different priority in
// the context has no effect. Calls neither wait for the API request budget nor are they retried. A context with
// [WithReservation], applied after [WithPriority] with PriorityDNS, covers several calls,
// for instance a read and the delete that follows it.
//
// Every method can return [ErrUnauthorized], [ErrForbidden], a [*RateLimitedError], an
// [*UnavailableError] or the context's error.
//
// A DNS is safe for concurrent use.
type DNS interface {
	// Zones returns the zones with this name that the token can read: usually one, or
	// none. If id is not empty, it returns only the zone with this ID, and nothing if
	// that zone has another name. It returns [ErrForbidden] if there is no zone with the
	// ID, and may return it if the token can read no zone at all. It sends one request.
	// The permission is Zone Read.
	Zones(ctx context.Context, name string, id ZoneID) ([]Zone, error)

	// Records returns the zone's records of all types, or only those with the given
	// names, in no particular order and without duplicates. A name is a full name, and
	// does not select the names below it; "*.example.com" selects only the wildcard. The
	// permission is DNS Read or DNS Edit.
	//
	// It sends one request per name, or one per page of 5,000 records. It sends none and
	// returns an error for more than [MaxNames] names. When the
	// number of records changes while it reads several pages, it returns an
	// [*UnavailableError]. When a record is created and another one deleted at that
	// time, a record can be missing.
	Records(ctx context.Context, zone ZoneID, names ...string) ([]Record, error)

	// Apply makes all changes of the batch, or none, and returns the records that its
	// patches, puts and creates have changed or created, in this order. The permission
	// is DNS Edit. The database has the records when Apply returns; the nameservers
	// notice each of them later, in any order. (Source: "propagation of changes is not
	// atomic" in Cloudflare's documentation of batches.)
	//
	// It sends one request and never retries it. It sends none for an empty batch, and
	// returns an error for a batch with more than [MaxBatch] operations.
	//
	// Cloudflare reports only the first error of a batch, and not its operation:
	//   - [ErrRecordExists]: a record exists where the batch creates another. Creating a
	//     CNAME record is therefore an atomic claim of its name among A, AAAA, CNAME and
	//     NS records.
	//   - [ErrRecordNotFound]: a record that the batch deletes or changes does not exist.
	//   - [ErrQuotaExceeded]: the zone would have too many records.
	//   - [ErrInvalidRecord]: Cloudflare rejects a record, for example its comment.
	//
	// After an [*UnavailableError] or the context's error, Cloudflare may have applied
	// the batch, or may apply it up to CallTimeout later: the caller reads the records
	// before it repeats a change. After any other error, nothing was changed.
	Apply(ctx context.Context, zone ZoneID, batch Batch) ([]Record, error)

	// Usage returns the number of the zone's records and its quota. The permission is DNS
	// Read or DNS Edit.
	Usage(ctx context.Context, zone ZoneID) (Usage, error)

	// CertificateHosts returns the hosts of the zone's active certificate packs, sorted
	// and without duplicates. A wildcard covers one level: "*.example.com" does not cover
	// a.b.example.com. The permission is SSL and Certificates Read, which the token can
	// lack although it has the others.
	CertificateHosts(ctx context.Context, zone ZoneID) ([]string, error)
}

// ZoneSettings reads settings of zones. The controller reads none: a command does, with its
// user's API token. What [DNS] says about its calls applies to this interface too.
type ZoneSettings interface {
	// Settings returns the values of the zone's settings with the given names, for example
	// "ssl". It sends one request per name, and none and an error for more than [MaxNames]
	// names. It returns an error for a setting that the API does not have or whose value is
	// not text. The permission is Zone Settings Read.
	Settings(ctx context.Context, zone ZoneID, names ...string) (map[string]string, error)
}
