package zones

import (
	"encoding/json"
	"slices"
	"time"
)

// Record is a DNS record in the API's format.
type Record struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Content    string          `json:"content"`
	Proxiable  bool            `json:"proxiable"`
	Proxied    bool            `json:"proxied"`
	TTL        int             `json:"ttl"`
	Priority   *uint16         `json:"priority,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Settings   struct{}        `json:"settings"`
	Meta       struct{}        `json:"meta"`
	Comment    string          `json:"comment"` // null if it is empty
	Tags       []string        `json:"tags"`
	CreatedOn  time.Time       `json:"created_on"`
	ModifiedOn time.Time       `json:"modified_on"`
}

// MarshalJSON encodes the record as the API does: without a comment, the comment is null.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record
	record := struct {
		plain
		Comment *string `json:"comment"`
	}{plain: plain(r)}
	if r.Comment != "" {
		record.Comment = &r.Comment
	}
	return json.Marshal(record)
}

// Fields are the fields of a record in a request. A nil field is not in the request.
type Fields struct {
	ID       string          `json:"id"` // only in a batch
	Name     *string         `json:"name"`
	Type     *string         `json:"type"`
	Content  *string         `json:"content"`
	Proxied  *bool           `json:"proxied"`
	TTL      *int            `json:"ttl"`
	Priority *uint16         `json:"priority"`
	Data     json.RawMessage `json:"data"`
	Comment  *string         `json:"comment"`
	Tags     []string        `json:"tags"`
}

// automatic is the TTL that Cloudflare chooses.
const automatic = 1

// merge returns the record with the fields that the request contains. It validates nothing.
func (f Fields) merge(r Record) Record {
	set(&r.Name, f.Name)
	set(&r.Type, f.Type)
	set(&r.Content, f.Content)
	set(&r.Proxied, f.Proxied)
	set(&r.TTL, f.TTL)
	set(&r.Comment, f.Comment)
	if f.Priority != nil {
		r.Priority = f.Priority
	}
	if f.Data != nil {
		r.Data = f.Data
	}
	if f.Tags != nil {
		r.Tags = slices.Clone(f.Tags)
	}
	return r
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// IsAddress reports whether the record gives its name an address: whether it is an A, AAAA
// or CNAME record. Only these can be proxied.
func (r Record) IsAddress() bool { return r.Type == "A" || r.Type == "AAAA" || r.Type == "CNAME" }

// equals reports whether both records have the same content, apart from times.
func (r Record) equals(other Record) bool {
	r.ModifiedOn, other.ModifiedOn = time.Time{}, time.Time{}
	a, _ := json.Marshal(r) // a record can always be encoded
	b, _ := json.Marshal(other)
	return string(a) == string(b)
}
