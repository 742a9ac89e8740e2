package providertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

// MaxApplications is how many applications the account of an [AccessFixture] can have.
const MaxApplications = 8

// AccessFixture is an Access for an account without applications, policies and tags. Every
// hostname but those below example.org is in one of the account's zones.
type AccessFixture struct {
	Access provider.Access
	// Other is an Access for the same account, like that of another installation.
	Other provider.Access
	// Database simulates changes in the dashboard. It has [MaxApplications].
	Database *access.Database
	// Account is the account's ID in the database.
	Account string
	// Restrict limits the API token of Access to the permissions, which have the names in
	// Cloudflare's dashboard.
	Restrict func(permissions ...string)

	ctx context.Context
}

// AccessOptions returns the options for the database of an [AccessFixture].
func AccessOptions() access.Options {
	return access.Options{MaxApplications: MaxApplications, HasZone: func(_, hostname string) bool {
		return hostname != outside
	}}
}

// outside is a hostname without a zone.
const outside = "www.example.org"

// RunAccess runs the contract tests for [provider.Access], each with a new fixture.
func RunAccess(t *testing.T, newFixture func(*testing.T) AccessFixture) {
	for name, test := range accessContract {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			// The tests are about results, not about the budget for many calls.
			f.ctx = provider.WithReservation(provider.WithPriority(t.Context(), provider.PriorityAccess), 1)
			test(t, f)
		})
	}
}

var accessContract = map[string]func(*testing.T, AccessFixture){
	"a created application is listed":                 createsApplication,
	"an application for a wildcard has two cookies":   createsWildcard,
	"a bypass has one policy that lets everyone pass": createsBypass,
	"CORS settings are read as written":               roundTripsCORS,
	"all applications of the account are listed":      listsApplications,
	"everything that an application covers is listed": listsDomains,
	"an update replaces the fields of its spec":       updatesApplication,
	"an update keeps the other fields":                keepsUnknownFields,
	"an update removes other domains and policies":    removesDomains,
	"a changed application is not written":            refusesChanged,
	"an application that was deleted is not found":    deletedApplication,
	"a hostname has one application":                  hostnameIsUnique,
	"of concurrent creates of a hostname one applies": claimsHostname,
	"policies, tags and zones must exist":             refusesMissing,
	"an application above the quota is not created":   exceedsApplications,
	"tokens are revoked":                              revokesTokens,
	"a tag is created once":                           ensuresTag,
	"policies are listed":                             listsPolicies,
	"every method of Access needs its permission":     needsAccessPermission,
	"a canceled call to Access changes nothing":       canceledAccess,
}

const tag = "tg0123456789abcdef0123456789abcdef"

// spec returns a spec for a hostname, whose policies and tag exist.
func (f AccessFixture) spec(t *testing.T, hostname string) provider.ApplicationSpec {
	t.Helper()
	if len(f.Database.Policies(f.Account)) == 0 {
		f.Database.AddPolicy(f.Account, access.Policy{ID: "employees", Name: "Employees", Decision: "allow"})
		f.Database.AddPolicy(f.Account, access.Policy{ID: "ci", Name: "CI", Decision: "non_identity"})
	}
	if err := f.Access.EnsureTag(f.ctx, tag); err != nil {
		t.Fatalf("EnsureTag: %v", err)
	}
	return provider.ApplicationSpec{
		Hostname: hostname, Name: hostname, Policies: []provider.AccessPolicyID{"employees", "ci"},
		SessionDuration: 8 * time.Hour, Tags: []string{tag},
	}
}

// create creates an application, which must succeed.
func (f AccessFixture) create(t *testing.T, spec provider.ApplicationSpec) provider.Application {
	t.Helper()
	created, err := f.Access.Create(f.ctx, spec)
	if err != nil {
		t.Fatalf("Create(%q): %v", spec.Hostname, err)
	}
	return created
}

func (f AccessFixture) update(t *testing.T, last provider.Application, spec provider.ApplicationSpec) provider.Application {
	t.Helper()
	updated, err := f.Access.Update(f.ctx, last, spec)
	if err != nil {
		t.Fatalf("Update(%q): %v", spec.Hostname, err)
	}
	return updated
}

// external creates an application in the dashboard.
func (f AccessFixture) external(t *testing.T, body string) access.Application {
	t.Helper()
	created, err := f.Database.Create(f.Account, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (f AccessFixture) list(t *testing.T) []provider.Application {
	t.Helper()
	all, err := f.Access.Applications(f.ctx)
	if err != nil {
		t.Fatalf("Applications: %v", err)
	}
	return all
}

// of returns the application that the spec describes.
func of(spec provider.ApplicationSpec) provider.Application {
	a := provider.Application{
		Name: spec.Name, Type: "self_hosted", Domains: []string{spec.Hostname}, Policies: spec.Policies, Bypass: spec.Bypass,
		SessionDuration: spec.SessionDuration, CORS: spec.CORS, BindingCookie: spec.BindingCookie, Tags: spec.Tags,
	}
	if spec.Bypass {
		a.OtherPolicies = 1
	}
	return a
}

// wantApplication compares an application with the spec. Its IDs must be set.
func wantApplication(t *testing.T, got provider.Application, spec provider.ApplicationSpec) {
	t.Helper()
	if got.ID == "" || got.AUDTag == "" {
		t.Errorf("application %+v has no ID or AUD tag", got)
	}
	ignored := cmpopts.IgnoreFields(provider.Application{}, "ID", "AUDTag", "UnknownFields")
	if diff := cmp.Diff(of(spec), got, ignored, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("application differs (-want +got):\n%s", diff)
	}
}

// wantListed checks that the list contains the same applications, in any order.
func (f AccessFixture) wantListed(t *testing.T, want ...provider.Application) {
	t.Helper()
	byID := cmpopts.SortSlices(func(a, b provider.Application) bool { return a.ID < b.ID })
	if diff := cmp.Diff(want, f.list(t), byID, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the list differs (-want +got):\n%s", diff)
	}
}

// wantAccessError checks that an error is of one class only, and not temporary.
func wantAccessError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || provider.IsTransient(err) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
	for _, other := range accessErrors {
		if errors.Is(err, other) && !errors.Is(want, other) {
			t.Errorf("%s: error %v is also %v", what, err, other)
		}
	}
}

// accessErrors are the errors of which a call returns at most one.
var accessErrors = []error{
	provider.ErrUnauthorized, provider.ErrForbidden, provider.ErrApplicationExists, provider.ErrApplicationChanged,
	provider.ErrPolicyNotFound, provider.ErrTagNotFound, provider.ErrNoZone, provider.ErrQuotaExceeded, provider.ErrNotFound,
}

// unchanged calls try, and checks that no application changes.
func (f AccessFixture) unchanged(t *testing.T, try func()) {
	t.Helper()
	before := f.list(t)
	try()
	f.wantListed(t, before...)
}
