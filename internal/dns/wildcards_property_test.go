package dns_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// The names of random zones: three levels, so that wildcards cover wildcards, and names lie
// below names without records.
var (
	randomLabels = []string{"a", "b", "c"}
	randomNames  = func() (names []string) {
		for _, x := range randomLabels {
			names = append(names, x+".example.com", "*."+x+".example.com")
			for _, y := range randomLabels {
				names = append(names, y+"."+x+".example.com")
			}
		}
		return append(names, "*.example.com", "*.a.a.example.com", "x.a.a.example.com", "example.com")
	}()
)

// TestNoHostnameStopsResolvingBecauseOfAnother publishes and withdraws random hostnames of
// three Gateways in random zones. A hostname that has reached its Gateway, and that the
// Gateway still claims, always reaches it.
func TestNoHostnameStopsResolvingBecauseOfAnother(t *testing.T) {
	runs := 150
	if dns.FewerFaults > 0 || testing.Short() {
		runs = 20
	}
	for seed := range runs {
		synctest.Test(t, func(t *testing.T) {
			p := newProperty(t, uint64(seed)) // #nosec G115 -- small
			for range 25 {
				p.change()
				p.watch(time.Duration(1+p.random.IntN(1000)) * time.Second)
			}
			p.watch(time.Hour)
			p.checkFinal()
			if t.Failed() {
				t.Fatalf("seed %d:\n%s\nzone:%s", seed, strings.Join(p.log, "\n"), p.describe())
			}
		})
	}
}

// property is a random zone and what was reached in it.
type property struct {
	*simulation
	log []string
	// reached are the hostnames that have reached their Gateways since they were claimed,
	// when the nameservers had noticed every change. Before, changes from the time before
	// the claim can still end what a hostname happens to reach.
	reached map[claimed]bool
}

// claimed is a hostname of a Gateway.
type claimed struct {
	gateway int
	name    string
}

func newProperty(t *testing.T, seed uint64) *property {
	t.Helper()
	p := &property{reached: map[claimed]bool{}}
	random := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- not a secret
	p.simulation = newSimulation(t, zones.Zone{RecordQuota: 3500}, settings.DNS{
		DeletionDelay: 10 * time.Minute, MaxRecordsPerNamespace: 1000, RequiresPermission: random.IntN(2) == 0,
	})
	*p.random = *random
	for range p.random.IntN(4) {
		p.createExternal(pick(p.random, randomNames), "TXT", `"text"`)
	}
	for range p.random.IntN(3) {
		p.createExternal(pick(p.random, randomNames), "A", "192.0.2.1")
	}
	p.database.Settle()
	for i, namespace := range []string{"one", "one", "two"} {
		p.gateway(namespace, fmt.Sprintf("g%d", i))
	}
	p.wake = time.Now()
	return p
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// change changes a random Gateway.
func (p *property) change() {
	g := p.random.IntN(len(p.facts.Gateways))
	gateway := &p.facts.Gateways[g]
	hostnames := slices.Clone(gateway.Hostnames)
	name := pick(p.random, randomNames)
	at := slices.IndexFunc(hostnames, func(h dns.Hostname) bool { return h.Name == name })
	switch what := p.random.IntN(10); {
	case what == 0:
		gateway.State = pick(p.random, []ownership.State{ownership.Unknown, ownership.Frozen, ownership.Rejected})
		p.note("g%d is in state %v", g, gateway.State)
	case what == 1 && gateway.State == ownership.Accepted:
		p.facts.GatewaysKnown = false // a restart
		p.memory, p.start = dns.Memory{}, time.Now()
		p.note("a restart")
	case gateway.State != ownership.Accepted || !p.facts.GatewaysKnown:
		gateway.State, p.facts.GatewaysKnown = ownership.Accepted, true
		p.note("g%d is accepted", g)
	case at < 0:
		hostnames = append(hostnames, dns.Hostname{Name: name, Namespace: gateway.Namespace, Created: time.Now(), Served: true, Permitted: true})
		p.note("g%d claims %s", g, name)
	case p.random.IntN(4) == 0:
		hostnames = nil
		p.note("g%d claims nothing", g)
	default:
		hostnames = slices.Delete(hostnames, at, at+1)
		p.note("g%d no longer claims %s", g, name)
	}
	p.set(g, hostnames)
	for c := range p.reached {
		if !p.claims(c) {
			delete(p.reached, c)
		}
	}
}

func (p *property) note(format string, arguments ...any) {
	p.log = append(p.log, fmt.Sprintf("%9s  ", time.Since(p.start).Round(time.Second))+fmt.Sprintf(format, arguments...))
}

func (p *property) claims(c claimed) bool {
	return slices.ContainsFunc(p.facts.Gateways[c.gateway].Hostnames, func(h dns.Hostname) bool { return h.Name == c.name })
}

// watch lets time pass, and looks often whether every hostname is still reached.
func (p *property) watch(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !p.t.Failed(); {
		step := min(time.Until(end), time.Duration(2+p.random.IntN(10))*time.Second)
		if p.database.Pending() == 0 && !p.wake.IsZero() && time.Until(p.wake) > time.Minute {
			step = min(time.Until(end), time.Until(p.wake)-time.Second)
		}
		p.run(step)
		p.look()
	}
}

// look checks that hostnames that were reached are reached.
func (p *property) look() {
	for g := range p.facts.Gateways {
		for _, h := range p.facts.Gateways[g].Hostnames {
			c := claimed{g, h.Name}
			now := p.reaches(h.Name, g)
			if p.reached[c] && !now {
				p.note("%s no longer reaches g%d: %+v", h.Name, g, p.database.Lookup(h.Name))
				p.t.Errorf("%s stops resolving to its Gateway g%d", h.Name, g)
			}
			p.reached[c] = p.reached[c] || now && p.database.Pending() == 0
		}
	}
}

// checkFinal checks that every hostname reaches a Gateway that wants it, unless an external
// record is in the way, and that no record is left that is not wanted.
func (p *property) checkFinal() {
	p.facts.GatewaysKnown = true
	for g := range p.facts.Gateways {
		p.facts.Gateways[g].State = ownership.Accepted
	}
	p.wake = time.Now()
	p.watch(2 * time.Hour)
	wanted := map[string][]int{}
	for g := range p.facts.Gateways {
		for _, h := range p.facts.Gateways[g].Hostnames {
			wanted[h.Name] = append(wanted[h.Name], g)
		}
	}
	occupied := map[string]bool{}
	for _, r := range p.database.Records(p.id) {
		if r.Comment == "" {
			occupied[r.Name] = occupied[r.Name] || r.Type == "A"
		} else if len(wanted[r.Name]) == 0 {
			p.t.Errorf("%s is not deleted", r.Name)
		}
	}
	for name, gateways := range wanted {
		if p.underAddress(name, occupied) {
			continue
		}
		if !slices.ContainsFunc(gateways, func(g int) bool { return p.reaches(name, g) }) {
			p.t.Errorf("%s reaches none of %v: %+v", name, gateways, p.finding(name, gateways[0]))
		}
	}
}

// underAddress reports whether an external record answers for the name, or could.
func (p *property) underAddress(name string, occupied map[string]bool) bool {
	if occupied[name] {
		return true
	}
	for rest := strings.TrimPrefix(name, "*."); strings.HasSuffix(rest, ".example.com"); {
		_, rest, _ = strings.Cut(rest, ".")
		if occupied["*."+rest] {
			return true
		}
	}
	return false
}
