package simulator_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// tokenFor returns a valid token of the team for the AUD tag.
func tokenFor(team, tag string) string {
	return simulator.Claims{Team: team, Audience: []string{tag}, Email: "ada@example.com"}.Sign()
}

// unsigned returns the token with another header, and without a signature.
func unsigned(token, header string) string {
	parts := strings.Split(token, ".")
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + parts[1] + "."
}

// The statuses are those of the real cloudflared.
func TestRuleWithAccessRequiresATokenForOneOfItsAudiences(t *testing.T) {
	origin := httptest.NewServer(echo)
	defer origin.Close()
	s, id, address := newTunnel(t, simulator.Options{Dial: origins{"app:80": origin.Listener.Addr().String()}.dial})
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[
		{"hostname":"status","service":"http_status:204","originRequest":{"access":{"required":true,"teamName":"team","audTag":["one","two"]}}},
		{"hostname":"origin","service":"http://app","originRequest":{"access":{"required":true,"teamName":"team","audTag":["one","two"]}}},
		{"hostname":"optional","service":"http_status:204","originRequest":{"access":{"required":false,"teamName":"team","audTag":["one"]}}},
		{"service":"http://app","originRequest":{"access":{"required":true}}}]}`))
	one, past := tokenFor("team", "one"), time.Now().Add(-2*time.Hour)
	for name, test := range map[string]struct {
		host, token string
		status      int
	}{
		"no token":                       {"origin", "", 403},
		"first audience":                 {"origin", one, 200},
		"second audience":                {"origin", tokenFor("team", "two"), 200},
		"one of several audiences":       {"origin", simulator.Claims{Team: "team", Audience: []string{"x", "two"}}.Sign(), 200},
		"other audience":                 {"origin", tokenFor("team", "three"), 403},
		"no audience":                    {"origin", simulator.Claims{Team: "team"}.Sign(), 403},
		"other team":                     {"origin", tokenFor("other", "one"), 502},
		"team in upper case":             {"origin", tokenFor("Team", "one"), 502},
		"expired":                        {"origin", simulator.Claims{Team: "team", Audience: []string{"one"}, IssuedAt: past}.Sign(), 502},
		"expired for other audience":     {"origin", simulator.Claims{Team: "team", Audience: []string{"x"}, IssuedAt: past}.Sign(), 502},
		"forged":                         {"origin", simulator.Claims{Team: "team", Audience: []string{"one"}}.Forge(), 502},
		"changed":                        {"origin", one[:len(one)-8] + "AAAAAAAA", 502},
		"not a token":                    {"origin", "invalid", 502},
		"no algorithm":                   {"origin", unsigned(one, `{"alg":"none"}`), 502},
		"symmetric algorithm":            {"origin", unsigned(one, `{"alg":"HS256"}`), 502},
		"status":                         {"status", one, 204},
		"status without a token":         {"status", "", 403},
		"optional":                       {"optional", "", 204},
		"optional with a forged token":   {"optional", "invalid", 204},
		"rule without a team":            {"none", one, 502},
		"rule without a team or a token": {"none", "", 403},
	} {
		t.Run(name, func(t *testing.T) {
			header := "GET / HTTP/1.1\nHost: " + test.host + "\n"
			if test.token != "" {
				header += "Cf-Access-Jwt-Assertion: " + test.token + "\n"
			}
			if w := send(t, address, header+"\n"); w.answer.StatusCode != test.status {
				t.Errorf("%d, want %d", w.answer.StatusCode, test.status)
			}
		})
	}
}
