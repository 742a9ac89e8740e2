package access

import (
	"fmt"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// statesCase is one Gateway that a leader decides about several times.
type statesCase struct {
	Demanded
	Known
	states map[string]State
}

const appHost = "app.example.com"

func newStatesCase() *statesCase {
	return &statesCase{
		Demanded: Demanded{
			Demands: map[string]Demand{},
			Settings: settings.Applications{
				Mode: v1alpha1.ApplicationsManaged, TeamName: "acme", OpeningDelay: 30 * time.Second,
				Catalogue: map[v1alpha1.PolicyName]string{"employees": "1", "ci": "2"},
			},
		},
		Known: Known{
			Uptime: time.Hour, Read: true, Verdicts: Verdicts{}, Tagged: map[string]*Application{}, InEffect: routing.Access{}, InEffectKnown: true,
			Allows: map[provider.AccessPolicyID]bool{"1": true, "2": true},
		},
	}
}

// demand demands protection for the hostname.
func (c *statesCase) demand(hostname string, change ...func(*Demand)) {
	d := Demand{Hostname: hostname, Level: LevelPolicy, Owner: "team-a", Permitted: true, Policies: []v1alpha1.PolicyName{"employees"}, SessionDuration: time.Hour}
	for _, f := range change {
		f(&d)
	}
	c.Demands[hostname] = d
	c.Hostnames = nil
}

// share demands that the application of *.example.com protects app.example.com.
func (c *statesCase) share() { c.Demands[appHost] = c.Demands["*.example.com"] }

// undemand removes the demand.
func (c *statesCase) undemand(hostname string) {
	delete(c.Demands, hostname)
	c.Hostnames = append(c.Hostnames, hostname)
}

// apply makes an application as the present demand wants it.
func (c *statesCase) apply(hostname string) {
	d := c.Demands[hostname]
	spec := specOf(&d, c.Settings)
	c.Verdicts[hostname] = Verdict{Reason: conditions.ReasonProtected, Application: &Application{
		Hostname: hostname, TeamName: "acme", AUDTag: "aud-" + hostname, Decider: d.DeciderKey(),
		Last: provider.Application{
			Domains: []string{hostname}, Policies: spec.Policies, SessionDuration: spec.SessionDuration, CORS: spec.CORS, BindingCookie: spec.BindingCookie,
		},
	}}
	c.Tagged["aud-"+hostname] = c.Verdicts[hostname].Application
}

// report reports another reason for app.example.com.
func (c *statesCase) report(reason conditions.Reason, change ...func(*Application)) {
	v := c.Verdicts[appHost]
	v.Reason, v.Message = reason, "why."
	if v.Application != nil && len(change) > 0 {
		a := *v.Application
		for _, f := range change {
			f(&a)
		}
		v.Application = &a
	}
	c.Verdicts[appHost] = v
}

// decide decides and publishes.
func (c *statesCase) decide(inEffect bool) {
	c.states = States(c.Demanded, c.Known)
	c.Exposure = c.Exposure.Next(c.Demanded, c.states, inEffect, c.Uptime)
	if inEffect {
		for _, hostname := range append(append([]string{}, c.Hostnames...), keysOf(c.Demands)...) {
			delete(c.InEffect, hostname)
		}
		for hostname, state := range c.states {
			c.InEffect[hostname] = state.Requirement()
		}
	}
}

func keysOf(demands map[string]Demand) (keys []string) {
	for key := range demands {
		keys = append(keys, key)
	}
	return keys
}

// served makes a hostname that this leader serves open.
func (c *statesCase) served(hostname string) {
	c.Hostnames = append(c.Hostnames, hostname)
	c.decide(true)
}

// protected makes a hostname that is protected in effect.
func (c *statesCase) protected(hostname string) {
	c.demand(hostname)
	c.apply(hostname)
	c.decide(true)
}

// restart makes this another leader, which has read the configuration but not the list.
func (c *statesCase) restart() {
	c.Exposure, c.Uptime, c.Read, c.Verdicts, c.Tagged, c.Allows = Exposure{}, time.Minute, false, Verdicts{}, nil, nil
}

func (c *statesCase) after(d time.Duration) { c.Uptime += d }

// want describes the state of a hostname as "status reason".
func describeState(s State, ok bool) string {
	if !ok {
		return "none"
	}
	text := string(s.Status)
	if s.Status == Protected {
		text += " by " + s.TeamName + "/" + fmt.Sprint(s.AUDTags)
	}
	return text + " " + s.Reason.String()
}

// Each sentence of the rules about hostnames has a case.
func TestStates(t *testing.T) {
	const byApp = "protected by acme/[aud-app.example.com] "
	stricter := func(d *Demand) { d.SessionDuration = time.Minute }
	for name, test := range map[string]struct {
		happens func(*statesCase)
		want    string
	}{
		"a new hostname is closed until its application exists": {func(c *statesCase) { c.demand(appHost) }, "closed Pending"},
		"a hostname with its application is protected":          {func(c *statesCase) { c.demand(appHost); c.apply(appHost) }, byApp + "Protected"},
		"a plan of files knows nothing":                         {func(c *statesCase) { c.demand(appHost); c.Known = Known{} }, "closed Pending"},

		// The five minutes.
		"a hostname that was open stays open while its application is outstanding": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
		}, "open Pending"},
		"an open hostname closes in time": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
			c.decide(true)
			c.after(MaxOpen)
		}, "closed Pending"},
		"an open hostname does not open again": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
			c.decide(true)
			c.after(MaxOpen)
			c.decide(false)
			c.after(time.Second)
		}, "closed Pending"},
		"the clock is not restarted by an application that comes and goes": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
			c.decide(true)
			c.after(MaxOpen - time.Second)
			c.apply(appHost)
			c.decide(false)
			c.Verdicts = Verdicts{}
			c.after(time.Second)
		}, "closed Pending"},
		"a hostname whose protection may be in effect does not open again": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
			c.decide(true)
			c.apply(appHost)
			c.decide(false)
			c.Verdicts = Verdicts{}
		}, "closed Pending"},
		"the clock is shared with an entry made by hand": {func(c *statesCase) {
			c.served(appHost)
			c.Hostnames, c.ByHand = nil, []string{appHost}
			c.decide(false)
			c.after(MaxOpen)
			c.ByHand = nil
			c.demand(appHost)
		}, "closed Pending"},
		"a hostname that was published and not written was not open": {func(c *statesCase) {
			c.Hostnames = []string{appHost}
			c.decide(false)
			c.demand(appHost)
		}, "closed Pending"},
		"a new leader closes it at once": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
			c.restart()
		}, "closed Pending"},
		"a hostname that comes back to the table is new": {func(c *statesCase) {
			c.served(appHost)
			c.Hostnames = nil
			c.decide(true)
			c.demand(appHost)
		}, "closed Pending"},
		"a hostname that was protected closes at once when its application has gone": {func(c *statesCase) {
			c.served(appHost)
			c.protected(appHost)
			c.Verdicts[appHost] = Verdict{Reason: conditions.ReasonPending}
		}, "closed Pending"},
		"another reason closes it at once": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
			c.report(conditions.ReasonApplicationExists)
		}, "closed ApplicationExists"},
		"a policy outside the catalogue closes it at once": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost, func(d *Demand) { d.Policies = []v1alpha1.PolicyName{"unknown"} })
		}, "closed PolicyNotFound"},
		"a missing permission closes it at once": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost, func(d *Demand) { d.Permitted = false })
		}, "closed HostnameNotPermitted"},
		"a token without permission closes it at once": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
			c.Read = false
			c.report(conditions.ReasonForbidden)
		}, "closed Forbidden"},
		"an unread list is an outstanding one": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
			c.Read = false
		}, "open Pending"},

		// What is not known closes nothing that works.
		"a rule stays after a restart": {func(c *statesCase) {
			c.protected(appHost)
			c.restart()
		}, byApp + "Pending"},
		"a rule stays when the token is revoked": {func(c *statesCase) {
			c.protected(appHost)
			c.restart()
			c.report(conditions.ReasonForbidden)
		}, byApp + "Forbidden"},
		"a rule stays while the report is missing": {func(c *statesCase) {
			c.protected(appHost)
			c.restart()
			c.Read = true
		}, byApp + "Pending"},
		"a new hostname does not get the rule of another one's wildcard": {func(c *statesCase) {
			c.protected("*.example.com")
			c.demand(appHost)
			c.report(conditions.ReasonForbidden)
		}, "closed Forbidden"},
		"a rule of unknown rules does not stay": {func(c *statesCase) {
			c.protected(appHost)
			c.restart()
			c.InEffectKnown = false
		}, "closed Pending"},
		"an application that lost its tag protects": {func(c *statesCase) {
			c.protected(appHost)
			c.report(conditions.ReasonApplicationExists, func(a *Application) { a.Decider = "" })
		}, byApp + "ApplicationExists"},
		"another application closes": {func(c *statesCase) {
			c.protected(appHost)
			c.report(conditions.ReasonApplicationExists, func(a *Application) { a.AUDTag = "another" })
		}, "closed ApplicationExists"},

		// Stricter demands and other deciders.
		"a stricter demand closes at once": {func(c *statesCase) {
			c.protected(appHost)
			c.demand(appHost, stricter)
		}, "closed Pending"},
		"a stricter demand closes in a pause": {func(c *statesCase) {
			c.protected(appHost)
			c.Frozen = true
			c.demand(appHost, stricter)
		}, "closed Pending"},
		"a stricter demand closes in an outage": {func(c *statesCase) {
			c.protected(appHost)
			c.demand(appHost, stricter)
			c.Read = false
		}, "closed Pending"},
		"a stricter demand closes after a lost key": {func(c *statesCase) {
			c.protected(appHost)
			c.report(conditions.ReasonApplicationExists, func(a *Application) { a.Decider = "" })
			c.demand(appHost, stricter)
		}, "closed ApplicationExists"},
		"a stricter demand closes with applications disabled": {func(c *statesCase) {
			c.protected(appHost)
			c.Settings.Mode = v1alpha1.ApplicationsDisabled
			c.demand(appHost, stricter)
		}, "closed Disabled"},
		"with none read, rules stay": {func(c *statesCase) {
			c.protected(appHost)
			c.restart()
			c.demand(appHost, stricter)
		}, byApp + "Pending"},
		"a longer session closes nothing": {func(c *statesCase) {
			c.protected(appHost)
			c.demand(appHost, func(d *Demand) { d.SessionDuration = 2 * time.Hour })
		}, byApp + "Protected"},
		"another ID in the catalogue is another policy": {func(c *statesCase) {
			c.protected(appHost)
			c.Settings.Catalogue = map[v1alpha1.PolicyName]string{"employees": "3"}
		}, "closed Pending"},
		"another owner closes at once": {func(c *statesCase) {
			c.protected(appHost)
			c.demand(appHost, func(d *Demand) { d.Owner = "team-b" })
		}, "closed Pending"},
		"another level closes at once": {func(c *statesCase) {
			c.protected(appHost)
			c.demand(appHost, func(d *Demand) { d.Level = LevelClass })
		}, "closed Pending"},
		"another owner closes after a lost key": {func(c *statesCase) {
			c.protected(appHost)
			c.report(conditions.ReasonApplicationExists, func(a *Application) { a.Decider = "" })
			c.decide(true)
			c.demand(appHost, func(d *Demand) { d.Owner = "team-b" })
		}, "closed ApplicationExists"},
		"tokens that are to be revoked close": {func(c *statesCase) {
			c.protected(appHost)
			c.report(conditions.ReasonPending, func(a *Application) { a.Revoking = true })
		}, "closed Pending"},
		"an outstanding change that is not stricter closes nothing": {func(c *statesCase) {
			c.protected(appHost)
			c.report(conditions.ReasonPending)
		}, byApp + "Pending"},
		"another owner closes after the demand was gone": {func(c *statesCase) {
			c.protected(appHost)
			c.undemand(appHost)
			c.decide(true)
			c.Verdicts = Verdicts{}
			c.demand(appHost, func(d *Demand) { d.Owner = "team-b" })
		}, "closed Pending"},

		// The other reasons.
		"an invalid demand closes": {func(c *statesCase) {
			c.protected(appHost)
			c.demand(appHost, func(d *Demand) {
				d.Invalid = &settings.Problem{Reason: conditions.ReasonTargetNotFound, Message: "why."}
			})
		}, "closed TargetNotFound"},
		"Overridden closes":                         {func(c *statesCase) { c.protected(appHost); c.report(conditions.ReasonOverridden) }, "closed Overridden"},
		"Contested closes":                          {func(c *statesCase) { c.protected(appHost); c.report(conditions.ReasonContested) }, "closed Contested"},
		"LimitExceeded closes":                      {func(c *statesCase) { c.demand(appHost); c.report(conditions.ReasonLimitExceeded) }, "closed LimitExceeded"},
		"SettingsConflict closes a new demand":      {func(c *statesCase) { c.demand(appHost); c.report(conditions.ReasonSettingsConflict) }, "closed SettingsConflict"},
		"SettingsConflict keeps an existing demand": {func(c *statesCase) { c.protected(appHost); c.report(conditions.ReasonSettingsConflict) }, byApp + "SettingsConflict"},
		"PolicyInvalid closes":                      {func(c *statesCase) { c.protected(appHost); c.report(conditions.ReasonPolicyInvalid) }, "closed PolicyInvalid"},

		// Disabled.
		"Disabled keeps a rule that demands a token": {func(c *statesCase) {
			c.protected(appHost)
			c.Settings.Mode = v1alpha1.ApplicationsDisabled
		}, byApp + "Disabled"},
		"Disabled closes every other hostname": {func(c *statesCase) {
			c.served(appHost)
			c.demand(appHost)
			c.Settings.Mode = v1alpha1.ApplicationsDisabled
		}, "closed Disabled"},

		// The end.
		"a hostname stays protected when its demand has gone": {func(c *statesCase) {
			c.protected(appHost)
			c.undemand(appHost)
		}, byApp + "Protected"},
		"a hostname opens openingDelay after its demand has gone": {func(c *statesCase) {
			c.protected(appHost)
			c.undemand(appHost)
			c.decide(true)
			c.after(30 * time.Second)
		}, "none"},
		"a hostname whose end is not written yet is open": {func(c *statesCase) {
			c.protected(appHost)
			c.undemand(appHost)
			c.decide(true)
			c.after(30 * time.Second)
			c.decide(false)
			c.after(time.Second)
		}, "none"},
		"a hostname whose demand comes back was protected all the time": {func(c *statesCase) {
			c.protected(appHost)
			c.undemand(appHost)
			c.decide(true)
			c.after(20 * time.Second)
			c.demand(appHost)
		}, byApp + "Protected"},
		"a new leader counts the delay again": {func(c *statesCase) {
			c.protected(appHost)
			c.undemand(appHost)
			c.decide(true)
			c.restart()
			c.decide(true)
			c.after(29 * time.Second)
		}, byApp + "Protected"},
		"a rule that an unread application may need stays": {func(c *statesCase) {
			c.protected(appHost)
			c.restart()
			c.undemand(appHost)
			c.Frozen = true
			c.decide(true)
			c.after(time.Hour)
		}, byApp + "Protected"},
		"a closed hostname of a new leader stays behind its application": {func(c *statesCase) {
			c.protected(appHost)
			verdict := Verdict{Application: c.Verdicts[appHost].Application}
			c.restart()
			c.InEffect = routing.Access{} // Envoy's closed hostnames have no rules
			c.undemand(appHost)
			c.Read, c.Verdicts[appHost] = true, verdict
		}, byApp + "Protected"},
		"an entry made by hand ends at once": {func(c *statesCase) {
			c.ByHand, c.InEffect[appHost] = []string{appHost}, &routing.Requirement{TeamName: "acme", AUDTags: []string{"by-hand"}}
			c.decide(true)
			c.ByHand = nil
			c.undemand(appHost)
		}, "none"},
		"an entry made by hand ends at once for a new leader": {func(c *statesCase) {
			c.InEffect[appHost] = &routing.Requirement{TeamName: "acme", AUDTags: []string{"by-hand"}}
			c.undemand(appHost)
		}, "none"},
		"without managed applications, rules end at once": {func(c *statesCase) {
			c.Settings.Mode, c.Settings.TeamName = v1alpha1.ApplicationsDisabled, ""
			c.restart()
			c.InEffect[appHost] = &routing.Requirement{TeamName: "acme", AUDTags: []string{"by-hand"}}
			c.undemand(appHost)
		}, "none"},
		"a hostname that leaves the table and comes back is still protected": {func(c *statesCase) {
			c.protected(appHost)
			delete(c.Demands, appHost)
			c.decide(true)
			c.after(20 * time.Second)
			c.Hostnames = []string{appHost}
		}, byApp + "Protected"},
		"a hostname that comes back later is new": {func(c *statesCase) {
			c.protected(appHost)
			delete(c.Demands, appHost)
			delete(c.InEffect, appHost)
			c.Verdicts = Verdicts{}
			c.decide(true)
			c.after(30 * time.Second)
			c.decide(true)
			c.Hostnames = []string{appHost}
		}, "none"},
		"with applications disabled, a rule of the settings' team ends after the delay": {func(c *statesCase) {
			c.protected(appHost)
			c.Settings.Mode = v1alpha1.ApplicationsDisabled
			c.restart()
			c.undemand(appHost)
		}, byApp + "Protected"},
		"nothing ends while demands are unknown": {func(c *statesCase) {
			c.protected(appHost)
			c.undemand(appHost)
			c.Unknown = true
			c.decide(true)
			c.after(time.Hour)
		}, byApp + "Protected"},
		"the delay begins when demands are known": {func(c *statesCase) {
			c.protected(appHost)
			c.undemand(appHost)
			c.Unknown = true
			c.decide(true)
			c.after(time.Hour)
			c.Unknown = false
			c.decide(true)
			c.after(29 * time.Second)
		}, byApp + "Protected"},
		"nothing ends in a pause": {func(c *statesCase) {
			c.protected(appHost)
			c.undemand(appHost)
			c.Frozen = true
			c.decide(true)
			c.after(time.Hour)
		}, byApp + "Protected"},
		"a closed hostname ends, too": {func(c *statesCase) {
			c.demand(appHost)
			c.decide(true)
			c.undemand(appHost)
			c.decide(true)
			c.after(29 * time.Second)
		}, "closed Pending"},

		// Other hostnames.
		"a hostname without a demand below a demand is open": {func(c *statesCase) {
			c.demand("*.example.com")
			c.Hostnames = []string{appHost}
		}, "open "},
		"a hostname whose bypass is outstanding says so": {func(c *statesCase) {
			c.Hostnames = []string{appHost}
			c.report(conditions.ReasonPending)
		}, "open Pending"},
		"a hostname that shares an application is protected by it": {func(c *statesCase) {
			c.demand("*.example.com")
			c.share()
			c.apply("*.example.com")
		}, "protected by acme/[aud-*.example.com] Protected"},
		"a new hostname that shares an outstanding application is closed": {func(c *statesCase) {
			c.served("*.example.com")
			c.demand("*.example.com")
			c.share()
		}, "closed Pending"},
		"an open hostname that shares an outstanding application stays open": {func(c *statesCase) {
			c.served("*.example.com")
			c.served(appHost)
			c.demand("*.example.com")
			c.share()
		}, "open Pending"},
		"a hostname that shared an application stays protected": {func(c *statesCase) {
			c.demand("*.example.com")
			c.share()
			c.apply("*.example.com")
			c.decide(true)
			c.undemand(appHost)
			c.undemand("*.example.com")
		}, "protected by acme/[aud-*.example.com] Protected"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newStatesCase()
			test.happens(c)
			c.decide(false)
			state, ok := c.states[appHost]
			if got := describeState(state, ok); got != test.want {
				t.Errorf("got  %s\nwant %s\nmessage: %s", got, test.want, state.Message)
			}
		})
	}
}
