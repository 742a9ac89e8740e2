package dns_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const (
	account = "account"
	zone    = "example.com"
)

var (
	epoch  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	alpha  = types.NamespacedName{Namespace: "team-a", Name: "alpha"}
	beta   = types.NamespacedName{Namespace: "team-b", Name: "beta"}
	signed = dns.Options{ClusterID: "prod", ClusterUID: "6f1c", Key: []byte("0123456789abcdef0123456789abcdef")}
)

// scenario is a zone in the simulator's database and the facts about it.
type scenario struct {
	t        *testing.T
	database *zones.Database
	id       string
	cloud    *fake.DNS
	facts    dns.Facts
	// log are the changes that were made, and calls counts the requests.
	log   []string
	calls map[dns.Action]int
	// outcomes are how the adoption requests ended.
	outcomes []dns.AdoptionOutcome
}

// newScenario returns an active zone without records and a class that manages it.
func newScenario(t *testing.T) *scenario {
	t.Helper()
	return newScenarioIn(t, zones.Zone{Name: zone, Account: account})
}

func newScenarioIn(t *testing.T, z zones.Zone) *scenario {
	t.Helper()
	s := &scenario{t: t, database: zones.New(zones.Options{}), calls: map[dns.Action]int{}}
	s.id = s.database.Add(z)
	s.cloud = fake.NewDNS(s.database)
	s.facts = dns.Facts{
		Clock: epoch, Options: signed, Zone: zone, Account: account, GatewaysKnown: true, TokenVersion: "1",
		Classes: []dns.Class{{Name: "tunnel", Created: epoch, Settings: settings.DNS{
			Mode: v1alpha1.DNSManage, Zones: []v1alpha1.DNSZone{{Name: zone}},
			DeletionDelay: 10 * time.Minute, MaxRecordsPerNamespace: 100,
		}}},
	}
	return s
}

// tunnelOf returns the tunnel of a Gateway.
func tunnelOf(name types.NamespacedName) provider.TunnelID {
	return provider.TunnelID("tunnel-of-" + name.Name)
}

// gateway returns an accepted and connected Gateway that publishes the hostnames. alpha is
// older than beta.
func gateway(name types.NamespacedName, hostnames ...string) dns.Gateway {
	g := dns.Gateway{
		NamespacedName: name, Created: epoch, Class: "tunnel", State: ownership.Accepted, Tunnel: tunnelOf(name), Connected: true,
	}
	if name == beta {
		g.Created = epoch.Add(time.Hour)
	}
	for i, h := range hostnames {
		g.Hostnames = append(g.Hostnames, dns.Hostname{
			Name: h, Namespace: name.Namespace, Created: g.Created.Add(time.Duration(i) * time.Second), Served: true, Permitted: true,
		})
	}
	return g
}

// set replaces or adds the Gateway.
func (s *scenario) set(g dns.Gateway) {
	s.facts.Gateways = slices.Clone(s.facts.Gateways)
	i := slices.IndexFunc(s.facts.Gateways, func(other dns.Gateway) bool { return other.NamespacedName == g.NamespacedName })
	if i < 0 {
		s.facts.Gateways = append(s.facts.Gateways, g)
		return
	}
	s.facts.Gateways[i] = g
}

// remove removes the Gateway with its Tunnel object.
func (s *scenario) remove(name types.NamespacedName) {
	s.facts.Gateways = slices.DeleteFunc(slices.Clone(s.facts.Gateways), func(g dns.Gateway) bool { return g.NamespacedName == name })
}

// settings changes the settings of the first class.
func (s *scenario) settings(change func(*settings.DNS)) {
	s.facts.Classes = slices.Clone(s.facts.Classes)
	change(&s.facts.Classes[0].Settings)
}

// add creates a proxied record as an administrator does.
func (s *scenario) add(name, recordType, content string, change ...func(*zones.Fields)) {
	s.t.Helper()
	f := zones.Fields{Name: &name, Type: &recordType, Content: &content}
	proxied := recordType == "A" || recordType == "AAAA" || recordType == "CNAME"
	f.Proxied = &proxied
	for _, c := range change {
		c(&f)
	}
	if _, err := s.database.Create(s.id, f); err != nil {
		s.t.Fatalf("creating the %s record of %s: %s", recordType, name, err)
	}
}

func unproxied(f *zones.Fields) { f.Proxied = new(bool) }

func comment(text string) func(*zones.Fields) {
	return func(f *zones.Fields) { f.Comment = &text }
}

// restart forgets everything that only the process knows.
func (s *scenario) restart() { s.facts.Memory = dns.Memory{} }

// wait lets time pass.
func (s *scenario) wait(d time.Duration) {
	s.facts.Uptime += d
	s.facts.Clock = s.facts.Clock.Add(d)
}

// next observes and decides.
func (s *scenario) next() dns.Step {
	s.facts.Memory = dns.Observe(s.facts)
	return dns.Decide(s.facts)
}

// run executes steps until one ends, and returns it. Each request takes 100 ms.
func (s *scenario) run() dns.Step {
	s.t.Helper()
	for range 1000 {
		step := s.next()
		if step.Ends() {
			return step
		}
		s.execute(step)
	}
	s.t.Fatalf("the steps do not end; the last changes: %q", s.log[max(0, len(s.log)-5):])
	return dns.Step{}
}

// runFor executes steps for that time.
func (s *scenario) runFor(d time.Duration) {
	s.t.Helper()
	end := s.facts.Uptime + d
	for {
		step := s.run()
		if step.Action == dns.None || s.facts.Uptime+step.Delay > end {
			s.wait(max(end-s.facts.Uptime, 0))
			return
		}
		s.wait(max(step.Delay, time.Millisecond))
	}
}

// execute executes a step with the fake.
func (s *scenario) execute(step dns.Step) {
	s.t.Helper()
	ctx := s.t.Context()
	r := dns.Result{Sent: s.facts.Uptime}
	switch step.Action {
	case dns.ReadZone:
		r.Zones, r.Err = s.cloud.Zones(ctx, zone, step.ID)
	case dns.ReadUsage:
		r.Usage, r.Err = s.cloud.Usage(ctx, step.ID)
	case dns.ReadCertificates:
		r.Hosts, r.Err = s.cloud.CertificateHosts(ctx, step.ID)
	case dns.ReadRecords:
		r.Records, r.Err = s.cloud.Records(ctx, step.ID, step.Names...)
	case dns.Apply:
		r.Records, r.Err = s.cloud.Apply(ctx, step.ID, step.Batch)
	case dns.ConcludeAdoptions:
	default:
		s.t.Fatalf("unknown action %s", step.Action)
	}
	s.calls[step.Action]++
	s.wait(100 * time.Millisecond)
	r.Uptime = s.facts.Uptime
	if r.Err == nil {
		for _, c := range step.Changes {
			s.log = append(s.log, fmt.Sprintf("%s %s %s", c.Operation, c.Name, c.Gateway.Name))
		}
		s.conclude(step.Adoptions)
	} else if step.Action == dns.Apply {
		s.log = append(s.log, fmt.Sprintf("failed: %s", class(r.Err)))
	}
	s.facts.Memory = dns.Conclude(s.facts.Memory, step, r)
}

// class returns the error's class.
func class(err error) error {
	for _, e := range []error{
		provider.ErrRecordExists, provider.ErrRecordNotFound, provider.ErrQuotaExceeded, provider.ErrInvalidRecord,
		provider.ErrForbidden, provider.ErrUnauthorized,
	} {
		if errors.Is(err, e) {
			return e
		}
	}
	return err
}

// conclude removes the requests that have ended.
func (s *scenario) conclude(outcomes []dns.AdoptionOutcome) {
	s.outcomes = append(s.outcomes, outcomes...)
	for _, o := range outcomes {
		s.facts.Adoptions = slices.DeleteFunc(slices.Clone(s.facts.Adoptions), func(a dns.Adoption) bool {
			return a.Gateway == o.Gateway && a.Name == o.Name && a.Requested.Equal(&o.Requested)
		})
	}
}

// report observes and reports.
func (s *scenario) report() dns.Report {
	s.facts.Memory = dns.Observe(s.facts)
	return dns.NewReport(s.facts)
}

// finding returns the finding for a Gateway's hostname.
func (s *scenario) finding(g types.NamespacedName, hostname string) dns.Finding {
	return s.report().Gateways[g][hostname]
}

// takeLog returns the changes since the last call.
func (s *scenario) takeLog() []string {
	log := s.log
	s.log = nil
	return log
}

// target returns the content of the name's record, or "".
func (s *scenario) target(name string) string {
	for _, r := range s.database.Records(s.id) {
		if r.Name == name && (r.Type == "CNAME" || r.Type == "A") {
			return strings.TrimSuffix(r.Content, ".cfargotunnel.com")
		}
	}
	return ""
}

// errors503 is a temporary failure.
var errors503 = &provider.UnavailableError{Err: errors.New("status 503")}

// settingsZones returns the zones with the names, without IDs.
func settingsZones(names ...string) []v1alpha1.DNSZone {
	var all []v1alpha1.DNSZone
	for _, name := range names {
		all = append(all, v1alpha1.DNSZone{Name: name})
	}
	return all
}
