package cloudflare

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// accessReturning returns an Access whose requests all get the same response.
func accessReturning(t *testing.T, status int, body string) *Access {
	t.Helper()
	return openAccess(t, &Client{}, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(*http.Request) (*http.Response, error) { return jsonResponse(status, body), nil }),
	}, "")
}

func TestTextDeterminesTheErrorOfAccess(t *testing.T) {
	const invalid = "access.api.error.invalid_request: "
	errTransient := errors.New("transient")
	for _, test := range []struct {
		status, code int
		message      string
		want         error
	}{
		// These are known from error messages in public repositories.
		{409, 11010, "access.api.error.application_already_exists", provider.ErrApplicationExists},
		{400, 12130, "access.api.error.application_already_exists", provider.ErrApplicationExists},
		{409, 12130, "access.api.error.conflict: destination belongs to another application", provider.ErrApplicationExists},
		{404, 11021, "access.api.error.unknown_application", provider.ErrNotFound},
		{400, 12130, invalid + "domain does not belong to zone", provider.ErrNoZone},
		{400, 12130, invalid + "tags contain a tag that does not exist", provider.ErrTagNotFound},
		{404, 12083, "access.api.error.policy_not_found", provider.ErrPolicyNotFound},
		{400, 12130, "access.api.error.unknown_policy", provider.ErrPolicyNotFound},
		{400, 12130, invalid + "policy precedences must be unique", nil},
		{403, 10000, "Authentication error", provider.ErrForbidden},
		{403, 9109, "Unauthorized to access requested resource", provider.ErrForbidden},
		{401, 10000, "Authentication error", provider.ErrUnauthorized},
		{400, 6003, "Invalid request headers", nil},
		{404, 7003, "Could not route to /accounts/x", nil},
		// These are not known.
		{400, 12130, invalid + "maximum number of applications has been reached", provider.ErrQuotaExceeded},
		{400, 12130, invalid + "quota exceeded", provider.ErrQuotaExceeded},
		{400, 12130, invalid + "policies do not exist", provider.ErrPolicyNotFound},
		{400, 12130, invalid + "domain zone.quota-tag.example.com is invalid", nil},
		{500, 11010, "access.api.error.internal_server_error", errTransient},
	} {
		t.Run(fmt.Sprintf("%d %s", test.status, test.message), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := accessReturning(t, test.status,
					fmt.Sprintf(`{"success":false,"errors":[{"code":%d,"message":%q}]}`, test.code, test.message))
				_, err := a.Create(t.Context(), specOf("www.example.com"))
				if provider.IsTransient(err) != errors.Is(test.want, errTransient) || !strings.Contains(err.Error(), test.message) {
					t.Errorf("got %v", err)
				}
				for _, class := range []error{
					provider.ErrApplicationExists, provider.ErrNotFound, provider.ErrNoZone, provider.ErrTagNotFound, provider.ErrPolicyNotFound,
					provider.ErrForbidden, provider.ErrUnauthorized, provider.ErrQuotaExceeded,
				} {
					if errors.Is(err, class) != errors.Is(test.want, class) {
						t.Errorf("got %v, want the class %v", err, test.want)
					}
				}
			})
		})
	}
}

// TestApplicationThatCloudflareReturns reads an application as a user of the API has
// published it.
func TestApplicationThatCloudflareReturns(t *testing.T) {
	a := accessReturning(t, http.StatusOK, `{"success":true,"result":[{
		"id":"app-1","uid":"app-1","aud":"d3404f","type":"self_hosted","name":"Example",
		"created_at":"2026-07-05T23:55:28Z","updated_at":"2026-07-20T04:32:19Z",
		"domain":"www.example.com","self_hosted_domains":["www.example.com"],
		"destinations":[{"type":"public","uri":"www.example.com"}],
		"app_launcher_visible":true,"allowed_idps":[],"tags":[],"auto_redirect_to_identity":false,"session_duration":"730h",
		"enable_binding_cookie":false,"http_only_cookie_attribute":false,"options_preflight_bypass":false,"logo_url":null,
		"policies":[
			{"id":"second","name":"B","decision":"allow","precedence":2,"reusable":true,"include":[],"exclude":[],"require":[]},
			{"id":"first","name":"A","decision":"allow","precedence":1,"reusable":true,"include":[{"group":{"id":"g"}}],"exclude":[],"require":[]}]
		}],"result_info":{"page":1,"per_page":100,"count":1,"total_count":1}}`)
	got, err := a.Applications(applications(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := provider.Application{
		ID: "app-1", AUDTag: "d3404f", Name: "Example", Type: "self_hosted", Domains: []string{"www.example.com"},
		Policies: []provider.AccessPolicyID{"first", "second"}, SessionDuration: 730 * time.Hour, Tags: []string{},
		UnknownFields: map[string][]byte{
			"app_launcher_visible": []byte("true"), "allowed_idps": []byte("[]"), "auto_redirect_to_identity": []byte("false"),
			"http_only_cookie_attribute": []byte("false"), "options_preflight_bypass": []byte("false"),
		},
	}
	if diff := cmp.Diff([]provider.Application{want}, got); diff != "" {
		t.Errorf("applications differ (-want +got):\n%s", diff)
	}
}

func TestPoliciesWithoutReusableAreRecognized(t *testing.T) {
	// The client's types do not have the field "reusable", so that it may be missing.
	const everyone = `{"id":"p","decision":"bypass","include":[{"everyone":{}}]%s}`
	for policies, want := range map[string]provider.Application{
		`{"id":"p","decision":"allow"}`:                                                   {Policies: []provider.AccessPolicyID{"p"}},
		`{"id":"p","decision":"allow","reusable":false}`:                                  {OtherPolicies: 1},
		fmt.Sprintf(everyone, ``):                                                         {OtherPolicies: 1, Bypass: true},
		fmt.Sprintf(everyone, `,"reusable":false`):                                        {OtherPolicies: 1, Bypass: true},
		fmt.Sprintf(everyone, `,"reusable":true`):                                         {Policies: []provider.AccessPolicyID{"p"}},
		fmt.Sprintf(everyone, `,"reusable":false,"exclude":[{"ip":{"ip":"192.0.2.1"}}]`):  {OtherPolicies: 1},
		fmt.Sprintf(everyone, ``) + `,{"id":"q","decision":"allow","reusable":false}`:     {OtherPolicies: 2},
		`{"id":"p","decision":"bypass","reusable":false,"include":[{"ip":{"ip":"::1"}}]}`: {OtherPolicies: 1},
	} {
		a := accessReturning(t, http.StatusOK, `{"success":true,"result":[{"id":"1","type":"self_hosted","session_duration":"0s","policies":[`+policies+`]}]}`)
		got, err := a.Applications(applications(t, 1))
		want.ID, want.Type, want.UnknownFields = "1", "self_hosted", map[string][]byte{}
		if diff := cmp.Diff([]provider.Application{want}, got); err != nil || diff != "" {
			t.Errorf("%s: error %v, differs (-want +got):\n%s", policies, err, diff)
		}
	}
}

func TestUnexpectedResponsesOfAccessAreUnavailableErrors(t *testing.T) {
	const (
		app  = `{"id":"1","type":"self_hosted","aud":"a","domain":"www.example.com"}`
		one  = `{"success":true,"result":%s}`
		list = `{"success":true,"result":[%s],"result_info":{"per_page":100,"total_count":1}}`
	)
	create := func(a *Access) error { _, err := a.Create(t.Context(), specOf("www.example.com")); return err }
	all := func(a *Access) error { _, err := a.Applications(t.Context()); return err }
	policies := func(a *Access) error { _, err := a.Policies(t.Context()); return err }
	revoke := func(a *Access) error { return a.RevokeTokens(t.Context(), "1") }
	for name, test := range map[string]struct {
		call func(*Access) error
		body string
		ok   bool
	}{
		"created":                     {create, fmt.Sprintf(one, app), true},
		"nothing created":             {create, fmt.Sprintf(one, "null"), false},
		"created without an AUD tag":  {create, fmt.Sprintf(one, `{"id":"1","type":"self_hosted","domain":"www.example.com"}`), false},
		"created for another name":    {create, fmt.Sprintf(one, strings.ReplaceAll(app, "www", "a")), false},
		"created without an ID":       {create, fmt.Sprintf(one, `{"type":"self_hosted","aud":"a","domain":"www.example.com"}`), false},
		"truncated":                   {create, `{"success":true,"res`, false},
		"list":                        {all, fmt.Sprintf(list, app), true},
		"incomplete list":             {all, fmt.Sprintf(list, ""), false},
		"no list":                     {all, fmt.Sprintf(one, "null"), false},
		"an application without type": {all, fmt.Sprintf(list, `{"id":"1"}`), false},
		"strange domains":             {all, fmt.Sprintf(list, `{"id":"1","type":"self_hosted","destinations":{"a":1}}`), false},
		"a strange bookmark":          {all, fmt.Sprintf(list, `{"id":"1","type":"bookmark","destinations":{"a":1},"policies":"x"}`), true},
		"a list of texts":             {all, fmt.Sprintf(list, `"text"`), false},
		"policies":                    {policies, fmt.Sprintf(list, `{"id":"1","decision":"allow"}`), true},
		"policy without a decision":   {policies, fmt.Sprintf(list, `{"id":"1"}`), false},
		"revoked, nothing returned":   {revoke, ``, true},
		"revoked":                     {revoke, fmt.Sprintf(one, "{}"), true},
		"revoked, a page":             {revoke, `<html>maintenance</html>`, false},
		"revoked, null":               {revoke, `null`, false},
		"revoked, a text":             {revoke, fmt.Sprintf(one, `"nothing"`), true},
		"not revoked":                 {revoke, `{"success":false,"errors":[]}`, false},
		"revoked, an object":          {revoke, `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.call(accessReturning(t, http.StatusOK, test.body))
			if _, unavailable := errors.AsType[*provider.UnavailableError](err); unavailable == test.ok || err != nil && test.ok {
				t.Errorf("got error %v, want success: %t", err, test.ok)
			}
		})
	}
}

// TestRequestsOfAccess checks what is sent for an application.
func TestRequestsOfAccess(t *testing.T) {
	var sent []string
	a := openAccess(t, &Client{}, Options{AccountID: account, APIToken: "account-token",
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			body := []byte{}
			if r.Body != nil {
				body, _ = io.ReadAll(r.Body)
			}
			sent = append(sent, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Header.Get("Authorization"), r.Method,
				strings.TrimPrefix(r.URL.RequestURI(), "/client/v4/accounts/"+account), body)))
			return jsonResponse(http.StatusOK, `{"success":true,"result":{"id":"1","type":"ssh","aud":"a","domain":"*.example.com","logo_url":"l",
				"custom_deny_url":null,"self_hosted_domains":["*.example.com"],"options_preflight_bypass":true,"cors_headers":{"allow_all_origins":true}}}`), nil
		})}, "access-token")
	ctx := applications(t, 1)
	spec := provider.ApplicationSpec{
		Hostname: "*.example.com", Name: "n", Policies: []provider.AccessPolicyID{"p", "q"}, SessionDuration: 90 * time.Minute, BindingCookie: true, Tags: []string{"tg"},
	}
	created, createErr := a.Create(ctx, spec)
	_, updateErr := a.Update(ctx, created, spec)
	spec = provider.ApplicationSpec{
		Hostname: "*.example.com", Bypass: true, SessionDuration: 24 * time.Hour,
		CORS: &provider.CORS{AllowAllOrigins: true, AllowedOrigins: []string{"ignored"}, AllowedMethods: []string{"GET"}, MaxAge: new(0)},
	}
	_, bypassErr := a.Update(ctx, created, spec)
	if err := errors.Join(createErr, updateErr, bypassErr, a.Delete(ctx, created), a.RevokeTokens(ctx, "1"), a.EnsureTag(ctx, "tg")); err != nil {
		t.Fatal(err)
	}
	const (
		all      = `"destinations":[{"type":"public","uri":"*.example.com"}],"domain":"*.example.com"`
		managed  = all + `,"enable_binding_cookie":true,"name":"n","policies":[{"id":"p","precedence":1},{"id":"q","precedence":2}],"session_duration":"1h30m","tags":["tg"]`
		everyone = `"policies":[{"decision":"bypass","include":[{"everyone":{}}],"name":"Bypass","precedence":1}],"session_duration":"24h","tags":[],"type":"ssh"`
	)
	want := []string{
		`POST /access/apps {"app_launcher_visible":false,` + managed + `,"type":"self_hosted"}`,
		`GET /access/apps/1`,
		`PUT /access/apps/1 {"cors_headers":null,` + strings.Replace(managed, `"name"`, `"logo_url":"l","name"`, 1) + `,"type":"ssh"}`,
		`GET /access/apps/1`,
		`PUT /access/apps/1 {"cors_headers":{"allow_all_origins":true,"allowed_methods":["GET"],"max_age":0},` + all +
			`,"enable_binding_cookie":false,"logo_url":"l","name":"","options_preflight_bypass":false,` + everyone + `}`,
		`GET /access/apps/1`,
		`DELETE /access/apps/1`,
		`POST /access/apps/1/revoke_tokens`,
		`POST /access/tags {"name":"tg"}`,
	}
	want[2] = strings.Replace(want[2], `,"tags"`, `,"tags"`, 1)
	for i := range want {
		want[i] = "Bearer access-token " + want[i]
		if i == 2 {
			want[i] = strings.Replace(want[i], `"policies"`, `"options_preflight_bypass":true,"policies"`, 1)
		}
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("requests differ (-want +got):\n%s", diff)
	}
}

func TestErrorsOfAccessHideItsToken(t *testing.T) {
	for name, transport := range echoes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token := rand.Text()
				a := openAccess(t, &Client{}, Options{AccountID: account, APIToken: "other", Transport: transport}, token)
				wantHidden(t, token, a)
				wantHidden(t, token, *a)
				ctx, last := applications(t, 1), provider.Application{ID: "1"}
				_, listErr := a.Applications(ctx)
				_, policiesErr := a.Policies(ctx)
				_, createErr := a.Create(ctx, specOf("www.example.com"))
				_, updateErr := a.Update(ctx, last, specOf("www.example.com"))
				for _, err := range []error{
					listErr, policiesErr, createErr, updateErr, a.Delete(ctx, last), a.EnsureTag(ctx, "tg"),
				} {
					if err == nil {
						t.Error("got no error")
					}
					for ; err != nil; err = errors.Unwrap(err) {
						wantHidden(t, token, err)
					}
				}
			})
		})
	}
}

func TestOptionsOfAccessAreValidated(t *testing.T) {
	valid := Options{AccountID: account, APIToken: "token"}
	if _, err := new(Client).OpenAccess(valid, "a\nb"); err == nil || strings.Contains(err.Error(), "a\nb") {
		t.Errorf("an invalid token: got %v, want an error without the token", err)
	}
	if _, err := new(Client).OpenAccess(Options{APIToken: "token"}, "token"); err == nil {
		t.Error("no account: got no error")
	}
}

func TestSessionsAreWrittenInHoursAndMinutes(t *testing.T) {
	for duration, want := range map[time.Duration]string{
		8 * time.Hour: "8h", 30 * time.Minute: "30m", 90 * time.Minute: "1h30m", 730 * time.Hour: "730h",
		10 * time.Minute: "10m", 10 * time.Hour: "10h", 20*time.Hour + 10*time.Minute: "20h10m", 100 * time.Hour: "100h", 0: "0s", 90 * time.Second: "1m30s",
	} {
		got := formatSession(duration)
		if got != want || parseSession(got) != duration {
			t.Errorf("%s is written as %s, and read as %s", duration, got, parseSession(got))
		}
	}
}

// TestUnknownFieldsAreJSON checks that unknown fields are written as they were read.
func TestUnknownFieldsAreJSON(t *testing.T) {
	body, err := json.Marshal(applicationFields(provider.Application{ID: "1", UnknownFields: map[string][]byte{"x": []byte(`{"b":1,"a":[2]}`)}}, specOf("a")))
	if err != nil || !strings.Contains(string(body), `"x":{"b":1,"a":[2]}`) {
		t.Errorf("%s, %v", body, err)
	}
}

// An application counts as deleted if the response says so, or if it does not exist afterwards.
func TestDeletionOfAnApplicationIsConfirmed(t *testing.T) {
	const app = `{"success":true,"result":{"id":"1","type":"self_hosted","aud":"a","domain":"www.example.com"}}`
	for name, test := range map[string]struct {
		body            string
		deleted, wantOK bool
	}{
		"confirmed":              {`{"success":true,"result":{"id":"1"}}`, true, true},
		"an empty body":          {``, true, true},
		"another ID":             {`{"success":true,"result":{"id":"2"}}`, false, false},
		"a page, not deleted":    {`<html>maintenance</html>`, false, false},
		"an object, not deleted": {`{"success":true,"result":{}}`, false, false},
		"null, not deleted":      {`null`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			gone := false
			a := openAccess(t, &Client{}, Options{AccountID: account, APIToken: "token",
				Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
					switch {
					case r.Method == http.MethodDelete:
						gone = test.deleted
						return jsonResponse(http.StatusOK, test.body), nil
					case gone:
						return jsonResponse(http.StatusNotFound, `{"success":false,"errors":[{"code":11021,"message":"access.api.error.unknown_application"}]}`), nil
					}
					return jsonResponse(http.StatusOK, app), nil
				}),
			}, "")
			var last applicationResponse
			if err := json.Unmarshal([]byte(app), &last); err != nil {
				t.Fatal(err)
			}
			found, err := last.application()
			if err != nil {
				t.Fatal(err)
			}
			err = a.Delete(t.Context(), found)
			if _, unavailable := errors.AsType[*provider.UnavailableError](err); unavailable == test.wantOK || err != nil && test.wantOK {
				t.Errorf("got error %v, want success: %t", err, test.wantOK)
			}
		})
	}
}
