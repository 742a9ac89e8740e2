package providertest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func createsApplication(t *testing.T, f AccessFixture) {
	f.wantListed(t)
	for hostname, session := range map[string]time.Duration{
		"a.example.com": 8 * time.Hour, "b.example.com": 30 * time.Minute, "c.example.com": 90 * time.Minute, "d.example.com": 730 * time.Hour,
	} {
		spec := f.spec(t, hostname)
		spec.SessionDuration = session
		created := f.create(t, spec)
		wantApplication(t, created, spec)
		stored, ok := f.Database.Covering(f.Account, hostname, "/path")
		if !ok || stored.AUD != created.AUDTag || stored.SessionDuration != session || len(stored.Policies) != 2 || stored.Policies[1].Decision != "non_identity" {
			t.Errorf("the edge has %+v", stored)
		}
	}
	if got := f.list(t); len(got) != 4 {
		t.Errorf("%d applications are listed", len(got))
	}
}

func createsWildcard(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "*.example.com")
	spec.BindingCookie = true
	created := f.create(t, spec)
	wantApplication(t, created, spec)
	f.wantListed(t, created)
	if stored, ok := f.Database.Covering(f.Account, "any.example.com", "/"); !ok || !stored.BindingCookie {
		t.Errorf("the edge has %+v", stored)
	}
	spec.BindingCookie = false
	wantApplication(t, f.update(t, created, spec), spec)
	if string(created.UnknownFields["app_launcher_visible"]) != "false" {
		t.Error("the app launcher shows a wildcard")
	}
}

func createsBypass(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	spec.Policies, spec.Bypass = nil, true
	created := f.create(t, spec)
	wantApplication(t, created, spec)
	f.wantListed(t, created)
	stored, ok := f.Database.Covering(f.Account, "www.example.com", "/")
	if !ok || len(stored.Policies) != 1 || !stored.Policies[0].BypassesEveryone() {
		t.Errorf("the edge has %+v", stored)
	}
	if string(created.UnknownFields["app_launcher_visible"]) != "false" {
		t.Error("the app launcher shows a bypass")
	}
	protected := f.spec(t, "www.example.com")
	wantApplication(t, f.update(t, created, protected), protected)
	f.Database.Edit(f.Account, string(created.ID), func(fields map[string]any) {
		fields["policies"] = []any{map[string]any{"name": "x", "decision": "bypass", "include": []any{map[string]any{"ip": map[string]any{"ip": "192.0.2.1"}}}}}
	})
	if edited := f.list(t)[0]; edited.Bypass || edited.OtherPolicies != 1 {
		t.Errorf("a bypass for one address is listed as %+v", edited)
	}
}

func roundTripsCORS(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	application := f.create(t, spec)
	for name, cors := range map[string]*provider.CORS{
		"all fields": {
			AllowedOrigins: []string{"https://a.example.com", "http://b.example.com:8080"}, AllowedMethods: []string{"GET", "PUT"},
			AllowedHeaders: []string{"authorization", "x-a"}, AllowCredentials: true, MaxAge: new(600),
		},
		"everything is allowed":  {AllowAllOrigins: true, AllowAllHeaders: true, AllowedMethods: []string{"GET"}},
		"not to be kept":         {AllowedOrigins: []string{"https://a.example.com"}, MaxAge: new(0)},
		"only an origin":         {AllowedOrigins: []string{"https://a.example.com"}},
		"preflights are refused": nil,
	} {
		t.Run(name, func(t *testing.T) {
			spec.CORS = cors
			application = f.update(t, application, spec)
			wantApplication(t, application, spec)
			f.wantListed(t, application)
		})
	}
	f.Database.Edit(f.Account, string(application.ID), func(fields map[string]any) {
		delete(fields, "cors_headers")
		fields["options_preflight_bypass"] = true
	})
	spec.CORS = &provider.CORS{AllowAllOrigins: true}
	wantApplication(t, f.update(t, f.list(t)[0], spec), spec)
}

func updatesApplication(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	created := f.create(t, spec)
	if err := f.Access.EnsureTag(f.ctx, "tgrevoke"); err != nil {
		t.Fatal(err)
	}
	spec.Hostname, spec.Name, spec.Policies = "other.example.com", "Other", []provider.AccessPolicyID{"ci"}
	spec.SessionDuration, spec.Tags = 15*time.Minute, []string{tag, "tgrevoke"}
	updated := f.update(t, created, spec)
	wantApplication(t, updated, spec)
	if updated.ID != created.ID || updated.AUDTag != created.AUDTag {
		t.Errorf("an update has replaced %+v by %+v", created, updated)
	}
	f.wantListed(t, updated)
	spec.Tags = nil
	wantApplication(t, f.update(t, updated, spec), spec)
}

func keepsUnknownFields(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	created := f.create(t, spec)
	edited := f.Database.Edit(f.Account, string(created.ID), func(fields map[string]any) {
		fields["logo_url"], fields["allowed_idps"], fields["custom_deny_url"] = "https://example.com/logo.png", []string{"idp"}, nil
		fields["app_launcher_visible"] = false
	})
	spec.Name = "Changed"
	updated := f.update(t, created, spec)
	wantApplication(t, updated, spec)
	stored, err := f.Database.Application(f.Account, edited.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(edited.OtherFields(), stored.OtherFields()); diff != "" {
		t.Errorf("other fields differ (-before +after):\n%s", diff)
	}
	for name, want := range map[string]string{"logo_url": `"https://example.com/logo.png"`, "allowed_idps": `["idp"]`, "app_launcher_visible": "false"} {
		if got := string(updated.UnknownFields[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if _, ok := updated.UnknownFields["id"]; ok {
		t.Error("the ID is an unknown field")
	}
}

func removesDomains(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	byHand := f.external(t, `{"type":"self_hosted","name":"By hand","domain":"www.example.com",
		"destinations":[{"type":"public","uri":"www.example.com"},{"type":"public","uri":"more.example.com/path"}],
		"policies":[{"name":"inline","decision":"allow","include":[{"everyone":{}}]}]}`)
	listed := f.list(t)[0]
	if listed.OtherPolicies != 1 || len(listed.Policies) != 0 || listed.Bypass || !slices.Equal(listed.Domains, []string{"www.example.com", "more.example.com/path"}) {
		t.Errorf("listed %+v", listed)
	}
	updated := f.update(t, listed, spec)
	wantApplication(t, updated, spec)
	if string(updated.ID) != byHand.ID || updated.AUDTag != byHand.AUD {
		t.Errorf("an update has replaced %+v by %+v", byHand, updated)
	}
}

func refusesChanged(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	for name, change := range map[string]func(fields map[string]any){
		"with a longer session": func(fields map[string]any) { fields["session_duration"] = "720h" },
		"with another policy":   func(fields map[string]any) { fields["policies"] = []string{"ci"} },
		"without the tag":       func(fields map[string]any) { fields["tags"] = []string{} },
		"with another hostname": func(fields map[string]any) { fields["domain"] = "other.example.com"; delete(fields, "destinations") },
		"with one hostname more": func(fields map[string]any) {
			fields["destinations"] = []map[string]string{{"uri": "www.example.com"}, {"uri": "other.example.com"}}
		},
	} {
		created := f.create(t, spec)
		f.Database.Edit(f.Account, string(created.ID), change)
		f.unchanged(t, func() {
			got, err := f.Access.Update(f.ctx, created, spec)
			wantAccessError(t, "Update "+name, err, provider.ErrApplicationChanged)
			if got.ID != "" {
				t.Errorf("Update %s returned %+v", name, got)
			}
			wantAccessError(t, "Delete "+name, f.Access.Delete(f.ctx, created), provider.ErrApplicationChanged)
		})
		if err := f.Access.Delete(f.ctx, f.list(t)[0]); err != nil {
			t.Fatal(err)
		}
	}
}
