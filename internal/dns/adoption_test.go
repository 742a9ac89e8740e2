package dns_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// adopt requests the adoption of the name's record for alpha, as it is now.
func (s *scenario) adopt(name string) {
	s.t.Helper()
	records := s.database.Records(s.id)
	i := slices.IndexFunc(records, func(r zones.Record) bool { return r.Name == name && r.Type != "TXT" })
	if i < 0 {
		s.t.Fatalf("%s has no record", name)
	}
	s.facts.Adoptions = append(slices.Clone(s.facts.Adoptions), dns.Adoption{Gateway: alpha, RecordAdoption: v1alpha1.RecordAdoption{
		Zone: zone, Name: name, ID: records[i].ID, Type: records[i].Type, Content: records[i].Content,
		Requested: metav1.Time{Time: s.facts.Clock},
	}})
}

// wantOutcome checks how the only request has ended, and returns its message.
func (s *scenario) wantOutcome(want v1alpha1.AdoptionResult, message string) string {
	s.t.Helper()
	if len(s.outcomes) != 1 {
		s.t.Fatalf("there are %d outcomes, want 1: %v", len(s.outcomes), s.outcomes)
	}
	got := s.outcomes[0]
	if got.Result != want || !strings.HasPrefix(got.Message, message) {
		s.t.Errorf("the outcome is %s: %s\nwant %s: %s", got.Result, got.Message, want, message)
	}
	return got.Message
}

func TestAdoption(t *testing.T) {
	for name, c := range map[string]struct {
		setup   func(*scenario)
		request string
		// before happens after the request.
		before  func(*scenario)
		changes []string
		result  v1alpha1.AdoptionResult
		message string
	}{
		"a record that leads here": {
			setup:   func(s *scenario) { s.add(www, "CNAME", alphaAt) },
			changes: []string{"adopt www.example.com alpha"}, result: v1alpha1.RecordAdopted,
			message: "The record was of type CNAME with the content " + alphaAt + ", proxied. To undo the adoption, add www.example.com to dns.exclude, and then run: curl ",
		},
		"a record that is not proxied": {
			setup:   func(s *scenario) { s.add(www, "CNAME", alphaAt, unproxied) },
			changes: []string{"adopt www.example.com alpha"}, result: v1alpha1.RecordAdopted,
			message: "The record was of type CNAME with the content " + alphaAt + ", not proxied.",
		},
		"the A record of a former load balancer": {
			setup:   func(s *scenario) { s.add(www, "A", "192.0.2.1") },
			changes: []string{"adopt www.example.com alpha"}, result: v1alpha1.RecordAdopted,
			message: "The record was of type A with the content 192.0.2.1, proxied.",
		},
		"a record of external-dns beside its TXT record": {
			setup: func(s *scenario) {
				s.add(www, "CNAME", "elsewhere.example.net")
				s.add(www, "TXT", `"heritage=external-dns"`)
			},
			changes: []string{"adopt www.example.com alpha"}, result: v1alpha1.RecordAdopted,
		},
		"a record with the mark of a lost key": {
			setup: func(s *scenario) {
				lost := signed
				lost.Key = []byte("lost")
				s.add(www, "CNAME", alphaAt, comment(dns.MarkForTest(lost, provider.ZoneID(s.id), www, alphaAt)))
			},
			changes: []string{"adopt www.example.com alpha"}, result: v1alpha1.RecordAdopted,
		},
		"a record of a rebuilt cluster": {
			setup: func(s *scenario) {
				old := signed
				old.ClusterUID = "77aa"
				s.add(www, "CNAME", "tunnel-of-old.cfargotunnel.com", comment(dns.MarkForTest(old, provider.ZoneID(s.id), www, "tunnel-of-old.cfargotunnel.com")))
			},
			changes: []string{"adopt www.example.com alpha"}, result: v1alpha1.RecordAdopted,
		},
		"a record that the controller manages already": {
			setup:  func(s *scenario) { managed(s, www, alphaAt) },
			result: v1alpha1.RecordAdopted,
		},
		"a managed record of another Gateway": {
			setup: func(s *scenario) {
				managed(s, www, betaAt)
				s.set(gateway(beta, www))
			},
			result: v1alpha1.AdoptionRefused, message: "The controller already manages the record, which leads to another Gateway.",
		},
		"a record that changes after the request": {
			setup: func(s *scenario) { s.add(www, "A", "192.0.2.1") },
			before: func(s *scenario) {
				content := "192.0.2.2"
				if _, err := s.database.Patch(s.id, s.database.Records(s.id)[0].ID, zones.Fields{Content: &content}); err != nil {
					s.t.Fatal(err)
				}
			},
			result: v1alpha1.AdoptionRefused, message: "The record has changed since the request. Read it again, and repeat the request.",
		},
		"a record that is deleted after the request": {
			setup: func(s *scenario) { s.add(www, "A", "192.0.2.1") },
			before: func(s *scenario) {
				s.set(gateway(alpha, www)) // still wanted: it is created
				if err := s.database.Delete(s.id, s.database.Records(s.id)[0].ID); err != nil {
					s.t.Fatal(err)
				}
			},
			changes: []string{"create www.example.com alpha"},
			result:  v1alpha1.AdoptionRefused, message: "The record no longer exists. Read it again, and repeat the request.",
		},
		"one of two A records": {
			setup: func(s *scenario) {
				s.add(www, "A", "192.0.2.1")
				s.add(www, "A", "192.0.2.2")
			},
			result: v1alpha1.AdoptionRefused, message: "The name has several A or AAAA records, and a CNAME record cannot exist beside them. Delete the others first.",
		},
		"a hostname that no Gateway wants": {
			setup: func(s *scenario) { s.add("old.example.com", "A", "192.0.2.1") }, request: "old.example.com",
			result: v1alpha1.AdoptionRefused, message: "Gateway team-a/alpha does not use the hostname: no listener claims it, or no route has it.",
		},
		"a hostname without permission": {
			setup: func(s *scenario) {
				s.settings(func(d *settings.DNS) { d.RequiresPermission = true })
				s.add(www, "A", "192.0.2.1")
				s.set(unpermitted(gateway(alpha, www)))
			},
			result: v1alpha1.AdoptionRefused, message: "The annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname.",
		},
		"an excluded hostname": {
			setup: func(s *scenario) {
				s.settings(func(d *settings.DNS) { d.Exclude = []string{www} })
				s.add(www, "A", "192.0.2.1")
			},
			result: v1alpha1.AdoptionRefused, message: "The hostname is excluded. Remove it from dns.exclude.",
		},
		"a zone that is only observed": {
			setup: func(s *scenario) {
				s.settings(func(d *settings.DNS) { d.Mode = v1alpha1.DNSObserve })
				s.add(www, "A", "192.0.2.1")
			},
			result: v1alpha1.AdoptionRefused, message: "dns.mode for zone example.com is not Manage. Set it to Manage.",
		},
		"a paused Gateway": {
			setup: func(s *scenario) {
				s.add(www, "A", "192.0.2.1")
				g := gateway(alpha, www)
				g.State = ownership.Frozen
				s.set(g)
			},
			result: v1alpha1.AdoptionRefused, message: "The record cannot be adopted: its Gateway is paused,",
		},
		"a Gateway whose class does not list the zone": {
			setup: func(s *scenario) {
				s.add(www, "A", "192.0.2.1")
				g := gateway(alpha, www)
				g.Class = "other"
				s.set(g)
			},
			result: v1alpha1.AdoptionRefused, message: "The GatewayClass of the Gateway does not list zone example.com,",
		},
		"a Tunnel without a Gateway": {
			setup: func(s *scenario) {
				s.add(www, "A", "192.0.2.1")
				s.remove(alpha)
			},
			result: v1alpha1.AdoptionRefused, message: "The Tunnel has no Gateway that uses zone example.com.",
		},
		"a zone that is not active": {
			setup: func(s *scenario) {
				s.add(www, "A", "192.0.2.1")
				s.database.Update(s.id, func(z *zones.Zone) { z.Status = zones.Pending })
			},
			result: v1alpha1.AdoptionRefused, message: "Zone example.com is not active. Complete its setup in the Cloudflare dashboard.",
		},
		"a record that leads elsewhere, without a route": {
			setup: func(s *scenario) {
				s.add(www, "A", "192.0.2.1")
				g := gateway(alpha, www)
				g.Hostnames[0].Served = false
				s.set(g)
			},
			result: v1alpha1.AdoptionRefused, message: "The record leads elsewhere, and the Gateway serves no route for the hostname yet, or no connector has connected to its tunnel.",
		},
		"a record in a listed child zone": {
			setup: func(s *scenario) {
				s.settings(func(d *settings.DNS) { d.Zones = settingsZones(zone, www) })
				s.add(www, "A", "192.0.2.1")
			},
			result: v1alpha1.AdoptionRefused, message: "The hostname belongs to another zone in dns.zones.",
		},
		"an MX record": {
			setup: func(s *scenario) { s.add("mail.example.com", "MX", "mx.example.net") }, request: "mail.example.com",
			before:  func(s *scenario) { s.set(gateway(alpha, "mail.example.com")) },
			changes: []string{"create mail.example.com alpha"},
			result:  v1alpha1.AdoptionRefused, message: "Only A, AAAA and CNAME records can be adopted.",
		},
		"an old request": {
			setup:  func(s *scenario) { s.add(www, "A", "192.0.2.1") },
			before: func(s *scenario) { s.wait(time.Hour + time.Second) },
			result: v1alpha1.AdoptionRefused, message: "The request is older than an hour. Repeat it.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.set(gateway(alpha, www))
			c.setup(s)
			s.run()
			s.takeLog()
			if c.request == "" {
				c.request = www
			}
			s.adopt(c.request)
			if c.before != nil {
				c.before(s)
			}
			s.runFor(30 * time.Second)
			s.wantLog("with the request", c.changes...)
			s.wantOutcome(c.result, c.message)
			if c.result == v1alpha1.RecordAdopted && s.finding(alpha, www).Verdict != dns.VerdictManaged {
				t.Errorf("the verdict is %s, want Managed", s.finding(alpha, www).Verdict)
			}
		})
	}
}

// Where the type of a record cannot change, one batch deletes it and creates another one.
func TestAdoptionWithFixedTypes(t *testing.T) {
	s := newScenario(t)
	s.database = zones.New(zones.Options{FixedTypes: true})
	s.id = s.database.Add(zones.Zone{Name: zone, Account: account})
	s.cloud = fake.NewDNS(s.database)
	s.set(gateway(alpha, www))
	s.add(www, "A", "192.0.2.1")
	s.run()
	s.takeLog()
	s.adopt(www)
	s.runFor(30 * time.Second)
	s.wantLog("with the request", "failed: invalid DNS record", "adopt www.example.com alpha")
	s.wantOutcome(v1alpha1.RecordAdopted, "The record was of type A with the content 192.0.2.1, proxied.")
	if got := s.target(www); got != "tunnel-of-alpha" {
		t.Errorf("the record leads to %s", got)
	}
}

// A request waits while its Gateway is unknown, and for at most an hour.
func TestAdoptionForAnUnknownGateway(t *testing.T) {
	s := newScenario(t)
	s.add(www, "A", "192.0.2.1")
	unknown := gateway(alpha, www)
	unknown.State = ownership.Unknown
	s.set(unknown)
	s.adopt(www)
	s.runFor(50 * time.Minute)
	if len(s.outcomes) > 0 {
		t.Fatalf("the request has ended: %v", s.outcomes)
	}
	known := *s
	known.set(gateway(alpha, www))
	known.runFor(time.Minute)
	known.wantOutcome(v1alpha1.RecordAdopted, "")
	s.runFor(20 * time.Minute)
	s.wantOutcome(v1alpha1.AdoptionRefused, "The request is older than an hour. Repeat it.")
}

// A process that has crashed before it wrote the result ends the repeated request.
func TestAdoptionAfterCrash(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.add(www, "CNAME", "elsewhere.example.net")
	s.adopt(www)
	requests := s.facts.Adoptions
	s.run()
	s.takeLog()
	s.restart()
	s.facts.Adoptions, s.outcomes = requests, nil
	s.run()
	s.wantLog("after the crash")
	s.wantOutcome(v1alpha1.RecordAdopted, "The record was of type CNAME with the content elsewhere.example.net")
}

// The command that undoes an adoption is one that a shell understands.
func TestUndoIsShell(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.add(www, "CNAME", "elsewhere.example.net", comment(`it's "quoted" $(here)`))
	s.adopt(www)
	s.run()
	message := s.wantOutcome(v1alpha1.RecordAdopted, "")
	_, command, _ := strings.Cut(message, "then run: ")
	script := `curl() { for a in "$@"; do echo "$a"; done; }; CLOUDFLARE_API_TOKEN=token; ` + command
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Authorization: Bearer token", "https://api.cloudflare.com/client/v4/zones/" + s.id + "/dns_records/",
		`{"type":"CNAME","name":"www.example.com","content":"elsewhere.example.net","proxied":true,"ttl":1,"comment":"it's \"quoted\" $(here)"}`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the arguments do not contain %s:\n%s", want, out)
		}
	}
}
