package providertest

import (
	"slices"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func listsApplications(t *testing.T, f AccessFixture) {
	managed := f.create(t, f.spec(t, "www.example.com"))
	other, err := f.Other.Create(f.ctx, f.spec(t, "other.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	f.external(t, `{"type":"self_hosted","name":"By hand","domain":"hand.example.com"}`)
	got := f.list(t)
	if len(got) != 3 {
		t.Fatalf("listed %+v", got)
	}
	byHand := got[slices.IndexFunc(got, func(a provider.Application) bool { return a.Name == "By hand" })]
	f.wantListed(t, managed, other, byHand)
	if byHand.ID == "" || byHand.AUDTag == "" || byHand.SessionDuration.Hours() != 24 || len(byHand.Tags)+len(byHand.Policies)+byHand.OtherPolicies != 0 ||
		byHand.CORS != nil || byHand.BindingCookie || byHand.Bypass {
		t.Errorf("an application made by hand is %+v", byHand)
	}
}

func listsDomains(t *testing.T, f AccessFixture) {
	for body, want := range map[string][]string{
		`{"type":"self_hosted","name":"x","domain":"a.example.com"}`:                                                                           {"a.example.com"},
		`{"type":"self_hosted","name":"x","domain":"B.Example.com/","self_hosted_domains":["b.example.com/*","b2.example.com/Path/*"]}`:        {"b.example.com", "b2.example.com/Path/*"},
		`{"type":"ssh","name":"x","domain":"*test.example.com"}`:                                                                               {"*test.example.com"},
		`{"type":"vnc","name":"x","domain":"vnc.example.com"}`:                                                                                 {"vnc.example.com"},
		`{"type":"self_hosted","name":"x","domain":"c.example.com","destinations":[{"type":"private","cidr":"10.0.0.0/8"},{"uri":"*.b.com"}]}`: {"c.example.com", "*.b.com"},
		`{"type":"saas","name":"x","domain":"team.cloudflareaccess.com/x","saas_app":{"auth_type":"saml"}}`:                                    nil,
		`{"type":"bookmark","name":"x","domain":"https://elsewhere.example.net"}`:                                                              nil,
		`{"type":"app_launcher","domain":"team.cloudflareaccess.com"}`:                                                                         nil,
	} {
		id := provider.ApplicationID(f.external(t, body).ID)
		listed := f.list(t)
		got := listed[slices.IndexFunc(listed, func(a provider.Application) bool { return a.ID == id })]
		if !slices.Equal(got.Domains, want) {
			t.Errorf("%s covers %q, want %q", body, got.Domains, want)
		}
	}
}
