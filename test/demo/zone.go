package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const zoneName = "example.com"

// envoyHostname is the hostname on the Gateway with the data plane Envoy.
const envoyHostname = "shop.example.com"

// zone is the demo's zone. The controller creates its records.
type zone struct {
	database *zones.Database
	id       string
}

func newZone() zone {
	database := zones.New(zones.Options{})
	return zone{database, database.Add(zones.Zone{
		Name: zoneName, Account: accountID,
		CertificatePacks: []zones.CertificatePack{
			{ID: "universal", Type: "universal", Hosts: []string{zoneName, "*." + zoneName}, Status: "active"},
			{ID: "advanced", Type: "advanced", Hosts: []string{"*.team-b." + zoneName}, Status: "active"},
		},
	})}
}

// newDNS returns the DNS settings of the demo's GatewayClasses. All classes that list a zone
// need the same settings. The delay is short, so that the record of a deleted hostname
// disappears while a user watches.
func newDNS() *v1alpha1.DNS {
	return &v1alpha1.DNS{
		Mode: new(v1alpha1.DNSManage), Zones: []v1alpha1.DNSZone{{Name: zoneName}}, DeletionDelay: new(v1alpha1.Duration("30s")),
	}
}

// print prints the zone's records.
func (z zone) print() error {
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(out, "\nThe controller has created these records in the zone %s:\n\nNAME\tTYPE\tCONTENT\tPROXIED\tCOMMENT\n", zoneName)
	for _, r := range z.database.Records(z.id) {
		fmt.Fprintf(out, "%s\t%s\t%s\t%t\t%s\n", r.Name, r.Type, r.Content, r.Proxied, r.Comment)
	}
	return out.Flush()
}
