package adoption

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// records are DNS records.
var records = &subject{
	annotation: v1alpha1.AdoptRecordsAnnotation,
	condition:  conditions.TypeDNSReady, reasons: []conditions.Reason{conditions.ReasonForbidden, conditions.ReasonZoneSettingsConflict},
	requests: func(t *v1alpha1.Tunnel) (all []storedRequest, err error) {
		entries, err := t.RequestedAdoptions()
		for _, e := range entries {
			all = append(all, storedRequest{key{e.Zone, e.Name}, e.Requested, e})
		}
		return all, err
	},
	results: func(t *v1alpha1.Tunnel) (all []storedResult) {
		if t.Status.DNS == nil {
			return nil
		}
		for _, e := range t.Status.DNS.Adoptions {
			all = append(all, storedResult{key{e.Zone, e.Name}, e.Requested, e.Result, e.Message})
		}
		return all
	},
}

func (c *Candidate) key() key { return key{c.Zone, c.Name} }

func (c *Candidate) gatewayName() types.NamespacedName { return c.gateway }

func (c *Candidate) entry(requested metav1.Time) any {
	return v1alpha1.RecordAdoption{
		Zone: c.Zone, Name: c.Name, ID: string(c.Record.ID), Type: c.Record.Type, Content: c.Record.Content, Requested: requested,
	}
}

func (c *Candidate) isOpen() bool { return c.Result == "" && c.Message == "" }

func (c *Candidate) conclude(result v1alpha1.AdoptionResult, message string) {
	c.Result, c.Message = result, message
}
