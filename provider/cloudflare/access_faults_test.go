package cloudflare

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// unanswered are faults after which it is unknown whether a request was executed, and how
// long a call takes then.
var unanswered = map[string]struct {
	fault    simulator.Fault
	executed bool
	took     time.Duration
}{
	"lost request":  {simulator.Fault{Drop: simulator.DropBeforeWrite}, false, 0},
	"lost answer":   {simulator.Fault{Drop: simulator.DropAfterWrite}, true, 0},
	"bad gateway":   {simulator.Fault{Status: http.StatusBadGateway}, false, 0},
	"a proxy's":     {simulator.Fault{Status: http.StatusForbidden, Body: "<html>"}, false, 0},
	"too slow":      {simulator.Fault{Latency: time.Hour}, false, provider.CallTimeout},
	"slow but late": {simulator.Fault{Latency: provider.CallTimeout + time.Second, Late: true}, true, provider.CallTimeout},
}

func TestWritesOfAccessWithoutAnAnswerAreSentOnce(t *testing.T) {
	for write, test := range map[string]struct {
		method, path string
		call         func(*testing.T, *accessEdge, provider.Application) error
		changed      func(before, after []access.Application) bool
	}{
		"Create": {http.MethodPost, applicationsPath, func(t *testing.T, e *accessEdge, _ provider.Application) error {
			_, err := e.Create(applications(t, 1), specOf("b.example.com"))
			return err
		}, func(before, after []access.Application) bool { return len(after) > len(before) }},
		"Update": {http.MethodPut, applicationPath, func(t *testing.T, e *accessEdge, last provider.Application) error {
			_, err := e.Update(applications(t, 2), last, specOf("b.example.com"))
			return err
		}, func(_, after []access.Application) bool { return after[0].Name == "b.example.com" }},
		"Delete": {http.MethodDelete, applicationPath, func(t *testing.T, e *accessEdge, last provider.Application) error {
			return e.Delete(applications(t, 2), last)
		}, func(_, after []access.Application) bool { return len(after) == 0 }},
		"RevokeTokens": {http.MethodPost, revokePath, func(t *testing.T, e *accessEdge, last provider.Application) error {
			return e.RevokeTokens(applications(t, 1), last.ID)
		}, func(_, after []access.Application) bool { return after[0].Revocations == 1 }},
	} {
		for name, u := range unanswered {
			t.Run(write+", "+name, func(t *testing.T) {
				withAccess(t, func(t *testing.T, e *accessEdge) {
					last := e.new(t, "a.example.com")
					before := e.database.Applications(account)
					u.fault.Method, u.fault.Path = test.method, test.path
					e.Inject(u.fault)
					start := time.Now()
					wantUnavailable(t, test.call(t, e, last), 0)
					wantElapsed(t, start, u.took)
					advance(2 * provider.CallTimeout)
					e.wantCount(t, test.method, test.path, 1)
					if got := test.changed(before, e.database.Applications(account)); got != u.executed {
						t.Errorf("executed: %t, want %t", got, u.executed)
					}
				})
			})
		}
	}
}

func TestReadsOfAccessAreNotRetried(t *testing.T) {
	for name, u := range unanswered {
		t.Run(name, func(t *testing.T) {
			withAccess(t, func(t *testing.T, e *accessEdge) {
				last := e.new(t, "a.example.com")
				u.fault.Method = http.MethodGet
				e.Inject(u.fault)
				all, err := e.Applications(applications(t, 1))
				wantUnavailable(t, err, 0)
				if all != nil {
					t.Errorf("Applications returned %+v", all)
				}
				// The reads before an Update and a Delete end these.
				advance(time.Minute)
				_, err = e.Update(applications(t, 2), last, specOf("b.example.com"))
				wantUnavailable(t, err, 0)
				advance(time.Minute)
				wantUnavailable(t, e.Delete(applications(t, 2), last), 0)
				advance(time.Minute)
				e.wantCount(t, "", "", 3)
				e.wantCount(t, http.MethodGet, "", 3)
			})
		})
	}
}

func TestApplicationsAreReadInPages(t *testing.T) {
	for name, test := range map[string]struct {
		change func(d *access.Database)
		failed bool
	}{
		"nothing": {func(*access.Database) {}, false},
		"created": {func(d *access.Database) {
			_, _ = d.Create(account, []byte(`{"type":"self_hosted","name":"x","domain":"z.example.com"}`))
		}, true},
		"deleted": {func(d *access.Database) { _ = d.Delete(account, d.Applications(account)[0].ID) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			withAccess(t, func(t *testing.T, e *accessEdge) {
				e.applicationsPerPage = 2
				for i := range 5 {
					e.new(t, fmt.Sprintf("n%d.example.com", i))
				}
				e.Inject(simulator.Fault{Path: applicationsPath, Times: 1, After: func(simulator.Request) { test.change(e.database) }})
				all, err := e.Applications(applications(t, 1))
				if test.failed {
					wantUnavailable(t, err, 0)
					return
				}
				if err != nil || len(all) != 5 {
					t.Errorf("%d applications, error %v, want 5", len(all), err)
				}
				e.wantCount(t, http.MethodGet, applicationsPath, 3)
			})
		})
	}
}

func TestListWithoutPagesEnds(t *testing.T) {
	// If the API ignored the page, each page would be the first one.
	requests := 0
	a := openAccess(t, &Client{}, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(*http.Request) (*http.Response, error) {
			requests++
			return jsonResponse(http.StatusOK, `{"success":true,"result":[{"id":"1","type":"saas"},{"id":"2","type":"saas"}]}`), nil
		})}, "")
	if all, err := a.Applications(applications(t, 1)); err != nil || len(all) != 2 || requests > 2 {
		t.Errorf("%d applications after %d requests, error %v", len(all), requests, err)
	}
}

func TestTagThatExistsIsReadOnce(t *testing.T) {
	withAccess(t, func(t *testing.T, e *accessEdge) {
		for i, want := range []int{0, 1} {
			if err := e.EnsureTag(applications(t, 2), "tg1"); err != nil {
				t.Fatal(err)
			}
			e.wantCount(t, http.MethodPost, tagsPath, i+1)
			e.wantCount(t, http.MethodGet, tagsPath+"/*", want)
			advance(time.Minute)
		}
		e.Inject(simulator.Fault{Method: http.MethodGet, Status: http.StatusBadGateway, Times: 1})
		wantUnavailable(t, e.EnsureTag(applications(t, 2), "tg1"), 0)
		advance(time.Minute)
		e.Inject(simulator.Fault{Method: http.MethodPost, Status: http.StatusBadRequest})
		if err := e.EnsureTag(applications(t, 2), "tg2"); err == nil || provider.IsTransient(err) || errors.Is(err, provider.ErrNotFound) {
			t.Errorf("a tag that the API refuses: %v", err)
		}
	})
}

func TestInvalidApplicationIDsAreNotSent(t *testing.T) {
	withAccess(t, func(t *testing.T, e *accessEdge) {
		for _, id := range []provider.ApplicationID{"", ".", "..", "a/b", "a?b", "é"} {
			last := provider.Application{ID: id}
			_, err := e.Update(t.Context(), last, specOf("www.example.com"))
			for _, err := range []error{err, e.RevokeTokens(t.Context(), id)} {
				if !errors.Is(err, provider.ErrNotFound) {
					t.Errorf("application %q: got %v, want ErrNotFound", id, err)
				}
			}
		}
		e.wantCount(t, "", "", 0)
	})
}
