package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const zoneName = "example.com"

// envoyHostname is the hostname on the Gateway with the data plane Envoy.
const envoyHostname = "shop.example.com"

// zone is the demo's zone. It replaces the administrator who creates its records by hand.
type zone struct {
	database *zones.Database
	id       string
}

func newZone() zone {
	database := zones.New(zones.Options{})
	return zone{database, database.Add(zones.Zone{Name: zoneName, Account: accountID})}
}

// lead makes the record of a new tunnel's Gateway lead to the tunnel: a wildcard for the
// Gateway platform/shared, and a hostname for platform/envoy. Other Gateways get no record.
func (z zone) lead(created simulator.Tunnel) {
	names := map[string]string{"shared": "*." + zoneName, "envoy": envoyHostname}
	for gateway, name := range names {
		if created.Name == tunnel.RemoteName(clusterID, types.NamespacedName{Namespace: "platform", Name: gateway}) {
			z.set(name, created.ID+".cfargotunnel.com")
		}
	}
}

// set creates a proxied CNAME record, or changes its target. It panics if the zone contains
// another record with the name, because the demo starts with an empty zone.
func (z zone) set(name, target string) {
	recordType, proxied := "CNAME", true
	change := zones.Batch{}
	fields := zones.Fields{Name: &name, Type: &recordType, Content: &target, Proxied: &proxied}
	for _, r := range z.database.Records(z.id) {
		if r.Name == name {
			fields.ID = r.ID
			change.Puts = append(change.Puts, fields)
		}
	}
	if change.Puts == nil {
		change.Posts = append(change.Posts, fields)
	}
	if _, err := z.database.Apply(z.id, change); err != nil {
		panic(fmt.Sprintf("demo: record %s: %v", name, err))
	}
}

// print prints the zone's records.
func (z zone) print() {
	fmt.Printf("\nThe zone %s has these records:\n", zoneName)
	for _, r := range z.database.Records(z.id) {
		fmt.Printf("  %s  %s  %s\n", r.Name, r.Type, r.Content)
	}
}
