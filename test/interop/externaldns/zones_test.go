package externaldns

import (
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// record is a DNS record without the fields that the specs ignore.
type record struct {
	Name, Type, Content string
	Proxied             bool
}

func (r record) String() string {
	proxied := ""
	if r.Proxied {
		proxied = " proxied"
	}
	return r.Name + " " + r.Type + " " + r.Content + proxied
}

// environmentZones are the zones of an environment in the simulator's database.
type environmentZones struct {
	ids []string
}

// addZones adds zones in the tunnels' account, and a token for external-dns with the
// permissions that the guide names. When the spec ends, the zones are no longer active, so
// that another spec can use their names.
func addZones(token string, names ...string) *environmentZones {
	e := &environmentZones{}
	for _, name := range names {
		e.ids = append(e.ids, database.Add(zones.Zone{Name: name, Account: accountID}))
	}
	edge.Restrict(token, simulator.Grant{Zones: e.ids, Permissions: []simulator.Permission{simulator.ZoneRead, simulator.DNSEdit}})
	DeferCleanup(func() {
		for _, id := range e.ids {
			database.Update(id, func(z *zones.Zone) { z.Status = zones.Pending })
		}
	})
	return e
}

// addRecord adds a record that external-dns has not created, to the zone that contains it.
func (e *environmentZones) addRecord(r record) {
	GinkgoHelper()
	for _, id := range e.ids {
		if zone, _ := database.Zone(id); strings.HasSuffix(r.Name, zone.Name) {
			_, err := database.Create(id, zones.Fields{Name: &r.Name, Type: &r.Type, Content: &r.Content, Proxied: &r.Proxied})
			Expect(err).NotTo(HaveOccurred())
			return
		}
	}
	Fail("no zone contains " + r.Name)
}

// recordsOfType returns the sorted records of the type. With the prefix "!", it returns
// all other records.
func (e *environmentZones) recordsOfType(recordType string) []string {
	found := []string{}
	excluded, negated := strings.CutPrefix(recordType, "!")
	for _, id := range e.ids {
		for _, r := range database.Records(id) {
			if negated && r.Type != excluded || r.Type == recordType {
				found = append(found, record{r.Name, r.Type, r.Content, r.Proxied}.String())
			}
		}
	}
	slices.Sort(found)
	return found
}

// writeCount counts the requests that change records.
func (e *environmentZones) writeCount() int {
	writes := 0
	for _, r := range edge.Requests() {
		inZone := slices.ContainsFunc(e.ids, func(id string) bool { return strings.HasPrefix(r.Path, "/zones/"+id+"/") })
		if inZone && r.Method != http.MethodGet {
			writes++
		}
	}
	return writes
}
