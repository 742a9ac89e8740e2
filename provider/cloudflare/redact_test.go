package cloudflare

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// formatAll returns v formatted with all verbs and marshalled to JSON.
func formatAll(t *testing.T, v any) string {
	t.Helper()
	var all strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		fmt.Fprintf(&all, verb+"\n", v)
	}
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return all.String() + string(body)
}

func wantHidden(t *testing.T, token string, v any) {
	t.Helper()
	text := formatAll(t, v)
	if strings.Contains(text, token) || strings.Contains(text, fmt.Sprintf("%x", token)) {
		t.Errorf("%T contains the token", v)
	}
}

func TestValuesHideTheToken(t *testing.T) {
	o := Options{AccountID: account, APIToken: rand.Text(), BaseURL: baseURL}
	p := newProvider(t, o)
	wantHidden(t, o.APIToken, o)
	wantHidden(t, o.APIToken, &o)
	wantHidden(t, o.APIToken, p)
	wantHidden(t, o.APIToken, *p)
	// fmt does not call the methods of values in unexported fields.
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		holder := struct{ a, b any }{p, *p}
		if strings.Contains(fmt.Sprintf(verb, holder), o.APIToken) {
			t.Errorf("%s prints the token of a provider in an unexported field", verb)
		}
	}
	if got := fmt.Sprint(o) + fmt.Sprint(p); strings.Count(got, account) != 2 {
		t.Errorf("%s does not contain the account ID", got)
	}
}

// echoes returns transports with errors that repeat the token in every text, as the API and
// a transport do in the worst case.
func echoes() map[string]http.RoundTripper {
	echo := func(status int, contentType, body string) transportFunc {
		return func(req *http.Request) (*http.Response, error) {
			resp := jsonResponse(status, fmt.Sprintf(body, req.Header.Get("Authorization")))
			resp.Header.Set("Content-Type", contentType)
			resp.Status = req.Header.Get("Authorization")
			return resp, nil
		}
	}
	const envelope = `{"success":false,"errors":[{"code":10000,"message":"refused %s"}]}`
	return map[string]http.RoundTripper{
		"unauthorized": echo(http.StatusForbidden, "application/json", envelope),
		"bad request":  echo(http.StatusBadRequest, "application/json", envelope),
		"bad gateway":  echo(http.StatusBadGateway, "application/json", envelope),
		"not JSON":     echo(http.StatusOK, "text/html", "<html>%s"),
		"not the API":  echo(http.StatusForbidden, "text/html", "<html>%s"),
		"transport": transportFunc(func(req *http.Request) (*http.Response, error) {
			return nil, transportError{req}
		}),
	}
}

func TestErrorsHideTheToken(t *testing.T) {
	for name, transport := range echoes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token := rand.Text()
				p := newProvider(t, Options{AccountID: account, APIToken: token, Transport: transport})
				for method, err := range errorsOfAllMethods(t, p) {
					if err == nil {
						t.Errorf("%s: got no error", method)
					}
					for ; err != nil; err = errors.Unwrap(err) {
						wantHidden(t, token, err)
					}
				}
			})
		})
	}
}

func errorsOfAllMethods(t *testing.T, p *Provider) map[string]error {
	t.Helper()
	_, findErr := p.FindTunnel(t.Context(), name)
	_, getErr := p.Tunnel(t.Context(), testID)
	_, createErr := p.CreateTunnel(t.Context(), name)
	_, _, readErr := p.Configuration(t.Context(), testID)
	_, writeErr := p.Configure(t.Context(), testID, configuration("a"))
	_, listErr := p.Tunnels(t.Context())
	_, tokenErr := p.Token(t.Context(), testID)
	_, connectionsErr := p.Connections(t.Context(), testID)
	return map[string]error{
		"FindTunnel": findErr, "Tunnel": getErr, "Tunnels": listErr, "CreateTunnel": createErr,
		"Configuration": readErr, "Configure": writeErr,
		"Token": tokenErr, "RotateToken": p.RotateToken(t.Context(), testID),
		"Connections": connectionsErr, "Disconnect": p.Disconnect(t.Context(), testID, "connector"),
		"DeleteTunnel": p.DeleteTunnel(t.Context(), testID),
	}
}

func TestErrorsHideTheTunnelToken(t *testing.T) {
	// An error about an unexpected response must not contain a tunnel token from it.
	for _, body := range []string{
		`{"success":true,"result":{"token":"sesame"}}`,
		`{"success":true,"result":["sesame"]}`,
		`{"success":true,"result":"sesame`,
		`"sesame"`,
	} {
		p := providerReturning(t, body)
		token, err := p.Token(t.Context(), testID)
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: error %q contains the token", body, err)
		}
		if err == nil {
			t.Errorf("%s: got no error and a token of %d bytes", body, len(token))
		}
	}
}

type transportError struct{ req *http.Request }

func (e transportError) Error() string { return "cannot send " + e.req.Header.Get("Authorization") }
