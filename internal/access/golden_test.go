package access_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// goldenCase is one rule of docs/guides/access.md.
type goldenCase struct {
	name string
	// setup prepares the account and the facts. What it writes is not compared.
	setup func(*scenario)
	// wait is how much time passes.
	wait time.Duration
	// writes are what the controller has written.
	writes []string
	// verdicts are by Gateway and hostname: reason and message.
	verdicts map[string]string
	// orphans are the hostnames of orphans.
	orphans []string
}

func TestGolden(t *testing.T) {
	for _, c := range slices.Concat(demandCases, externalCases, gatewayCases, stateCases, bypassCases, settingsCases) {
		t.Run(c.name, func(t *testing.T) {
			s := newScenario(t)
			c.setup(s)
			s.takeLog()
			s.runFor(c.wait)
			s.check(c)
		})
	}
}

// check compares the writes and the report with the case.
func (s *scenario) check(c goldenCase) {
	s.t.Helper()
	if diff := cmp.Diff(c.writes, s.takeLog()); diff != "" {
		s.t.Errorf("writes differ (-want +got):\n%s", diff)
	}
	report := s.report()
	verdicts := map[string]string{}
	for g, all := range report.Gateways {
		for hostname, v := range all {
			verdicts[g.Name+" "+hostname] = strings.TrimSuffix(v.Reason.String()+": "+v.Message, ": ")
		}
	}
	if diff := cmp.Diff(c.verdicts, verdicts); diff != "" {
		s.t.Errorf("verdicts differ (-want +got):\n%s", diff)
	}
	var orphans []string
	for _, o := range report.Orphans {
		orphans = append(orphans, o.Hostname)
	}
	if diff := cmp.Diff(c.orphans, orphans); diff != "" {
		s.t.Errorf("orphans differ (-want +got):\n%s", diff)
	}
}

// after runs a first setup until nothing is due, and then makes the changes.
func after(first, changes func(*scenario)) func(*scenario) {
	return func(s *scenario) {
		first(s)
		s.run()
		changes(s)
	}
}

// alphaDemands sets the Gateway alpha with the demands.
func alphaDemands(demands ...access.Demand) func(*scenario) {
	return func(s *scenario) { s.set(gateway(alpha, demands...)) }
}

// alphaProtects lets the rules of alpha demand the tokens of the hostnames' applications.
func alphaProtects(hostnames ...string) func(*scenario) {
	return func(s *scenario) {
		s.set(gateway(alpha, demand("team-a", hostnames[0], "employees")))
		s.run()
		s.demandTokens(alpha, hostnames...)
	}
}

var demandCases = []goldenCase{
	{
		name: "a demand gets an application", setup: alphaDemands(demand("team-a", www, "employees", "ci")),
		writes:   []string{"create www.example.com alpha employees ci"},
		verdicts: map[string]string{"alpha www.example.com": "Protected"},
	},
	{
		name: "each level gets an application, also for wildcards and below them",
		setup: alphaDemands(ofClass(demand("team-a", star, "employees")), ofGateway(alpha, demand("team-a", www, "ci")),
			demand("team-a", "a.b.example.com", "guests")),
		writes: []string{"create *.example.com alpha employees", "create a.b.example.com alpha guests", "create www.example.com alpha ci"},
		verdicts: map[string]string{
			"alpha *.example.com": "Protected", "alpha www.example.com": "Protected", "alpha a.b.example.com": "Protected",
		},
	},
	{
		name: "a policy must be in the catalogue", setup: alphaDemands(demand("team-a", www, "staff")),
		verdicts: map[string]string{"alpha www.example.com": "PolicyNotFound: policy staff is not in spec.access.policies of GatewayClass tunnel. Correct the name, or ask the platform team to add the policy."},
	},
	{
		name: "a policy must exist at Cloudflare", setup: alphaDemands(demand("team-a", www, "employees", "missing")),
		verdicts: map[string]string{"alpha www.example.com": "PolicyNotFound: policy missing with the ID p-missing does not exist in the Cloudflare account. Create it as a reusable policy, and correct its ID in spec.access.policies."},
	},
	{
		name: "a policy that lets everybody pass is refused", setup: alphaDemands(demand("team-a", www, "everyone")),
		verdicts: map[string]string{"alpha www.example.com": "PolicyInvalid: policy everyone has the action Bypass, with which Cloudflare issues no tokens. Use a policy with another action."},
	},
	{
		name: "the namespace must have permission for the hostname",
		setup: func(s *scenario) {
			d := demand("team-a", www, "employees")
			d.Permitted = false
			s.set(gateway(alpha, d))
		},
		verdicts: map[string]string{"alpha www.example.com": "HostnameNotPermitted: the annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname, so it can have no application. Use a permitted hostname, or ask a cluster administrator to change the annotation."},
	},
	{
		name: "without permissions in the settings, only the GatewayClass demands",
		setup: func(s *scenario) {
			s.settings(func(a *settings.Applications) { a.RequiresPermission = false })
			d := demand("team-a", www, "employees")
			d.Permitted = false
			s.set(gateway(alpha, d, ofClass(demand("team-a", app, "employees"))))
		},
		writes: []string{"create app.example.com alpha employees"},
		verdicts: map[string]string{
			"alpha www.example.com": "HostnameNotPermitted: only the GatewayClass can demand protection, because its hostnames.from is not NamespaceAnnotation. Ask the platform team to set it, or to add an entry.",
			"alpha app.example.com": "Protected",
		},
	},
	{
		name: "an invalid demand changes nothing, and keeps what exists",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			d := demand("team-a", www)
			d.Invalid = &settings.Problem{Reason: conditions.ReasonTargetNotFound, Message: "listener admin does not exist."}
			s.set(gateway(alpha, d))
		}),
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "TargetNotFound: listener admin does not exist."},
	},
	{
		name: "the application of a policy that leaves the catalogue remains",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.settings(func(a *settings.Applications) { a.Catalogue = map[v1alpha1.PolicyName]string{"ci": "p-ci"} })
		}),
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "PolicyNotFound: policy employees is not in spec.access.policies of GatewayClass tunnel. Correct the name, or ask the platform team to add the policy."},
	},
	{
		name: "the application of a policy that lets everybody pass later remains",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.database.SetDecision(account, "p-employees", "bypass")
		}),
		wait:     time.Hour + time.Minute,
		verdicts: map[string]string{"alpha www.example.com": "PolicyInvalid: policy employees has the action Bypass, with which Cloudflare issues no tokens. Use a policy with another action."},
	},
	{
		name: "a missing policy is found within a minute after it was created",
		setup: after(alphaDemands(demand("team-a", www, "missing")), func(s *scenario) {
			s.database.AddPolicy(account, edgePolicy("p-missing"))
		}),
		wait:     time.Minute + time.Second,
		writes:   []string{"create www.example.com alpha missing"},
		verdicts: map[string]string{"alpha www.example.com": "Protected"},
	},
	{
		name: "without the permission, the application ends",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			d := demand("team-a", www, "employees")
			d.Permitted = false
			s.set(gateway(alpha, d))
		}),
		wait:     time.Minute,
		writes:   []string{"delete www.example.com alpha"},
		verdicts: map[string]string{"alpha www.example.com": "HostnameNotPermitted: the annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname, so it can have no application. Use a permitted hostname, or ask a cluster administrator to change the annotation."},
	},
	{
		name: "an application that another level decides about is made again",
		setup: after(alphaProtects(www), func(s *scenario) {
			s.set(gateway(alpha, ofClass(demand("team-a", www, "employees"))))
		}),
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "Pending: the controller deletes the application when no configuration in effect demands its tokens."},
	},
	{
		name: "and it is made again when no rule demands its tokens",
		setup: after(alphaProtects(www), func(s *scenario) {
			s.set(gateway(alpha, ofClass(demand("team-a", www, "employees"))))
			s.demandTokens(alpha)
		}),
		writes:   []string{"delete www.example.com alpha", "create www.example.com alpha employees"},
		verdicts: map[string]string{"alpha www.example.com": "Protected"},
	},
	{
		name: "an application that another namespace's listener claims is made again",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(gateway(alpha, demand("team-b", www, "employees")))
		}),
		writes:   []string{"delete www.example.com alpha", "create www.example.com alpha employees"},
		verdicts: map[string]string{"alpha www.example.com": "Protected"},
	},
	{
		name: "an application that another client deletes is created again",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			_ = s.database.Delete(account, s.find(www).ID)
		}),
		wait:     10*time.Minute + time.Second,
		writes:   []string{"create www.example.com alpha employees"},
		verdicts: map[string]string{"alpha www.example.com": "Protected"},
	},
	{
		name: "an application without its tag is external, and protects",
		setup: after(alphaProtects(www), func(s *scenario) {
			s.edit(www, func(fields map[string]any) { fields["tags"] = []string{} })
		}),
		wait:     10*time.Minute + time.Second,
		verdicts: map[string]string{"alpha www.example.com": "ApplicationExists: " + existsExactly},
	},
	{
		name: "an application whose hostname was edited is repaired",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.edit(www, func(fields map[string]any) { fields["domain"], fields["self_hosted_domains"] = app, []string{app} })
		}),
		wait:     10*time.Minute + time.Second,
		writes:   []string{"update www.example.com alpha employees tgrevoke", "revoke www.example.com alpha", "update www.example.com alpha employees"},
		verdicts: map[string]string{"alpha www.example.com": "Protected"},
	},
}

const existsExactly = "an application of Cloudflare Access that this controller does not manage protects the hostname. Use its AUD tag in an entry, adopt it with `kubectl tunnel-gateway access adopt www.example.com`, or remove it."

// existsWider is the message about an application that covers more than the hostname.
func existsWider(domain string) string {
	return "an application of Cloudflare Access for " + domain + ", which this controller does not manage, covers the hostname. " +
		"Use its AUD tag in an entry, remove it, or ask the platform team to name the hostname in an entry of the GatewayClass."
}

// named returns the demand of an entry of the GatewayClass that names exactly the hostname.
func named(d access.Demand) access.Demand {
	d = ofClass(d)
	d.NamedByClass = true
	return d
}

// externalCase returns a case with an application by hand for a domain and a demand for
// www.example.com.
func externalCase(name, domain string, d access.Demand, verdict string, writes ...string) goldenCase {
	return goldenCase{
		name: name,
		setup: func(s *scenario) {
			s.add(`{"type": "self_hosted", "name": "by hand", "domain": "` + domain + `"}`)
			s.set(gateway(alpha, d))
		},
		writes: writes, verdicts: map[string]string{"alpha " + d.Hostname: verdict},
	}
}

var externalCases = []goldenCase{
	externalCase("an application by hand has its hostname", www, demand("team-a", www, "employees"), "ApplicationExists: "+existsExactly),
	externalCase("an application by hand has its hostname, also if the GatewayClass names it", www, named(demand("team-a", www, "employees")), "ApplicationExists: "+existsExactly),
	externalCase("an application by hand has the hostnames of its wildcard", star, demand("team-a", www, "employees"), "ApplicationExists: "+existsWider(star)),
	externalCase("an application by hand has the hostnames of a part of a label", "w*.example.com", demand("team-a", www, "employees"), "ApplicationExists: "+existsWider("w*.example.com")),
	externalCase("an application by hand has the hostname of its path", www+"/admin", demand("team-a", www, "employees"), "ApplicationExists: "+existsWider(www+"/admin")),
	externalCase("an application by hand has the wildcard of its path", star+"/admin", ofClass(demand("team-a", star, "employees")), "ApplicationExists: "+existsWider(star+"/admin")),
	externalCase("the GatewayClass can name a hostname below a wildcard by hand", star, named(demand("team-a", www, "employees")), "Protected",
		"create www.example.com alpha employees"),
	externalCase("a wildcard by hand covers one level", star, demand("team-a", "a.b.example.com", "employees"), "Protected",
		"create a.b.example.com alpha employees"),
	externalCase("a narrower application by hand is not weakened", www, ofClass(demand("team-a", star, "employees")), "Protected",
		"create *.example.com alpha employees"),
	{
		name: "an application by hand has all its hostnames",
		setup: func(s *scenario) {
			s.add(`{"type": "self_hosted", "name": "by hand", "domain": "other.example.com", "self_hosted_domains": ["other.example.com", "www.example.com"]}`)
			s.set(gateway(alpha, demand("team-a", www, "employees")))
		},
		verdicts: map[string]string{"alpha www.example.com": "ApplicationExists: " + existsExactly},
	},
	{
		name: "a bookmark protects nothing",
		setup: func(s *scenario) {
			s.add(`{"type": "bookmark", "name": "by hand", "domain": "www.example.com"}`)
			s.set(gateway(alpha, demand("team-a", www, "employees")))
		},
		writes:   []string{"create www.example.com alpha employees"},
		verdicts: map[string]string{"alpha www.example.com": "Protected"},
	},
	{
		name: "an application that a younger one by hand covers remains",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.add(`{"type": "self_hosted", "name": "by hand", "domain": "*.example.com"}`)
		}),
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "Protected"},
	},
	{
		name: "another installation's application is not touched",
		setup: func(s *scenario) {
			other := newScenarioIn(s.t, s.database)
			other.facts.Identity.ClusterUID = "restored"
			other.set(gateway(alpha, demand("team-a", www, "guests")))
			other.run()
			s.set(gateway(alpha, demand("team-a", www, "employees")))
		},
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "ApplicationExists: " + existsExactly},
	},
}

const (
	overridden = "Overridden: another Gateway demands another application for the hostname, and precedes. Demand the same policies on both Gateways, or remove the hostname from one of them."
)

var gatewayCases = []goldenCase{
	{
		name: "the older Gateway precedes",
		setup: func(s *scenario) {
			s.set(gateway(beta, demand("team-b", www, "ci")))
			s.set(gateway(alpha, demand("team-a", www, "employees")))
		},
		writes:   []string{"create www.example.com alpha employees"},
		verdicts: map[string]string{"alpha www.example.com": "Protected", "beta www.example.com": overridden},
	},
	{
		name: "a Gateway's entry precedes an AccessPolicy",
		setup: func(s *scenario) {
			s.set(gateway(alpha, demand("team-a", www, "employees")))
			s.set(gateway(beta, ofGateway(beta, demand("team-b", www, "ci"))))
		},
		writes:   []string{"create www.example.com beta ci"},
		verdicts: map[string]string{"beta www.example.com": "Protected", "alpha www.example.com": overridden},
	},
	{
		name: "the GatewayClass precedes a Gateway's entry",
		setup: func(s *scenario) {
			s.set(gateway(alpha, ofGateway(alpha, demand("team-a", www, "employees"))))
			s.set(gateway(beta, ofClass(demand("team-b", www, "ci"))))
		},
		writes:   []string{"create www.example.com beta ci"},
		verdicts: map[string]string{"beta www.example.com": "Protected", "alpha www.example.com": overridden},
	},
	{
		name: "Gateways with the same demand in a namespace share the application",
		setup: func(s *scenario) {
			s.set(gateway(alpha, ofGateway(alpha, demand("team-a", www, "employees"))))
			s.set(gateway(beta, ofGateway(beta, demand("team-a", www, "employees"))))
		},
		writes:   []string{"create www.example.com alpha employees"},
		verdicts: map[string]string{"alpha www.example.com": "Protected", "beta www.example.com": "Protected"},
	},
	{
		name: "Gateways of two namespaces share no application, because backends see its tokens",
		setup: func(s *scenario) {
			s.set(gateway(alpha, demand("team-a", www, "employees")))
			s.set(gateway(beta, demand("team-b", www, "employees")))
		},
		writes:   []string{"create www.example.com alpha employees"},
		verdicts: map[string]string{"alpha www.example.com": "Protected", "beta www.example.com": overridden},
	},
	{
		name: "a demand that precedes takes the application over",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(gateway(beta, ofClass(demand("team-b", www, "ci"))))
		}),
		writes:   []string{"delete www.example.com beta", "create www.example.com beta ci"},
		verdicts: map[string]string{"beta www.example.com": "Protected", "alpha www.example.com": overridden},
	},
	{
		name: "a demand of the same class and owner takes over application and tag",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(gateway(alpha))
			s.set(gateway(beta, demand("team-a", www, "employees")))
		}),
		writes:   []string{"update www.example.com beta employees"},
		verdicts: map[string]string{"beta www.example.com": "Protected"},
	},
	{
		name: "another demand takes the application over after the opening delay",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(gateway(alpha))
			s.set(gateway(beta, demand("team-b", www, "employees")))
		}),
		wait: 25 * time.Second,
		verdicts: map[string]string{
			"alpha www.example.com": "", "beta www.example.com": "Pending: the controller changes the application in 5s.",
		},
	},
	{
		name: "and makes it again then",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(gateway(alpha))
			s.set(gateway(beta, demand("team-b", www, "employees")))
		}),
		wait:     31 * time.Second,
		writes:   []string{"delete www.example.com beta", "create www.example.com beta employees"},
		verdicts: map[string]string{"beta www.example.com": "Protected"},
	},
	{
		name: "a Gateway without a Tunnel object passes its application on at once",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.remove(alpha)
			s.set(gateway(beta, demand("team-b", www, "ci")))
		}),
		writes:   []string{"delete www.example.com beta", "create www.example.com beta ci"},
		verdicts: map[string]string{"beta www.example.com": "Protected"},
	},
	{
		name: "an application without a Tunnel object and a demand is an orphan",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.remove(alpha)
		}),
		wait: time.Hour, verdicts: map[string]string{}, orphans: []string{www},
	},
}

// stateCase returns a case in which alpha, whose application exists, gets another state and
// no demand, and beta demands other policies.
func stateCase(name string, state ownership.State, alphaVerdict, betaVerdict string, writes ...string) goldenCase {
	c := goldenCase{
		name: name,
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(in(gateway(alpha), state))
			s.set(gateway(beta, demand("team-b", www, "ci")))
		}),
		wait: time.Hour, writes: writes, verdicts: map[string]string{"beta www.example.com": betaVerdict},
	}
	if alphaVerdict != "none" {
		c.verdicts["alpha www.example.com"] = alphaVerdict
	}
	return c
}

var stateCases = []goldenCase{
	stateCase("an unknown Gateway keeps its application", ownership.Unknown, "", overridden),
	stateCase("a paused Gateway keeps its application", ownership.Frozen, "", overridden),
	stateCase("a Gateway that is not accepted keeps its application", ownership.Rejected, "", overridden),
	stateCase("the application of a retained Tunnel passes on", ownership.Departed, "none", "Protected", "delete www.example.com beta", "create www.example.com beta ci"),
	stateCase("the application of a Gateway that retires passes on", ownership.Retiring, "none", "Protected", "delete www.example.com beta", "create www.example.com beta ci"),
	{
		name: "the application of a retained Tunnel remains",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(in(gateway(alpha), ownership.Departed))
		}),
		wait: time.Hour, verdicts: map[string]string{"alpha www.example.com": ""},
	},
	{
		name: "the application of a Gateway that retires is deleted at once",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(in(gateway(alpha), ownership.Retiring))
		}),
		writes: []string{"delete www.example.com alpha"}, verdicts: map[string]string{},
	},
	{
		name: "a Gateway that is gone demands nothing",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			g := gateway(alpha, demand("team-a", www, "employees"))
			g.Class, g.State = "", ownership.Retiring
			s.set(g)
		}),
		writes: []string{"delete www.example.com alpha"}, verdicts: map[string]string{},
	},
	{
		name: "a Gateway that may demand the hostname keeps its application",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(gateway(alpha))
			g := with(gateway(beta), "team-b", www)
			g.DemandsUnknown = true
			s.set(g)
		}),
		wait: time.Hour, verdicts: map[string]string{"alpha www.example.com": ""},
	},
	{
		name: "a paused Gateway's application does not change with its demand",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(in(gateway(alpha, demand("team-a", www, "ci")), ownership.Frozen))
		}),
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "Pending: the controller changes no application while the Gateway is paused or its Tunnel is blocked."},
	},
	{
		name: "nothing is created for a Gateway that is not accepted",
		setup: func(s *scenario) {
			s.set(in(gateway(alpha, demand("team-a", www, "ci")), ownership.Rejected))
		},
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "Pending: the controller changes no application until the Gateway is accepted."},
	},
	{
		name: "another Gateway of the namespace uses the application of a paused Gateway",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(in(gateway(alpha, demand("team-a", www, "employees")), ownership.Frozen))
			s.set(gateway(beta, demand("team-a", www, "employees")))
		}),
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "Protected", "beta www.example.com": "Protected"},
	},
	{
		name: "demands that cannot be read keep the application",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			g := gateway(alpha)
			g.DemandsUnknown = true
			s.set(g)
		}),
		wait: time.Hour, verdicts: map[string]string{"alpha www.example.com": ""},
	},
	{
		name: "nothing is deleted, handed over or weakened before all Gateways are processed",
		setup: after(alphaDemands(demand("team-a", www, "employees"), demand("team-a", app, "employees"), demand("team-a", "gone.example.com", "employees")), func(s *scenario) {
			s.restart()
			s.facts.GatewaysKnown = false
			s.set(gateway(alpha, demand("team-a", www, "employees", "ci"), ofClass(demand("team-a", app, "employees")), demand("team-a", "new.example.com", "ci")))
		}),
		wait:   time.Hour,
		writes: []string{"create new.example.com alpha ci"},
		verdicts: map[string]string{
			"alpha www.example.com":  "Pending: the controller changes the application when it has processed all Gateways.",
			"alpha app.example.com":  "Pending: the controller changes the application when it has processed all Gateways.",
			"alpha gone.example.com": "", "alpha new.example.com": "Protected",
		},
	},
	{
		name: "an unknown Gateway whose rules are not known keeps every application",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.set(gateway(alpha))
			g := in(gateway(beta), ownership.Unknown)
			g.InEffectKnown = false
			s.set(g)
		}),
		wait: time.Hour, verdicts: map[string]string{"alpha www.example.com": ""},
	},
}

// behind begins the message about a hostname that gets no exception.
const behind = "the hostname stays behind the login of *.example.com, because "

var bypassCases = []goldenCase{
	{
		name: "a hostname that an entry exempts gets a bypass before the wildcard's application",
		setup: func(s *scenario) {
			s.set(with(gateway(alpha, ofClass(demand("team-a", star, "employees"))), "team-a", www, exempt))
		},
		writes:   []string{"create www.example.com alpha bypass", "create *.example.com alpha employees"},
		verdicts: map[string]string{"alpha *.example.com": "Protected"},
	},
	{
		name: "another owner's hostname below an AccessPolicy's wildcard gets a bypass",
		setup: func(s *scenario) {
			s.set(with(with(gateway(alpha, demand("team-a", star, "employees")), "team-b", www), "team-a", app))
		},
		writes:   []string{"create www.example.com alpha bypass", "create *.example.com alpha employees"},
		verdicts: map[string]string{"alpha *.example.com": "Protected"},
	},
	{
		name: "another Gateway's hostname below a Gateway's wildcard gets a bypass",
		setup: func(s *scenario) {
			s.set(gateway(alpha, ofGateway(alpha, demand("team-a", star, "employees"))))
			s.set(with(gateway(beta), "team-b", www))
		},
		writes:   []string{"create www.example.com beta bypass", "create *.example.com alpha employees"},
		verdicts: map[string]string{"alpha *.example.com": "Protected"},
	},
	{
		name: "deeper hostnames and the wildcard's own hostnames need none",
		setup: func(s *scenario) {
			s.set(with(with(gateway(alpha, demand("team-a", star, "employees")), "team-b", "a.b.example.com"), "team-b", "*.b.example.com"))
		},
		writes:   []string{"create *.example.com alpha employees"},
		verdicts: map[string]string{"alpha *.example.com": "Protected"},
	},
	{
		name: "a hostname that a demand on another Gateway reaches gets none",
		setup: func(s *scenario) {
			s.set(gateway(alpha, ofGateway(alpha, demand("team-a", star, "employees")), demand("team-b", www, "ci")))
			s.set(with(gateway(beta), "team-b", www))
		},
		writes:   []string{"create *.example.com alpha employees", "create www.example.com alpha ci"},
		verdicts: map[string]string{"alpha *.example.com": "Protected", "alpha www.example.com": "Protected"},
	},
	{
		name: "without permission, a hostname stays behind the login, and nothing waits",
		setup: func(s *scenario) {
			s.set(with(gateway(alpha, ofClass(demand("team-a", star, "employees"))), "team-b", www, exempt, unpermitted))
		},
		writes: []string{"create *.example.com alpha employees"},
		verdicts: map[string]string{
			"alpha *.example.com":   "Protected",
			"alpha www.example.com": "HostnameNotPermitted: " + behind + "the annotation tunnelgateway.dev/hostnames of namespace team-b does not permit the hostname, so it can have no application. Use a permitted hostname, or ask a cluster administrator to change the annotation.",
		},
	},
	{
		name: "a bypass ends with its permission, also later",
		setup: after(func(s *scenario) {
			s.set(with(gateway(alpha, ofClass(demand("team-a", star, "employees"))), "team-b", www, exempt))
		}, func(s *scenario) {
			s.set(with(gateway(alpha, ofClass(demand("team-a", star, "employees"))), "team-b", www, exempt, unpermitted))
		}),
		wait:   time.Minute,
		writes: []string{"delete www.example.com alpha"},
		verdicts: map[string]string{
			"alpha *.example.com":   "Protected",
			"alpha www.example.com": "HostnameNotPermitted: " + behind + "the annotation tunnelgateway.dev/hostnames of namespace team-b does not permit the hostname, so it can have no application. Use a permitted hostname, or ask a cluster administrator to change the annotation.",
		},
	},
	{
		name: "a wildcard by hand gets no exception",
		setup: func(s *scenario) {
			s.add(`{"type": "self_hosted", "name": "by hand", "domain": "*.example.com/admin"}`)
			s.set(with(gateway(alpha, named(demand("team-a", star, "employees"))), "team-b", www, exempt))
		},
		writes: []string{"create *.example.com alpha employees"},
		verdicts: map[string]string{
			"alpha *.example.com": "Protected", "alpha www.example.com": "ApplicationExists: " + behind + existsWider("*.example.com/admin"),
		},
	},
	{
		name: "an exception ends when a wildcard by hand covers it",
		setup: after(func(s *scenario) {
			s.set(with(gateway(alpha, ofClass(demand("team-a", star, "employees"))), "team-b", www, exempt))
		}, func(s *scenario) {
			s.add(`{"type": "self_hosted", "name": "by hand", "domain": "*.example.com/admin"}`)
		}),
		wait:   11 * time.Minute,
		writes: []string{"delete www.example.com alpha"},
		verdicts: map[string]string{
			"alpha *.example.com": "Protected", "alpha www.example.com": "ApplicationExists: " + behind + existsWider("*.example.com/admin"),
		},
	},
	{
		name: "the wildcard's application ends before the exceptions",
		setup: after(func(s *scenario) {
			s.set(with(gateway(alpha, ofClass(demand("team-a", star, "employees"))), "team-b", www, exempt))
		}, func(s *scenario) {
			s.set(with(gateway(alpha), "team-b", www))
		}),
		wait:     2 * time.Minute,
		writes:   []string{"delete *.example.com alpha", "delete www.example.com alpha"},
		verdicts: map[string]string{},
	},
	{
		name: "a demand replaces a bypass",
		setup: after(func(s *scenario) {
			s.set(with(gateway(alpha, ofClass(demand("team-a", star, "employees"))), "team-b", www, exempt))
		}, func(s *scenario) {
			s.set(gateway(alpha, ofClass(demand("team-a", star, "employees")), demand("team-b", www, "ci")))
		}),
		writes:   []string{"delete www.example.com alpha", "create www.example.com alpha ci"},
		verdicts: map[string]string{"alpha *.example.com": "Protected", "alpha www.example.com": "Protected"},
	},
	{
		name: "one exception serves the hostname on several Gateways",
		setup: func(s *scenario) {
			s.set(with(gateway(alpha, demand("team-a", star, "employees")), "team-c", www))
			s.set(with(gateway(beta), "team-b", www))
		},
		writes:   []string{"create www.example.com alpha bypass", "create *.example.com alpha employees"},
		verdicts: map[string]string{"alpha *.example.com": "Protected"},
	},
	{
		name: "a hostname that an entry with audTags protects gets none",
		setup: func(s *scenario) {
			s.set(gateway(alpha, ofGateway(alpha, demand("team-a", star, "employees"))))
			s.set(with(gateway(beta), "team-b", www, func(h *access.Hostname) { h.ByHand = true }))
		},
		writes:   []string{"create *.example.com alpha employees"},
		verdicts: map[string]string{"alpha *.example.com": "Protected"},
	},
	{
		name: "a wildcard that can get no application needs no exceptions",
		setup: func(s *scenario) {
			s.set(with(gateway(alpha, demand("team-a", star, "staff")), "team-b", www))
		},
		verdicts: map[string]string{"alpha *.example.com": "PolicyNotFound: policy staff is not in spec.access.policies of GatewayClass tunnel. Correct the name, or ask the platform team to add the policy."},
	},
	{
		name: "other hostnames of the AccessPolicy's owner stay behind its login",
		setup: func(s *scenario) {
			s.set(gateway(alpha, demand("team-a", star, "employees")))
			s.set(with(gateway(beta), "team-a", www))
		},
		writes:   []string{"create *.example.com alpha employees"},
		verdicts: map[string]string{"alpha *.example.com": "Protected"},
	},
	{
		name: "the exception for a paused Gateway's hostname is made too",
		setup: func(s *scenario) {
			s.set(gateway(alpha, ofGateway(alpha, demand("team-a", star, "employees"))))
			s.set(in(with(gateway(beta), "team-b", www), ownership.Frozen))
		},
		writes:   []string{"create www.example.com beta bypass", "create *.example.com alpha employees"},
		verdicts: map[string]string{"alpha *.example.com": "Protected"},
	},
	{
		name: "while AccessPolicies cannot be read, the wildcard's application waits",
		setup: func(s *scenario) {
			g := with(gateway(alpha, ofClass(demand("team-a", star, "employees"))), "team-b", www, exempt)
			g.DemandsUnknown = true
			s.set(g)
		},
		verdicts: map[string]string{
			"alpha *.example.com":   "Pending: the controller creates the application after the exception for www.example.com, which nothing protects.",
			"alpha www.example.com": "Pending: the controller creates the exception from the login of *.example.com when it can read all AccessPolicies.",
		},
	},
}

var settingsCases = []goldenCase{
	{
		name: "disabled applications are not read, and existing ones not changed",
		setup: after(alphaDemands(demand("team-a", www, "employees")), func(s *scenario) {
			s.settings(func(a *settings.Applications) { a.Mode = v1alpha1.ApplicationsDisabled })
			s.set(gateway(alpha, demand("team-a", www, "ci"), demand("team-a", app, "ci")))
			s.restart()
		}),
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "Disabled: " + disabled, "alpha app.example.com": "Disabled: " + disabled},
	},
	{
		name: "the younger GatewayClass with other settings creates nothing, and keeps what exists",
		setup: after(func(s *scenario) {
			s.facts.Classes = append(s.facts.Classes, class("younger", time.Hour))
			g := gateway(beta, demand("team-b", www, "employees"))
			g.Class = "younger"
			s.set(g)
		}, func(s *scenario) {
			s.facts.Classes[1].Settings.MaxApplications = 10
			g := gateway(beta, demand("team-b", www, "employees"), demand("team-b", app, "employees"))
			g.Class = "younger"
			s.set(g)
		}),
		wait: time.Hour,
		verdicts: map[string]string{
			"beta www.example.com": "Protected",
			"beta app.example.com": "SettingsConflict: GatewayClass tunnel is older and uses the Cloudflare account with another teamName, apiToken or maxApplications. Give both GatewayClasses the same settings in spec.access.",
		},
	},
	{
		name: "without a key, nothing is read and created",
		setup: func(s *scenario) {
			s.facts.Identity.Key = nil
			s.set(gateway(alpha, demand("team-a", www, "employees")))
		},
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "Pending: the controller has no key to sign tags with. Fix the Secret with the signing key."},
	},
	{
		name: "without a token, nothing is read and created",
		setup: func(s *scenario) {
			s.facts.TokenVersion, s.facts.TokenMessage = "", "Secret access-token does not exist. Create it."
			s.set(gateway(alpha, demand("team-a", www, "employees")))
		},
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "Forbidden: Secret access-token does not exist. Create it."},
	},
	{
		name: "with another key, the applications are external",
		setup: after(alphaProtects(www), func(s *scenario) {
			s.facts.Identity.Key = []byte("another key another key another!")
			s.restart()
		}),
		wait:     time.Hour,
		verdicts: map[string]string{"alpha www.example.com": "ApplicationExists: " + existsExactly},
	},
	{
		name: "a namespace can have 50 applications",
		setup: func(s *scenario) {
			var demands []access.Demand
			for i := range 51 {
				d := demand("team-a", fmt.Sprintf("h%02d.example.com", i), "employees")
				d.Created = epoch.Add(time.Duration(i) * time.Second)
				demands = append(demands, d)
			}
			s.set(gateway(alpha, demands...))
			s.run()
			s.set(gateway(alpha, demands[50], ofClass(demand("team-a", www, "ci")), demands[1]))
		},
		writes: []string{"create www.example.com alpha ci"},
		verdicts: func() map[string]string {
			verdicts := map[string]string{"alpha www.example.com": "Protected", "alpha h01.example.com": "Protected"}
			for i := range 50 {
				if i != 1 {
					verdicts[fmt.Sprintf("alpha h%02d.example.com", i)] = ""
				}
			}
			verdicts["alpha h50.example.com"] = "LimitExceeded: namespace team-a already has 50 applications, and cannot have more. Remove demands, or use a wildcard hostname."
			return verdicts
		}(),
	},
	{
		name: "the youngest demand of the largest namespace exceeds maxApplications",
		setup: func(s *scenario) {
			s.settings(func(a *settings.Applications) { a.MaxApplications = 3 })
			old, young := demand("team-a", www, "employees"), demand("team-a", app, "employees")
			young.Created = epoch.Add(time.Hour)
			s.set(gateway(alpha, old, young, ofClass(demand("team-a", "class.example.com", "employees"))))
			late := demand("team-b", "late.example.com", "ci")
			late.Created = epoch.Add(2 * time.Hour)
			s.set(gateway(beta, late))
		},
		writes: []string{"create class.example.com alpha employees", "create www.example.com alpha employees", "create late.example.com beta ci"},
		verdicts: map[string]string{
			"alpha class.example.com": "Protected", "alpha www.example.com": "Protected", "beta late.example.com": "Protected",
			"alpha app.example.com": "LimitExceeded: the applications of this installation are used up: spec.access.maxApplications is 3. Remove demands, use a wildcard hostname, or ask the platform team to raise the limit.",
		},
	},
	{
		name: "a twentieth of the account's applications remains for others",
		setup: func(s *scenario) {
			for i := range 474 {
				s.add(fmt.Sprintf(`{"type": "self_hosted", "name": "by hand", "domain": "h%03d.example.net"}`, i))
			}
			s.set(gateway(alpha, demand("team-a", www, "employees"), demand("team-b", app, "employees")))
		},
		writes: []string{"create www.example.com alpha employees"},
		verdicts: map[string]string{
			"alpha www.example.com": "Protected",
			"alpha app.example.com": "LimitExceeded: the Cloudflare account has used 95 % of its 500 applications of Cloudflare Access, counting those of others. Remove applications or demands.",
		},
	},
}

const disabled = "the GatewayClass does not manage applications of Cloudflare Access. Remove the demand, or ask the platform team to set spec.access.applications to Managed."
