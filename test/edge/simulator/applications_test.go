package simulator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const appsPath = "/accounts/account/access/apps"

// request sends a request to the API, and returns the status, the result and the code of the
// error, or zero.
func request(t *testing.T, s *simulator.Server, token, method, path, body string) (status int, result any, code int) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/client/v4"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	s.API().ServeHTTP(recorder, r)
	var envelope struct {
		Result any
		Errors []struct{ Code int }
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &envelope); err != nil {
		t.Fatal(err)
	}
	for _, e := range envelope.Errors {
		code = e.Code
	}
	return recorder.Code, envelope.Result, code
}

// TestApplicationsInTheAPI follows an application from its creation to its end.
func TestApplicationsInTheAPI(t *testing.T) {
	database := zones.New(zones.Options{})
	database.Add(zones.Zone{Name: "example.com", Account: "account"})
	applications := access.New(access.Options{HasZone: database.HasActive})
	s := simulator.New(simulator.Options{Access: applications})
	policy := applications.AddPolicy("account", access.Policy{Name: "employees", Decision: "allow"})
	call := func(method, path, body string, status, code int) any {
		t.Helper()
		got, result, gotCode := request(t, s, "token", method, path, body)
		if got != status || gotCode != code {
			t.Fatalf("%s %s: status %d and code %d, want %d and %d", method, path, got, gotCode, status, code)
		}
		return result
	}
	app := func(domain, others string) string {
		return fmt.Sprintf(`{"type":"self_hosted","name":"n","domain":%q%s}`, domain, others)
	}
	call("POST", appsPath, app("www.example.com", `,"tags":["label"]`), 400, access.CodeInvalidRequest)
	call("POST", "/accounts/account/access/tags", `{"name":"label"}`, 201, 0)
	call("POST", "/accounts/account/access/tags", `{"name":"label"}`, 409, access.CodeTagExists)
	call("GET", "/accounts/account/access/tags/label", "", 200, 0)
	call("GET", "/accounts/account/access/tags/other", "", 404, access.CodeInvalidRequest)
	created := call("POST", appsPath, app("www.example.com", fmt.Sprintf(`,"tags":["label"],"policies":[{"id":%q}]`, policy.ID)), 201, 0).(map[string]any)
	call("POST", appsPath, app("www.example.com", ""), 409, access.CodeApplicationExists)
	call("POST", appsPath, app("www.example.org", ""), 400, access.CodeInvalidRequest)
	path := appsPath + "/" + created["id"].(string)
	call("PUT", path, app("*.example.com", ""), 200, 0)
	call("POST", path+"/revoke_tokens", "", 202, 0)
	read := call("GET", path, "", 200, 0).(map[string]any)
	if read["aud"] != created["aud"] || read["domain"] != "*.example.com" || len(read["policies"].([]any)) != 0 {
		t.Errorf("read %v", read)
	}
	if policies := call("GET", "/accounts/account/access/policies", "", 200, 0).([]any); len(policies) != 1 {
		t.Errorf("policies are %v", policies)
	}
	call("POST", appsPath, app("www.example.com", ""), 201, 0)
	for page, want := range map[int]string{1: "*.example.com", 2: "www.example.com"} {
		list := call("GET", fmt.Sprintf("%s?per_page=1&page=%d", appsPath, page), "", 200, 0).([]any)
		if len(list) != 1 || list[0].(map[string]any)["domain"] != want {
			t.Errorf("page %d contains %v", page, list)
		}
	}
	call("DELETE", path, "", 202, 0)
	call("DELETE", path, "", 404, access.CodeUnknownApplication)
	call("GET", path, "", 404, access.CodeUnknownApplication)
	call("DELETE", "/accounts/account/access/tags/label", "", 202, 0)
}

// TestApplicationsNeedAPermission checks the permissions for Access.
func TestApplicationsNeedAPermission(t *testing.T) {
	s := simulator.New(simulator.Options{Token: "all"})
	s.Restrict("reads", simulator.Grant{Permissions: []simulator.Permission{simulator.AccessRead}})
	s.Restrict("edits", simulator.Grant{Permissions: []simulator.Permission{simulator.AccessEdit}})
	s.Restrict("tunnels", simulator.Grant{Permissions: []simulator.Permission{simulator.TunnelEdit, simulator.DNSEdit}})
	const body = `{"type":"self_hosted","name":"n","domain":"www.example.com"}`
	for token, want := range map[string][2]int{
		"reads": {200, 403}, "edits": {200, 201}, "tunnels": {403, 403}, "unknown": {401, 401},
	} {
		for i, method := range []string{http.MethodGet, http.MethodPost} {
			if got, _, _ := request(t, s, token, method, appsPath, body); got != want[i] {
				t.Errorf("%s with the token %q: status %d, want %d", method, token, got, want[i])
			}
		}
	}
}
