// Package adoption asks the controller to adopt DNS records and Cloudflare Access
// applications that it did not create, and waits for the results.
//
// The administrator's API token reads them. The controller changes them: the request
// is an annotation of the Tunnel, which tenants cannot change.
package adoption

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Gateway is a Gateway of the controller.
type Gateway struct {
	dns.Gateway
	// Settings are the DNS settings of its GatewayClass.
	Settings settings.DNS
	// AccountID is the Cloudflare account that owns the tunnel and the zones.
	AccountID string
	// ClusterID identifies the installation in the comments of its records.
	ClusterID string
	// Managed is how many of its records have a valid mark, according to the Tunnel's
	// status.
	Managed int
}

// Wanted is a hostname that a Gateway publishes or keeps.
type Wanted struct {
	Name string
	// Zone is the zone of the hostname in the settings.
	Zone    v1alpha1.DNSZone
	Gateway *Gateway
	// Served reports whether the Gateway serves a route for the hostname. Otherwise the
	// controller replaces no record.
	Served bool
}

// Action is what the controller does when it adopts a record.
type Action string

const (
	// Mark adds the controller's mark to a record that leads to the Gateway's tunnel directly.
	Mark Action = "mark"
	// Replace replaces any other record.
	Replace Action = "replace"
)

// Candidate is a hostname with what the zone contains for it. Its JSON encoding is stable.
type Candidate struct {
	Gateway string `json:"gateway"`
	Zone    string `json:"zone"`
	Name    string `json:"name"`
	// Record is nil if there is no record that could be adopted.
	Record *Record `json:"record,omitempty"`
	// LeadsHere reports whether the record leads to the Gateway's tunnel, directly or
	// through other records.
	LeadsHere bool `json:"leadsHere"`
	// Action is empty if the record cannot be adopted, and Problem says why.
	Action  Action `json:"action,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Notes tell the administrator what else to do.
	Notes []string `json:"notes,omitempty"`
	// Result is empty while the controller has not processed a request.
	Result v1alpha1.AdoptionResult `json:"result,omitempty"`
	// Message is the controller's explanation of the result.
	Message string `json:"message,omitempty"`

	gateway types.NamespacedName
}

// Record is a DNS record as the API returned it.
type Record struct {
	ID      provider.RecordID `json:"id"`
	Type    string            `json:"type"`
	Content string            `json:"content"`
	Proxied bool              `json:"proxied"`
	Comment string            `json:"comment,omitempty"`
	// Installation is the cluster ID in a comment that has the form of a controller's
	// mark. Only the controller can tell whether the mark is valid.
	Installation string `json:"installation,omitempty"`
}

// Problems returns the candidates that cannot be adopted.
func Problems(all []*Candidate) []*Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c *Candidate) bool { return c.Action != "" })
}

// LeadingElsewhere returns the candidates whose adoption changes where requests go.
func LeadingElsewhere(all []*Candidate) []*Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c *Candidate) bool { return c.Action == "" || c.LeadsHere })
}

// Names returns the names of the first candidates, and how many more there are.
func Names(all []*Candidate) string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	return listNames(names)
}
