package providertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

func deletedApplication(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	created, kept := f.create(t, spec), f.create(t, f.spec(t, "kept.example.com"))
	for range 2 {
		if err := f.Access.Delete(f.ctx, created); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	_, err := f.Access.Update(f.ctx, created, spec)
	wantAccessError(t, "Update", err, provider.ErrNotFound)
	wantAccessError(t, "RevokeTokens", f.Access.RevokeTokens(f.ctx, created.ID), provider.ErrNotFound)
	f.wantListed(t, kept)
	if again := f.create(t, spec); again.ID == created.ID || again.AUDTag == created.AUDTag {
		t.Errorf("an application that was made again has the ID or AUD tag of the former one: %+v", again)
	}
}

func hostnameIsUnique(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	created := f.create(t, spec)
	f.external(t, `{"type":"self_hosted","name":"x","domain":"second.example.com/path"}`)
	f.create(t, f.spec(t, "second.example.com"))
	f.create(t, f.spec(t, "*.example.com"))
	f.unchanged(t, func() {
		for who, a := range map[string]provider.Access{"this": f.Access, "another": f.Other} {
			_, err := a.Create(f.ctx, spec)
			wantAccessError(t, who+" installation's Create", err, provider.ErrApplicationExists)
		}
		_, err := f.Access.Update(f.ctx, created, f.spec(t, "*.example.com"))
		wantAccessError(t, "Update", err, provider.ErrApplicationExists)
	})
}

func claimsHostname(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	var all sync.WaitGroup
	results := make([]error, 4)
	for i := range results {
		a := []provider.Access{f.Access, f.Other}[i%2]
		all.Go(func() { _, results[i] = a.Create(f.ctx, spec) })
	}
	all.Wait()
	succeeded := 0
	for _, err := range results {
		if err == nil {
			succeeded++
			continue
		}
		wantAccessError(t, "Create", err, provider.ErrApplicationExists)
	}
	if succeeded != 1 || len(f.list(t)) != 1 {
		t.Errorf("%d of four creates succeeded, and %d applications exist", succeeded, len(f.list(t)))
	}
}

func refusesMissing(t *testing.T, f AccessFixture) {
	created := f.create(t, f.spec(t, "kept.example.com"))
	for want, change := range map[error]func(*provider.ApplicationSpec){
		provider.ErrPolicyNotFound: func(s *provider.ApplicationSpec) { s.Policies = append(s.Policies, "nosuch") },
		provider.ErrTagNotFound:    func(s *provider.ApplicationSpec) { s.Tags = append(s.Tags, "nosuch") },
		provider.ErrNoZone:         func(s *provider.ApplicationSpec) { s.Hostname = outside },
	} {
		spec := f.spec(t, "www.example.com")
		change(&spec)
		f.unchanged(t, func() {
			_, err := f.Access.Create(f.ctx, spec)
			wantAccessError(t, "Create", err, want)
			_, err = f.Access.Update(f.ctx, created, spec)
			wantAccessError(t, "Update", err, want)
		})
	}
	f.Database.DeletePolicy(f.Account, "ci")
	f.Database.DeleteTag(f.Account, tag)
	if got := f.list(t)[0]; !slices.Equal(got.Policies, []provider.AccessPolicyID{"employees"}) || len(got.Tags) != 0 {
		t.Errorf("after a policy and a tag were deleted, the application is %+v", got)
	}
}

func exceedsApplications(t *testing.T, f AccessFixture) {
	for i := range MaxApplications {
		f.create(t, f.spec(t, string(rune('a'+i))+".example.com"))
	}
	f.unchanged(t, func() {
		_, err := f.Access.Create(f.ctx, f.spec(t, "one-more.example.com"))
		wantAccessError(t, "Create", err, provider.ErrQuotaExceeded)
	})
}

func revokesTokens(t *testing.T, f AccessFixture) {
	created, other := f.create(t, f.spec(t, "www.example.com")), f.create(t, f.spec(t, "other.example.com"))
	f.unchanged(t, func() {
		if err := f.Access.RevokeTokens(f.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
	})
	for id, want := range map[provider.ApplicationID]int{created.ID: 1, other.ID: 0} {
		if stored, err := f.Database.Application(f.Account, string(id)); err != nil || stored.Revocations != want {
			t.Errorf("the tokens of %v were revoked %d times, want %d; error %v", stored.Domains, stored.Revocations, want, err)
		}
	}
}

func ensuresTag(t *testing.T, f AccessFixture) {
	for _, name := range []string{tag, "tgrevoke", tag} {
		if err := f.Access.EnsureTag(f.ctx, name); err != nil {
			t.Errorf("EnsureTag(%q): %v", name, err)
		}
		if err := f.Other.EnsureTag(f.ctx, name); err != nil {
			t.Errorf("another installation's EnsureTag(%q): %v", name, err)
		}
	}
	if got := f.Database.Tags(f.Account); !slices.Equal(got, []string{tag, "tgrevoke"}) {
		t.Errorf("the tags are %v", got)
	}
	if err := f.Access.EnsureTag(f.ctx, "not/a/tag"); err == nil || provider.IsTransient(err) {
		t.Errorf("a tag with an invalid name: error %v", err)
	}
}

func listsPolicies(t *testing.T, f AccessFixture) {
	if got, err := f.Access.Policies(f.ctx); err != nil || len(got) != 0 {
		t.Errorf("policies %+v, error %v", got, err)
	}
	var want []provider.AccessPolicy
	for _, decision := range []string{"allow", "deny", "bypass", "non_identity"} {
		p := f.Database.AddPolicy(f.Account, access.Policy{Name: "name of " + decision, Decision: decision})
		want = append(want, provider.AccessPolicy{ID: provider.AccessPolicyID(p.ID), Name: p.Name, Decision: decision})
	}
	got, err := f.Access.Policies(f.ctx)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, policies differ (-want +got):\n%s", err, diff)
	}
}

// allMethods calls every method once, and returns the errors by the method's name.
func (f AccessFixture) allMethods(ctx context.Context, last provider.Application, spec provider.ApplicationSpec) map[string]error {
	_, listErr := f.Access.Applications(ctx)
	_, policiesErr := f.Access.Policies(ctx)
	_, updateErr := f.Access.Update(ctx, last, spec)
	created := spec
	created.Hostname = "created.example.com"
	_, createErr := f.Access.Create(ctx, created)
	return map[string]error{
		"Applications": listErr, "Policies": policiesErr, "Update": updateErr, "Create": createErr,
		"RevokeTokens": f.Access.RevokeTokens(ctx, last.ID), "EnsureTag": f.Access.EnsureTag(ctx, "new"),
		"Delete": f.Access.Delete(ctx, last),
	}
}

func needsAccessPermission(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	last := f.create(t, spec)
	for _, test := range []struct{ permissions, permitted []string }{
		{[]string{"Cloudflare Tunnel Edit", "DNS Edit", "Zone Read"}, nil},
		{[]string{"Access: Apps and Policies Read"}, []string{"Applications", "Policies"}},
	} {
		f.Restrict(test.permissions...)
		for method, err := range f.allMethods(f.ctx, last, spec) {
			if slices.Contains(test.permitted, method) {
				if err != nil {
					t.Errorf("%s with %q: %v", method, test.permissions, err)
				}
				continue
			}
			wantAccessError(t, method, err, provider.ErrForbidden)
		}
	}
	f.Restrict("Access: Apps and Policies Edit")
	f.wantListed(t, last)
	for method, err := range f.allMethods(f.ctx, last, spec) {
		if err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func canceledAccess(t *testing.T, f AccessFixture) {
	spec := f.spec(t, "www.example.com")
	last := f.create(t, spec)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	f.unchanged(t, func() {
		for method, err := range f.allMethods(ctx, last, spec) {
			if !errors.Is(err, context.Canceled) || provider.IsTransient(err) {
				t.Errorf("%s: got %v, want context.Canceled", method, err)
			}
		}
	})
	if got := f.Database.Tags(f.Account); !slices.Equal(got, []string{tag}) {
		t.Errorf("a canceled call has created a tag: %v", got)
	}
}
