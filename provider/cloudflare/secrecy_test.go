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

// everyForm is v as any formatting or marshalling would show it.
func everyForm(t *testing.T, v any) string {
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

func wantSecret(t *testing.T, token string, v any) {
	t.Helper()
	form := everyForm(t, v)
	if strings.Contains(form, token) || strings.Contains(form, fmt.Sprintf("%x", token)) {
		t.Errorf("%T shows the token", v)
	}
}

func TestValuesHideTheToken(t *testing.T) {
	o := Options{AccountID: account, APIToken: rand.Text(), BaseURL: baseURL}
	p := newProvider(t, o)
	wantSecret(t, o.APIToken, o)
	wantSecret(t, o.APIToken, &o)
	wantSecret(t, o.APIToken, p)
	wantSecret(t, o.APIToken, *p)
	// fmt does not call the methods of what an unexported field holds.
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		holder := struct{ a, b any }{p, *p}
		if strings.Contains(fmt.Sprintf(verb, holder), o.APIToken) {
			t.Errorf("%s shows the token of a provider in an unexported field", verb)
		}
	}
	if got := fmt.Sprint(o) + fmt.Sprint(p); strings.Count(got, account) != 2 {
		t.Errorf("%s does not say which account", got)
	}
}

// The worst API and the worst transport repeat the token in all they say.
func TestErrorsHideTheToken(t *testing.T) {
	echo := func(status int, contentType, body string) answering {
		return func(req *http.Request) (*http.Response, error) {
			resp := jsonResponse(status, fmt.Sprintf(body, req.Header.Get("Authorization")))
			resp.Header.Set("Content-Type", contentType)
			resp.Status = req.Header.Get("Authorization")
			return resp, nil
		}
	}
	const envelope = `{"success":false,"errors":[{"code":10000,"message":"refused %s"}]}`
	transports := map[string]http.RoundTripper{
		"unauthorized": echo(http.StatusForbidden, "application/json", envelope),
		"bad request":  echo(http.StatusBadRequest, "application/json", envelope),
		"bad gateway":  echo(http.StatusBadGateway, "application/json", envelope),
		"not JSON":     echo(http.StatusOK, "text/html", "<html>%s"),
		"not the API":  echo(http.StatusForbidden, "text/html", "<html>%s"),
		"transport": answering(func(req *http.Request) (*http.Response, error) {
			return nil, transportError{req}
		}),
	}
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token := rand.Text()
				p := newProvider(t, Options{AccountID: account, APIToken: token, Transport: transport})
				for method, err := range everyError(t, p) {
					if err == nil {
						t.Errorf("%s: no error", method)
					}
					for ; err != nil; err = errors.Unwrap(err) {
						wantSecret(t, token, err)
					}
				}
			})
		})
	}
}

func everyError(t *testing.T, p *Provider) map[string]error {
	t.Helper()
	_, findErr := p.FindTunnel(t.Context(), name)
	_, getErr := p.Tunnel(t.Context(), someID)
	_, createErr := p.CreateTunnel(t.Context(), name)
	_, _, readErr := p.Configuration(t.Context(), someID)
	_, writeErr := p.Configure(t.Context(), someID, document("a"))
	_, listErr := p.Tunnels(t.Context())
	_, tokenErr := p.Token(t.Context(), someID)
	_, connectionsErr := p.Connections(t.Context(), someID)
	return map[string]error{
		"FindTunnel": findErr, "Tunnel": getErr, "Tunnels": listErr, "CreateTunnel": createErr,
		"Configuration": readErr, "Configure": writeErr,
		"Token": tokenErr, "RotateToken": p.RotateToken(t.Context(), someID),
		"Connections": connectionsErr, "Disconnect": p.Disconnect(t.Context(), someID, "connector"),
		"DeleteTunnel": p.DeleteTunnel(t.Context(), someID),
	}
}

// A connector's token that came where none was expected is not repeated.
func TestErrorsHideTheConnectorsToken(t *testing.T) {
	for _, body := range []string{
		`{"success":true,"result":{"token":"sesame"}}`,
		`{"success":true,"result":["sesame"]}`,
		`{"success":true,"result":"sesame`,
		`"sesame"`,
	} {
		p := providerAnswering(t, body)
		token, err := p.Token(t.Context(), someID)
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %q shows the token", body, err)
		}
		if err == nil {
			t.Errorf("%s: no error, token of %d bytes", body, len(token))
		}
	}
}

type transportError struct{ req *http.Request }

func (e transportError) Error() string { return "cannot send " + e.req.Header.Get("Authorization") }
