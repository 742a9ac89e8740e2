package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
)

const acct = "account"

// create creates an application with the domain and other fields.
func create(t *testing.T, d *Database, domain, others string) Application {
	t.Helper()
	app, err := d.Create(acct, body(domain, others))
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func body(domain, others string) json.RawMessage {
	return fmt.Appendf(nil, `{"type":"self_hosted","name":"x","domain":%q%s}`, domain, others)
}

// TestTheMoreSpecificApplicationWins checks which application protects a URL.
func TestTheMoreSpecificApplicationWins(t *testing.T) {
	d := New(Options{})
	for _, domain := range []string{
		"*.example.com", "a.example.com", "a.example.com/admin", "*test.example.com", "*.b.example.com",
		"c.example.com/alpha/*", "d.example.com/foo*/bar", "UPPER.example.com/*",
	} {
		create(t, d, domain, "")
	}
	for url, want := range map[string]string{
		"example.com/":                       "",
		"x.example.com/admin":                "*.example.com",
		"x.y.example.com/":                   "",
		"a.example.com/":                     "a.example.com",
		"A.Example.com./":                    "a.example.com",
		"a.example.com/administrator":        "a.example.com",
		"a.example.com/admin/users":          "a.example.com/admin",
		"test.example.com/":                  "*test.example.com",
		"alphatest.example.com/":             "*test.example.com",
		"x.b.example.com/":                   "*.b.example.com",
		"b.example.com/":                     "*.example.com",
		"c.example.com/alpha":                "*.example.com",
		"c.example.com/alpha/one/two":        "c.example.com/alpha/*",
		"d.example.com/food/stuff/bar":       "d.example.com/foo*/bar",
		"d.example.com/food/stuff/barn":      "*.example.com",
		"d.example.com/food/bar/barn/bar/no": "d.example.com/foo*/bar",
		"upper.example.com/anything":         "upper.example.com",
	} {
		host, path := url, ""
		for i, c := range url {
			if c == '/' {
				host, path = url[:i], url[i:]
				break
			}
		}
		got := ""
		if app, ok := d.Covering(acct, host, path); ok {
			got = app.Domains[0]
		}
		if got != want {
			t.Errorf("%s is covered by %q, want %q", url, got, want)
		}
		if _, ok := d.Covering("another", host, path); ok {
			t.Errorf("an application covers %s in another account", url)
		}
	}
}

// TestApplicationsAreRefusedLikeCloudflareDoes checks the errors of requests.
func TestApplicationsAreRefusedLikeCloudflareDoes(t *testing.T) {
	d := New(Options{MaxApplications: 3, HasZone: func(_, host string) bool { return host != "www.elsewhere.org" }})
	first := create(t, d, "www.example.com", `,"self_hosted_domains":["www.example.com","second.example.com/path"]`)
	create(t, d, "*.example.com", "")
	create(t, d, "other.example.com", "")
	refuse := func(what string, want int, err error) {
		t.Helper()
		var e *Error
		if !errors.As(err, &e) || e.Code != want {
			t.Errorf("%s: error %v, want the code %d", what, err, want)
		}
	}
	_, err := d.Create(acct, body("fourth.example.com", ""))
	refuse("one application too many", CodeInvalidRequest, err)
	replace := func(json string) error {
		_, err := d.Replace(acct, first.ID, []byte(json))
		return err
	}
	refuse("the hostname of another application", CodeApplicationExists, replace(string(body("OTHER.example.com", ""))))
	refuse("no zone", CodeInvalidRequest, replace(string(body("www.elsewhere.org", ""))))
	refuse("an unknown tag", CodeInvalidRequest, replace(string(body("www.example.com", `,"tags":["nosuch"]`))))
	refuse("an unknown policy", CodePolicyNotFound, replace(string(body("www.example.com", `,"policies":["nosuch"]`))))
	refuse("no type", CodeInvalidRequest, replace(`{"name":"x","domain":"www.example.com"}`))
	refuse("an invalid duration", CodeInvalidRequest, replace(string(body("www.example.com", `,"session_duration":"8 hours"`))))
	refuse("a hostname with two wildcards in a label", CodeInvalidRequest, replace(string(body("*a*.example.com", ""))))
	refuse("equal precedences", CodeInvalidRequest, replace(string(body("www.example.com",
		`,"policies":[{"decision":"bypass","include":[{"everyone":{}}],"precedence":2},{"decision":"allow","include":[{"everyone":{}}]}]`))))
	refuse("a reusable policy beside another one", CodeInvalidRequest, replace(string(body("www.example.com",
		fmt.Sprintf(`,"policies":[{"decision":"bypass","include":[{"everyone":{}}]},%q]`, d.AddPolicy(acct, Policy{Decision: "allow"}).ID)))))
	refuse("two ways to answer preflights", CodeInvalidRequest, replace(string(body("www.example.com",
		`,"options_preflight_bypass":true,"cors_headers":{"allow_all_origins":true}`))))
	_, err = d.Application(acct, "nosuch")
	refuse("an unknown application", CodeUnknownApplication, err)
	refuse("a tag with a dash", CodeInvalidRequest, d.CreateTag(acct, "a-b"))
	if got, err := d.Application(acct, first.ID); err != nil || !slices.Equal(got.Domains, []string{"www.example.com", "second.example.com/path"}) {
		t.Errorf("refused requests changed the application to %v, %v", got.Domains, err)
	}
}

// createWithPolicy creates an application for www.example.com with the tag label and a
// policy, which it also returns.
func createWithPolicy(t *testing.T, d *Database) (Application, Policy) {
	t.Helper()
	allow := d.AddPolicy(acct, Policy{Name: "employees", Decision: "allow"})
	if err := d.CreateTag(acct, "label"); err != nil {
		t.Fatal(err)
	}
	return create(t, d, "www.example.com", fmt.Sprintf(
		`,"tags":["label"],"session_duration":"8h","logo_url":"https://l","policies":[%q]`, allow.ID)), allow
}

// TestPoliciesAndRevocations checks what the edge sees of an application.
func TestPoliciesAndRevocations(t *testing.T) {
	var revoked []string
	d := New(Options{OnRevoke: func(a Application) { revoked = append(revoked, a.ID) }})
	app, allow := createWithPolicy(t, d)
	if len(app.Policies) != 1 || app.Policies[0].ID != allow.ID || !app.Policies[0].Reusable {
		t.Errorf("policies are %+v", app.Policies)
	}
	d.SetDecision(acct, allow.ID, "deny")
	if err := d.Revoke(acct, app.ID); err != nil {
		t.Fatal(err)
	}
	app = d.Edit(acct, app.ID, func(fields map[string]any) { fields["enable_binding_cookie"] = true })
	if !app.BindingCookie || app.Revocations != 1 || app.RevokedAt.IsZero() || app.Policies[0].Decision != "deny" || app.SessionDuration.Hours() != 8 {
		t.Errorf("the application is %+v", app)
	}
	if !slices.Equal(revoked, []string{app.ID}) {
		t.Errorf("revoked %v", revoked)
	}
}

// TestDeletions checks what remains of an application after its tag, its policy and then
// itself were deleted.
func TestDeletions(t *testing.T) {
	d := New(Options{})
	app, allow := createWithPolicy(t, d)
	d.DeleteTag(acct, "label")
	d.DeletePolicy(acct, allow.ID)
	app, err := d.Application(acct, app.ID)
	if err != nil || len(app.Tags) != 0 || len(app.Policies) != 0 {
		t.Errorf("after the tag and the policy were deleted, the application is %+v, %v", app, err)
	}
	encoded, err := json.Marshal(app)
	var fields map[string]any
	if err = errors.Join(err, json.Unmarshal(encoded, &fields)); err != nil || fields["logo_url"] != "https://l" || fields["aud"] != app.AUD {
		t.Errorf("the API returns %s, %v", encoded, err)
	}
	if err := d.Delete(acct, app.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Covering(acct, "www.example.com", "/"); ok {
		t.Error("a deleted application protects a URL")
	}
}
