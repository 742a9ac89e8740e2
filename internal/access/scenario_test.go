package access_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	edge "github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

const (
	account = "account"
	www     = "www.example.com"
	app     = "app.example.com"
	star    = "*.example.com"
)

var (
	epoch  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	alpha  = types.NamespacedName{Namespace: "team-a", Name: "alpha"}
	beta   = types.NamespacedName{Namespace: "team-b", Name: "beta"}
	signed = ownership.Identity{ClusterID: "prod", ClusterUID: "6f1c", Key: []byte("0123456789abcdef0123456789abcdef")}
)

// scenario is an account in the simulator's database and the facts about it.
type scenario struct {
	t        *testing.T
	database *edge.Database
	cloud    *fake.Access
	facts    access.Facts
	// log are the writes that were made, and calls counts the requests.
	log   []string
	calls map[access.Action]int
	// outcomes are how the adoption requests ended.
	outcomes []access.AdoptionOutcome
	// fail returns the error of a write, or nil, before it is sent.
	fail func(access.Write) error
	// normalize changes applications as Cloudflare stores them.
	normalize func(*provider.Application)
	// lose reports whether the answer to a write is lost after it was applied.
	lose func(access.Write) bool
}

// newScenario returns an account without applications and a class that manages them.
func newScenario(t *testing.T) *scenario {
	t.Helper()
	return newScenarioIn(t, edge.New(edge.Options{}))
}

func newScenarioIn(t *testing.T, database *edge.Database) *scenario {
	t.Helper()
	s := &scenario{t: t, database: database, calls: map[access.Action]int{}}
	s.cloud = fake.NewAccess(s.database, account)
	if len(database.Policies(account)) == 0 {
		for id, decision := range map[string]string{"p-employees": "allow", "p-ci": "non_identity", "p-guests": "allow", "p-blocked": "deny", "p-everyone": "bypass"} {
			s.database.AddPolicy(account, edge.Policy{ID: id, Name: id, Decision: decision})
		}
	}
	s.facts = access.Facts{
		Clock: epoch, Identity: signed, GatewaysKnown: true, TokenVersion: "1",
		Classes: []access.Class{class("tunnel", 0)},
	}
	return s
}

// class returns a GatewayClass that manages applications. age is how much later than others
// it was created.
func class(name string, age time.Duration) access.Class {
	return access.Class{Name: name, Created: epoch.Add(age), Settings: settings.Applications{
		Mode: v1alpha1.ApplicationsManaged, TeamName: "acme", MaxApplications: 400, OpeningDelay: 30 * time.Second, RequiresPermission: true,
		Catalogue: map[v1alpha1.PolicyName]string{
			"employees": "p-employees", "ci": "p-ci", "guests": "p-guests", "blocked": "p-blocked", "everyone": "p-everyone", "missing": "p-missing",
		},
	}}
}

// gateway returns an accepted Gateway with the demands, whose rules demand no tokens. alpha
// is older than beta.
func gateway(name types.NamespacedName, demands ...access.Demand) access.Gateway {
	g := access.Gateway{
		NamespacedName: name, Created: epoch, Class: "tunnel", State: ownership.Accepted, HasTunnel: true, InEffectKnown: true,
	}
	if name == beta {
		g.Created = epoch.Add(time.Hour)
	}
	for _, d := range demands {
		namespace := d.Owner[strings.LastIndex(d.Owner, "/")+1:]
		g.Demands = append(g.Demands, d)
		g.Hostnames = append(g.Hostnames, access.Hostname{Name: d.Hostname, Namespace: namespace, Created: d.Created, Permitted: d.Permitted})
	}
	return g
}

// demand returns a permitted demand of an AccessPolicy in the namespace.
func demand(namespace, hostname string, policies ...v1alpha1.PolicyName) access.Demand {
	return access.Demand{
		Hostname: hostname, Level: access.LevelPolicy, Object: "AccessPolicy " + namespace + "/admin", Owner: "AccessPolicy/" + namespace + "/" + namespace,
		Namespace: namespace, Created: epoch, Policies: policies, SessionDuration: 8 * time.Hour, Permitted: true,
	}
}

// ofClass returns the demand as one of the GatewayClass.
func ofClass(d access.Demand) access.Demand {
	d.Level, d.Object, d.Owner, d.Namespace = access.LevelClass, "TunnelConfiguration system/platform", "GatewayClass/tunnel/"+d.Namespace, ""
	return d
}

// ofGateway returns the demand as one of the Gateway.
func ofGateway(g types.NamespacedName, d access.Demand) access.Demand {
	d.Level, d.Object, d.Owner, d.Namespace = access.LevelGateway, "TunnelConfiguration "+g.String(), "Gateway/"+g.String()+"/"+d.Namespace, g.Namespace
	return d
}

// with returns the Gateway with another hostname without a demand.
func with(g access.Gateway, namespace, hostname string, change ...func(*access.Hostname)) access.Gateway {
	h := access.Hostname{Name: hostname, Namespace: namespace, Created: epoch, Permitted: true}
	for _, c := range change {
		c(&h)
	}
	g.Hostnames = append(slices.Clone(g.Hostnames), h)
	return g
}

func exempt(h *access.Hostname) { h.Exempt = true }

func unpermitted(h *access.Hostname) { h.Permitted = false }

// in returns the Gateway in the state.
func in(g access.Gateway, state ownership.State) access.Gateway {
	g.State = state
	if state == ownership.Departed || state == ownership.Retiring {
		g.Class, g.Demands, g.Hostnames = "", nil, nil
	}
	return g
}

// set replaces or adds the Gateway.
func (s *scenario) set(g access.Gateway) {
	s.facts.Gateways = slices.Clone(s.facts.Gateways)
	i := slices.IndexFunc(s.facts.Gateways, func(other access.Gateway) bool { return other.NamespacedName == g.NamespacedName })
	if i < 0 {
		s.facts.Gateways = append(s.facts.Gateways, g)
		return
	}
	if len(g.InEffect) == 0 {
		g.InEffect = s.facts.Gateways[i].InEffect
	}
	s.facts.Gateways[i] = g
}

// remove removes the Gateway with its Tunnel object.
func (s *scenario) remove(name types.NamespacedName) {
	s.facts.Gateways = slices.DeleteFunc(slices.Clone(s.facts.Gateways), func(g access.Gateway) bool { return g.NamespacedName == name })
}

// demandTokens sets the AUD tags that the rules of the Gateway in effect demand.
func (s *scenario) demandTokens(name types.NamespacedName, hostnames ...string) {
	s.facts.Gateways = slices.Clone(s.facts.Gateways)
	for i := range s.facts.Gateways {
		if g := &s.facts.Gateways[i]; g.NamespacedName == name {
			g.InEffect = nil
			for _, hostname := range hostnames {
				g.InEffect = append(g.InEffect, s.find(hostname).AUD)
			}
			slices.Sort(g.InEffect)
		}
	}
}

// settings changes the settings of the first class.
func (s *scenario) settings(change func(*settings.Applications)) {
	s.facts.Classes = slices.Clone(s.facts.Classes)
	change(&s.facts.Classes[0].Settings)
}

// add creates an application as an administrator does, and returns its ID.
func (s *scenario) add(fields string) string {
	s.t.Helper()
	created, err := s.database.Create(account, []byte(fields))
	if err != nil {
		s.t.Fatalf("creating the application %s: %s", fields, err)
	}
	return created.ID
}

// find returns the application that covers the hostname or wildcard, or an empty one.
func (s *scenario) find(hostname string) edge.Application {
	for _, a := range s.database.Applications(account) {
		if slices.Contains(a.Domains, hostname) {
			return a
		}
	}
	return edge.Application{}
}

// edit changes the application of the hostname as another writer does.
func (s *scenario) edit(hostname string, change func(fields map[string]any)) {
	s.t.Helper()
	a := s.find(hostname)
	if a.ID == "" {
		s.t.Fatalf("%s has no application", hostname)
	}
	s.database.Edit(account, a.ID, change)
}

// restart forgets everything that only the process knows.
func (s *scenario) restart() { s.facts.Memory = access.Memory{} }

// wait lets time pass.
func (s *scenario) wait(d time.Duration) {
	s.facts.Uptime += d
	s.facts.Clock = s.facts.Clock.Add(d)
}

// next observes and decides.
func (s *scenario) next() access.Step {
	s.facts.Memory = access.Observe(s.facts)
	return access.Decide(s.facts)
}

// run executes steps until one ends, and returns it. Each step takes 100 ms.
func (s *scenario) run() access.Step {
	s.t.Helper()
	for range 2000 {
		step := s.next()
		if step.Ends() {
			return step
		}
		s.execute(step)
	}
	s.t.Fatalf("the steps do not end; the last writes: %q", s.log[max(0, len(s.log)-5):])
	return access.Step{}
}

// runFor executes steps for that time.
func (s *scenario) runFor(d time.Duration) {
	s.t.Helper()
	end := s.facts.Uptime + d
	for {
		step := s.run()
		if step.Action == access.None || s.facts.Uptime+step.Delay > end {
			s.wait(max(end-s.facts.Uptime, 0))
			return
		}
		s.wait(max(step.Delay, time.Millisecond))
	}
}

// execute executes a step with the fake.
func (s *scenario) execute(step access.Step) {
	s.t.Helper()
	ctx := s.t.Context()
	r := access.Result{Sent: s.facts.Uptime}
	switch step.Action {
	case access.ReadApplications:
		r.Applications, r.Err = s.cloud.Applications(ctx)
		for i := range r.Applications {
			if s.normalize != nil {
				s.normalize(&r.Applications[i])
			}
		}
	case access.ReadPolicies:
		r.Policies, r.Err = s.cloud.Policies(ctx)
	case access.Apply:
		if len(step.Writes) > access.MaxWrites {
			s.t.Errorf("a step has %d writes", len(step.Writes))
		}
		for _, w := range step.Writes {
			r.Writes = append(r.Writes, s.write(w))
		}
	case access.ConcludeAdoptions:
		s.conclude(step.Adoptions)
	default:
		s.t.Fatalf("unknown action %s", step.Action)
	}
	s.calls[step.Action]++
	s.wait(100 * time.Millisecond)
	r.Uptime = s.facts.Uptime
	s.facts.Memory = access.Conclude(s.facts.Memory, step, r)
}

// write executes a write with the fake.
func (s *scenario) write(w access.Write) (r access.WriteResult) {
	s.t.Helper()
	if s.fail != nil {
		if r.Err = s.fail(w); r.Err != nil {
			s.log = append(s.log, fmt.Sprintf("failed %s %s", w.Operation, w.Hostname))
			return r
		}
	}
	r = s.send(w)
	if s.normalize != nil {
		s.normalize(&r.Application)
	}
	if r.Err != nil {
		s.log = append(s.log, fmt.Sprintf("failed %s %s: %s", w.Operation, w.Hostname, errorClass(r.Err)))
	} else if w.Operation != access.EnsureTag {
		s.log = append(s.log, describe(w))
	}
	if s.lose != nil && s.lose(w) {
		return access.WriteResult{Err: errors503}
	}
	return r
}

// send sends a write to the fake.
func (s *scenario) send(w access.Write) (r access.WriteResult) {
	ctx := s.t.Context()
	switch w.Operation {
	case access.EnsureTag:
		r.Err = s.cloud.EnsureTag(ctx, w.Tag)
	case access.Create:
		r.Application, r.Err = s.cloud.Create(ctx, w.Spec)
	case access.Update:
		r.Application, r.Err = s.cloud.Update(ctx, w.Last, w.Spec)
	case access.Revoke:
		r.Err = s.cloud.RevokeTokens(ctx, w.Last.ID)
	case access.Delete:
		r.Err = s.cloud.Delete(ctx, w.Last)
	}
	return r
}

// describe returns the write as a line of the log: the operation, the hostname, the Gateway,
// and the policies and marks of an update.
func describe(w access.Write) string {
	line := fmt.Sprintf("%s %s %s", w.Operation, w.Hostname, w.Gateway.Name)
	if w.Spec.Bypass {
		line += " bypass"
	}
	for _, id := range w.Spec.Policies {
		line += " " + strings.TrimPrefix(string(id), "p-")
	}
	for _, tag := range w.Spec.Tags {
		if tag == "tgrevoke" || tag == "tgcontested" {
			line += " " + tag
		}
	}
	return line
}

// errors503 is a temporary failure.
var errors503 = &provider.UnavailableError{Err: errors.New("status 503")}

// errorClass returns the error's class.
func errorClass(err error) error {
	for _, e := range []error{
		provider.ErrApplicationExists, provider.ErrApplicationChanged, provider.ErrPolicyNotFound, provider.ErrQuotaExceeded,
		provider.ErrNoZone, provider.ErrForbidden, provider.ErrUnauthorized, provider.ErrNotFound, provider.ErrTagNotFound,
	} {
		if errors.Is(err, e) {
			return e
		}
	}
	return err
}

// conclude removes the requests that have ended.
func (s *scenario) conclude(outcomes []access.AdoptionOutcome) {
	s.outcomes = append(s.outcomes, outcomes...)
	for _, o := range outcomes {
		s.facts.Adoptions = slices.DeleteFunc(slices.Clone(s.facts.Adoptions), func(a access.Adoption) bool {
			return a.Gateway == o.Gateway && a.Hostname == o.Hostname && a.Requested.Equal(&o.Requested)
		})
	}
}

// report observes and reports.
func (s *scenario) report() access.Report {
	s.facts.Memory = access.Observe(s.facts)
	return access.NewReport(s.facts)
}

// verdict returns the verdict about a Gateway's hostname.
func (s *scenario) verdict(g types.NamespacedName, hostname string) access.Verdict {
	return s.report().Gateways[g][hostname]
}

// takeLog returns the writes since the last call.
func (s *scenario) takeLog() []string {
	log := s.log
	s.log = nil
	return log
}

// wantLog compares the writes since the last call.
func (s *scenario) wantLog(when string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.takeLog()); diff != "" {
		s.t.Errorf("%s, the writes differ (-want +got):\n%s", when, diff)
	}
}

// wantReason compares the reason of a hostname.
func (s *scenario) wantReason(when string, g types.NamespacedName, hostname, want string) {
	s.t.Helper()
	if v := s.verdict(g, hostname); v.Reason.String() != want {
		s.t.Errorf("%s, the reason of %s is %q (%s), want %q", when, hostname, v.Reason, v.Message, want)
	}
}

// edgePolicy returns a policy that allows some visitors.
func edgePolicy(id string) edge.Policy { return edge.Policy{ID: id, Name: id, Decision: "allow"} }
