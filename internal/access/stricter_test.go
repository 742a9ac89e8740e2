package access

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// A change is stricter unless it only adds a policy that allows, or makes the session longer.
func TestStricterChanges(t *testing.T) {
	catalogue := settings.Applications{Catalogue: map[v1alpha1.PolicyName]string{"employees": "1", "ci": "2", "no-robots": "3", "new": "4"}}
	allows := map[provider.AccessPolicyID]bool{"1": true, "2": true}
	application := func(change func(*provider.Application)) provider.Application {
		a := provider.Application{Domains: []string{"a.example.com"}, Policies: []provider.AccessPolicyID{"1"}, SessionDuration: time.Hour}
		change(&a)
		return a
	}
	cors := func(origins ...string) *v1alpha1.AccessCORS { return &v1alpha1.AccessCORS{AllowOrigins: origins} }
	nothing := func(*provider.Application) {}
	demanded := func(change func(*Demand)) Demand {
		d := Demand{Hostname: "a.example.com", Policies: []v1alpha1.PolicyName{"employees"}, SessionDuration: time.Hour}
		change(&d)
		return d
	}
	policies := func(names ...v1alpha1.PolicyName) func(*Demand) { return func(d *Demand) { d.Policies = names } }
	for name, c := range map[string]struct {
		last   func(*provider.Application)
		demand func(*Demand)
		want   bool
	}{
		"nothing":                        {nothing, func(*Demand) {}, false},
		"another policy that allows":     {nothing, policies("employees", "ci"), false},
		"before the others":              {nothing, policies("ci", "employees"), false},
		"a policy that denies":           {nothing, policies("employees", "no-robots"), true},
		"a policy that was never read":   {nothing, policies("employees", "new"), true},
		"one policy less":                {func(a *provider.Application) { a.Policies = []provider.AccessPolicyID{"1", "2"} }, policies("employees"), true},
		"another policy instead":         {nothing, policies("ci"), true},
		"another order of allows":        {func(a *provider.Application) { a.Policies = []provider.AccessPolicyID{"2", "1"} }, policies("employees", "ci"), false},
		"another order with a denial":    {func(a *provider.Application) { a.Policies = []provider.AccessPolicyID{"1", "3"} }, policies("no-robots", "employees"), true},
		"a policy outside the catalogue": {nothing, policies("unknown"), true},
		"a longer session":               {nothing, func(d *Demand) { d.SessionDuration = 2 * time.Hour }, false},
		"a shorter session":              {nothing, func(d *Demand) { d.SessionDuration = time.Minute }, true},
		"CORS":                           {nothing, func(d *Demand) { d.CORS = cors("https://b.example.com") }, true},
		"the same CORS in another order": {
			func(a *provider.Application) {
				a.CORS = newCORS(cors("https://b.example.com", "https://c.example.com"))
			},
			func(d *Demand) { d.CORS = cors("https://c.example.com", "https://b.example.com") }, false,
		},
		"CORS for every origin":     {func(a *provider.Application) { a.CORS = newCORS(cors("https://b.example.com")) }, func(d *Demand) { d.CORS = cors("*") }, true},
		"an external inline policy": {func(a *provider.Application) { a.OtherPolicies = 1 }, func(*Demand) {}, true},
		"an external bypass":        {func(a *provider.Application) { a.Bypass = true }, func(*Demand) {}, true},
		"another hostname":          {func(a *provider.Application) { a.Domains = []string{"b.example.com"} }, func(*Demand) {}, true},
		"a further hostname":        {func(a *provider.Application) { a.Domains = append(a.Domains, "b.example.com") }, func(*Demand) {}, true},
		"a cookie too many":         {func(a *provider.Application) { a.BindingCookie = true }, func(*Demand) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			last, d := application(c.last), demanded(c.demand)
			want := specOf(&d, catalogue)
			if got := stricter(&last, &want, allows); got != c.want {
				t.Errorf("the change counts as stricter: %t", got)
			}
		})
	}
}

// An application for a wildcard has the cookie that keeps its tokens on the browser.
func TestWildcardsHaveABindingCookie(t *testing.T) {
	for hostname, want := range map[string]bool{"*.example.com": true, "a.example.com": false} {
		if got := specOf(&Demand{Hostname: hostname}, settings.Applications{}).BindingCookie; got != want {
			t.Errorf("the application for %s has the cookie: %t", hostname, got)
		}
	}
}
