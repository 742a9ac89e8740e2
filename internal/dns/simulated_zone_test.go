package dns_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"

	"k8s.io/apimachinery/pkg/types"
)

const (
	simulatedZone    = "example.com"
	simulatedAccount = "account"
	// requestTime is how long the API takes to answer, and budget and budgetInterval are
	// DNS's share of the API request budget.
	requestTime    = time.Second
	budget         = 240
	budgetInterval = 5 * time.Minute
)

// simulation runs the decisions about a zone against the simulator's database, on the clock
// of a synctest bubble. The nameservers notice each change after up to a minute.
type simulation struct {
	t        *testing.T
	database *zones.Database
	api      *fake.DNS
	id       string
	start    time.Time
	facts    dns.Facts
	memory   dns.Memory
	// random is the source of all delays. A test can seed it.
	random *rand.Rand
	wake   time.Time // when the controller decides next; zero means when a fact changes
	// requests are when requests were sent, and actions counts them.
	requests []time.Time
	actions  map[dns.Action]int
}

// newSimulation returns a zone without records and a controller that manages it.
func newSimulation(t *testing.T, z zones.Zone, set settings.DNS) *simulation {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1)) // #nosec G404 -- not a secret
	delay := func() time.Duration { return time.Duration(random.Int64N(int64(time.Minute))) }
	s := &simulation{t: t, database: zones.New(zones.Options{Delay: delay}), random: random, start: time.Now(), actions: map[dns.Action]int{}}
	z.Name, z.Account = simulatedZone, simulatedAccount
	s.id = s.database.Add(z)
	s.api = fake.NewDNS(s.database)
	set.Mode, set.Zones = v1alpha1.DNSManage, []v1alpha1.DNSZone{{Name: simulatedZone}}
	s.facts = dns.Facts{
		Options: dns.Options{ClusterID: "cluster", ClusterUID: "uid", Key: []byte(strings.Repeat("k", 32))},
		Zone:    simulatedZone, Account: simulatedAccount, GatewaysKnown: true, TokenVersion: "1",
		Classes: []dns.Class{{Name: "class", Created: s.start, Settings: set}},
	}
	return s
}

// gateway adds an accepted Gateway, and returns its index.
func (s *simulation) gateway(namespace, name string) int {
	s.facts.Gateways = append(s.facts.Gateways, dns.Gateway{
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, Created: s.start.Add(time.Duration(len(s.facts.Gateways)) * time.Second),
		Class: "class", State: ownership.Accepted, Tunnel: provider.TunnelID("tunnel-" + name), Connected: true,
	})
	return len(s.facts.Gateways) - 1
}

// set replaces the Gateway's hostnames, and makes the controller decide.
func (s *simulation) set(gateway int, hostnames []dns.Hostname) {
	s.facts.Gateways[gateway].Hostnames = hostnames
	s.wake = time.Now()
}

// run lets time pass, and lets the controller decide when it is due.
func (s *simulation) run(d time.Duration) {
	for end := time.Now().Add(d); ; {
		switch now := time.Now(); {
		case !s.wake.IsZero() && !s.wake.After(now):
			s.reconcile()
		case s.wake.IsZero() || s.wake.After(end):
			sleepUntil(end)
			return
		default:
			sleepUntil(s.wake)
		}
		if s.t.Failed() {
			return
		}
	}
}

// sleepUntil waits on the bubble's clock.
func sleepUntil(at time.Time) {
	if d := time.Until(at); d > 0 {
		<-time.After(d)
	}
}

// reconcile decides and acts until the reconcile ends.
func (s *simulation) reconcile() {
	for range 1000 {
		f := s.now()
		f.Memory = dns.Observe(f)
		step := dns.Decide(f)
		s.memory = f.Memory
		if step.Ends() {
			s.wake = time.Time{}
			if step.Action == dns.Wait {
				s.wake = time.Now().Add(step.Delay)
			}
			return
		}
		r := dns.Result{Sent: f.Uptime}
		s.execute(step, &r)
		r.Uptime = s.now().Uptime
		s.memory = dns.Conclude(s.memory, step, r)
	}
	s.t.Error("the steps continue without a wait")
}

// now returns the Facts at this time.
func (s *simulation) now() dns.Facts {
	f := s.facts
	f.Uptime, f.Clock, f.Memory = time.Since(s.start)+time.Second, time.Now(), s.memory
	f.Gateways = slices.Clone(f.Gateways)
	for i := range f.Gateways {
		if f.Gateways[i].State == ownership.Unknown { // its hostnames are what the controller does not know
			f.Gateways[i].Hostnames, f.Gateways[i].Connected = nil, false
		}
	}
	if !f.GatewaysKnown {
		f.Gateways = nil
	}
	return f
}

// execute sends the step's requests, if the budget permits them.
func (s *simulation) execute(step dns.Step, r *dns.Result) {
	if r.Err = s.reserve(step); r.Err != nil {
		return
	}
	ctx := s.t.Context()
	switch step.Action {
	case dns.ReadZone:
		r.Zones, r.Err = s.api.Zones(ctx, s.facts.Zone, step.ID)
	case dns.ReadUsage:
		r.Usage, r.Err = s.api.Usage(ctx, step.ID)
	case dns.ReadCertificates:
		r.Hosts, r.Err = s.api.CertificateHosts(ctx, step.ID)
	case dns.ReadRecords:
		r.Records, r.Err = s.api.Records(ctx, step.ID, step.Names...)
		if pages := max(1, (len(r.Records)+4999)/5000); len(step.Names) == 0 && pages > step.Requests {
			s.t.Errorf("a list of %d records reserves %d requests", len(r.Records), step.Requests)
		}
	case dns.Apply:
		r.Records, r.Err = s.api.Apply(ctx, step.ID, step.Batch)
		if errors.Is(r.Err, provider.ErrInvalidRecord) || errors.Is(r.Err, provider.ErrRecordExists) {
			s.t.Errorf("the API refuses %+v: %v", step.Batch, r.Err)
		}
	default:
		s.t.Errorf("unknown action %q", step.Action)
	}
}

// reserve takes the step's requests from the budget, and waits for as long as they take.
func (s *simulation) reserve(step dns.Step) error {
	recent := 0
	for _, at := range s.requests {
		if time.Since(at) < budgetInterval {
			recent++
		}
	}
	if recent+step.Requests > budget {
		return &provider.RateLimitedError{RetryAfter: 10 * time.Second, Budget: true}
	}
	s.actions[step.Action] += step.Requests
	for range step.Requests {
		s.requests = append(s.requests, time.Now())
		<-time.After(requestTime)
	}
	return nil
}

// reaches reports whether visitors of the hostname reach the Gateway now.
func (s *simulation) reaches(hostname string, gateway int) bool {
	if rest, ok := strings.CutPrefix(hostname, "*."); ok {
		hostname = "zzz." + rest
	}
	answer := s.database.Lookup(hostname)
	return answer.Outcome == zones.Found && answer.Steps[0].Proxied() && answer.Target == s.facts.Gateways[gateway].Tunnel.Hostname()
}

// createExternal creates a record that the controller does not manage.
func (s *simulation) createExternal(name, kind, content string) {
	proxied := kind == "A" || kind == "CNAME"
	if _, err := s.database.Create(s.id, zones.Fields{Name: &name, Type: &kind, Content: &content, Proxied: &proxied}); err != nil {
		s.t.Logf("no record %s %s: %v", name, kind, err)
	}
}

// describe lists the zone's records.
func (s *simulation) describe() string {
	var b strings.Builder
	for _, r := range s.database.Records(s.id) {
		fmt.Fprintf(&b, "\n  %s %s %s %q", r.Name, r.Type, r.Content, r.Comment)
	}
	return b.String()
}

// finding returns what is reported for the Gateway's hostname.
func (s *simulation) finding(hostname string, gateway int) dns.Finding {
	f := s.now()
	f.Memory = dns.Observe(f)
	return dns.NewReport(f).Gateways[s.facts.Gateways[gateway].NamespacedName][hostname]
}
