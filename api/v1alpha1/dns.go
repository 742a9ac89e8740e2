package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DNS determines whether the controller reads or manages the DNS records of hostnames.
//
// +kubebuilder:validation:XValidation:rule="(has(self.mode) ? self.mode : 'Off') == 'Off' || (has(self.zones) && size(self.zones) > 0)",message="dns.zones is empty: list the zones to read or manage, or set mode to Off"
type DNS struct {
	// Mode determines what the controller does in the zones. With Off, it does not call
	// the DNS API. With Observe, it reads the zones and reports for each hostname whether
	// a record leads to its Gateway. With Manage, it also creates, repairs, moves and
	// deletes records, but changes a record that it did not create only after an
	// administrator requests its adoption. Default: Off.
	//
	// +optional
	Mode *DNSMode `json:"mode,omitempty"`

	// Zones are the zones in which hostnames are published. A hostname belongs to the
	// zone with the longest name.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Zones []DNSZone `json:"zones,omitempty"`

	// Exclude lists hostnames that the controller does not manage. A wildcard also
	// excludes the hostnames below it. The controller keeps the records of excluded
	// hostnames, but removes its mark from them.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS name in lower case, such as www.example.com, or a wildcard, such as *.example.com"
	Exclude []string `json:"exclude,omitempty"`

	// DeletionDelay is how long a record remains after its hostname is no longer used.
	// Default: 10m.
	//
	// +optional
	DeletionDelay *Duration `json:"deletionDelay,omitempty"`

	// MaxRecordsPerNamespace is the maximum number of records in a zone for the
	// listeners of one namespace. Above the limit, the controller creates no records for
	// the youngest hostnames. Default: 100.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MaxRecordsPerNamespace *int32 `json:"maxRecordsPerNamespace,omitempty"`

	// APIToken refers to the Secret with the API token for DNS, in the controller's
	// namespace. The token requires the permissions Zone: Read, and DNS: Read for
	// Observe or DNS: Edit for Manage. Default: the account's API token.
	//
	// +optional
	APIToken *SecretKeyReference `json:"apiToken,omitempty"`
}

// DNSMode determines what the controller does in DNS zones.
//
// +kubebuilder:validation:Enum=Off;Observe;Manage
type DNSMode string

const (
	// DNSOff does not call the DNS API. It is the default.
	DNSOff DNSMode = "Off"
	// DNSObserve reads zones and reports on records.
	DNSObserve DNSMode = "Observe"
	// DNSManage also creates, repairs, moves and deletes records.
	DNSManage DNSMode = "Manage"
)

// DNSZone is a DNS zone at Cloudflare.
type DNSZone struct {
	// Name is the zone name, such as example.com.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+$')",message="must be the name of a zone in lower case, such as example.com"
	Name string `json:"name"`

	// ID is the zone ID that the Cloudflare dashboard shows. It is necessary only if the
	// API token can read several zones with this name. Default: the controller finds the
	// zone by its name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_-]+$')",message="must be the ID of a zone, as the Cloudflare dashboard shows it: letters and digits only"
	ID string `json:"id,omitempty"`
}

// AdoptRecordsAnnotation on a Tunnel contains the DNS records that the controller adopts at
// an administrator's request: a JSON list of [RecordAdoption], with at most [MaxAdoptions]
// entries. The controller removes each entry when it has adopted or refused the record.
const AdoptRecordsAnnotation = "tunnelgateway.dev/adopt-records"

// MaxAdoptions is the maximum number of entries in [AdoptRecordsAnnotation].
const MaxAdoptions = 500

// RecordAdoption is the request to adopt one DNS record, as the administrator has read
// it. The controller refuses to adopt a record that has changed since then.
//
// +kubebuilder:object:generate=true
type RecordAdoption struct {
	// Zone is the zone name.
	Zone string `json:"zone"`
	// Name is the record's full name.
	Name string `json:"name"`
	// ID is the record's ID in the Cloudflare API.
	ID string `json:"id"`
	// Type is, for example, CNAME.
	Type string `json:"type"`
	// Content is a CNAME record's target, and an A record's address.
	Content string `json:"content"`
	// Requested is when the administrator requested the adoption.
	Requested metav1.Time `json:"requested"`
}

// RequestedAdoptions returns the entries in the Tunnel's annotation, or an error that says
// why the annotation is not valid.
func (t *Tunnel) RequestedAdoptions() ([]RecordAdoption, error) {
	return parseAdoptions(t.Annotations[AdoptRecordsAnnotation], "records", "zone or name", RecordAdoption.isUnanswerable)
}

// parseAdoptions returns the entries in the value of an annotation. It returns an error if it
// is not a list of the things, has too many entries, or has one that is unanswerable: its
// status cannot have the result, because the entry has no time or no valid fields.
func parseAdoptions[T any](text, things, fields string, isUnanswerable func(T) bool) ([]T, error) {
	if text == "" {
		return nil, nil
	}
	var list []T
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("it is not a JSON list of %s: %w", things, err)
	}
	if len(list) > MaxAdoptions {
		return nil, fmt.Errorf("it has %d entries, and the maximum is %d", len(list), MaxAdoptions)
	}
	if i := slices.IndexFunc(list, isUnanswerable); i >= 0 {
		return nil, fmt.Errorf("entry %d has no time, or no valid %s", i+1, fields)
	}
	return list, nil
}

// isUnanswerable reports whether the API server would refuse a status with the result of
// the request.
func (a RecordAdoption) isUnanswerable() bool {
	return a.Requested.IsZero() || !fitsResult(a.Zone) || !fitsResult(a.Name)
}

// fitsResult reports whether a result can have the name.
func fitsResult(name string) bool {
	const maximum = 253 // characters, as the CustomResourceDefinition says
	return name != "" && len(name) <= maximum
}

// TunnelDNSStatus reports on the DNS records of a Gateway's hostnames.
type TunnelDNSStatus struct {
	// Hostnames counts the hostnames by the state of their record, such as Managed,
	// External or RecordConflict. See docs/conditions.md, "DNSReady".
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Hostnames map[string]int32 `json:"hostnames,omitempty"`

	// Adoptions are the results of the last requests to adopt records.
	//
	// +optional
	// +listType=map
	// +listMapKey=zone
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	Adoptions []RecordAdoptionResult `json:"adoptions,omitempty"`
}

// RecordAdoptionResult is the result of a request to adopt a DNS record.
type RecordAdoptionResult struct {
	// Zone is the zone name.
	//
	// +required
	// +kubebuilder:validation:MaxLength=253
	Zone string `json:"zone"`

	// Name is the record's full name.
	//
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Requested is when the administrator requested the adoption.
	//
	// +required
	Requested metav1.Time `json:"requested"`

	// Result is Adopted or Refused.
	//
	// +required
	Result AdoptionResult `json:"result"`

	// Message explains the result. For an adopted record, it contains the command that
	// restores the record.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
}

// AdoptionResult tells whether the controller has adopted a DNS record.
//
// +kubebuilder:validation:Enum=Adopted;Refused
type AdoptionResult string

const (
	// RecordAdopted means that the controller manages the record.
	RecordAdopted AdoptionResult = "Adopted"
	// AdoptionRefused means that the controller has not changed the record.
	AdoptionRefused AdoptionResult = "Refused"
)
