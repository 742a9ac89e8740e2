package access

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// Decisions and what is remembered do not depend on the list of open hostnames, which only
// saves comparisons.
func TestListOfOpenHostnamesAffectsNothing(t *testing.T) {
	used := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a reproducible test
		var k Known
		var d Demanded
		for range 30 {
			changeRandomly(random, &d, &k)
			withList, withoutList := k, k
			withoutList.Exposure.open = nil
			if k.Exposure.areOpen(d.Hostnames) {
				used++
			}
			states := States(d, withList)
			if want := States(d, withoutList); !reflect.DeepEqual(states, want) {
				t.Fatalf("seed %d: the states are %v, and without the list %v", seed, states, want)
			}
			inEffect := random.IntN(3) > 0
			next := withList.Exposure.Next(d, states, inEffect, k.Uptime)
			if want := withoutList.Exposure.Next(d, states, inEffect, k.Uptime); !reflect.DeepEqual(next.hostnames, want.hostnames) {
				t.Fatalf("seed %d: the exposure is %v, and without the list %v", seed, next.hostnames, want.hostnames)
			}
			k.Exposure = next
		}
	}
	if used < 1000 {
		t.Errorf("the list was used in %d decisions, want at least 1000", used)
	}
}

// changeRandomly changes the hostnames and what is known about them.
func changeRandomly(random *rand.Rand, d *Demanded, k *Known) {
	k.Uptime += time.Duration(random.IntN(120)) * time.Second
	k.Read, k.Frozen, k.Verdicts = random.IntN(2) == 0, random.IntN(10) == 0, nil
	if random.IntN(5) == 0 {
		k.Verdicts = Verdicts{"a.example.com": {Reason: conditions.ReasonProtected, Application: &Application{Hostname: "a.example.com", AUDTag: "aud"}}}
	}
	d.Unknown = random.IntN(10) == 0
	if random.IntN(3) > 0 {
		return // the same hostnames, as for most decisions
	}
	d.Hostnames, d.ByHand, d.Demands = nil, nil, map[string]Demand{}
	for _, hostname := range []string{"*.example.com", "a.example.com", "b.example.com", "c.example.com"} {
		switch random.IntN(12) {
		case 0:
			d.Demands[hostname] = Demand{Hostname: hostname, Level: LevelPolicy, Permitted: true}
		case 1:
			d.ByHand = append(d.ByHand, hostname)
		case 2: // the hostname is not in the table
		default:
			d.Hostnames = append(d.Hostnames, hostname)
		}
	}
}
