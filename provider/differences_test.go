package provider

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func wantConfiguration() Configuration {
	seconds, no := int64(30), false
	return Configuration{
		Ingress: []IngressRule{
			{Hostname: "a.example.com", Service: "http://a.team.svc.cluster.local:80"},
			{Hostname: "b.example.com", Service: "http://b.team.svc.cluster.local:80"},
			{
				Hostname: "shop.example.com", Path: "^/api", Service: "http://api.team.svc.cluster.local:80",
				OriginRequest: OriginRequest{
					ConnectTimeout: &seconds, NoTLSVerify: &no,
					Access: &AccessSettings{Required: true, TeamName: "team", AUDTag: []string{"one"}},
				},
			},
			{Hostname: "shop.example.com", Service: "http://web.team.svc.cluster.local:80"},
			{Service: "http_status:404"},
		},
		UnknownFields: map[string]json.RawMessage{"warp-routing": json.RawMessage(`{}`)},
	}
}

// externalChanges contains configuration changes and the lines that describe them.
var externalChanges = map[string]struct {
	apply func(c *Configuration)
	want  []string
}{
	"no change": {func(*Configuration) {}, nil},
	"an unknown field": {func(c *Configuration) {
		c.UnknownFields["warp-routing"] = json.RawMessage(`{"enabled":true}`)
	}, nil},
	"a service": {func(c *Configuration) { c.Ingress[2].Service = "http_status:418" }, []string{
		"rule 3 (shop.example.com ^/api): service is http_status:418, not http://api.team.svc.cluster.local:80",
	}},
	"an empty service": {func(c *Configuration) { c.Ingress[4].Service = "" }, []string{
		`rule 5 (every hostname): service is "", not http_status:404`,
	}},
	"a rule inserted": {func(c *Configuration) {
		c.Ingress = slices.Insert(c.Ingress, 1, IngressRule{Hostname: "new.example.com", Service: "http://new:80"})
	}, []string{"rule 2 (new.example.com) was added"}},
	"a rule for every hostname with a path": {func(c *Configuration) {
		c.Ingress = slices.Insert(c.Ingress, 0, IngressRule{Path: "^/health", Service: "http_status:200"})
	}, []string{"rule 1 (every hostname ^/health) was added"}},
	"a rule removed": {func(c *Configuration) { c.Ingress = slices.Delete(c.Ingress, 1, 2) }, []string{
		"the rule for b.example.com was removed",
	}},
	"all rules removed": {func(c *Configuration) { c.Ingress = nil }, []string{
		"the rule for a.example.com was removed",
		"the rule for b.example.com was removed",
		"the rule for shop.example.com ^/api was removed",
		"the rule for shop.example.com was removed",
		"the rule for every hostname was removed",
	}},
	"a rule duplicated": {func(c *Configuration) { c.Ingress = slices.Insert(c.Ingress, 1, c.Ingress[0]) }, []string{
		"rule 2 (a.example.com, copy 2) was added",
	}},
	"a host renamed": {func(c *Configuration) { c.Ingress[0].Hostname = "A.example.com" }, []string{
		"rule 1 (A.example.com) was added", "the rule for a.example.com was removed",
	}},
	"the order of rules": {func(c *Configuration) { c.Ingress[0], c.Ingress[1] = c.Ingress[1], c.Ingress[0] }, []string{
		"the order of the rules was changed",
	}},
	"several changes": {func(c *Configuration) {
		c.Ingress[0].Service = "http://evil:80"
		c.Ingress[1], c.Ingress[3] = c.Ingress[3], c.Ingress[1]
		c.Ingress = slices.Insert(slices.Delete(c.Ingress, 2, 3), 2, IngressRule{Hostname: "*.example.com", Service: "http://new"})
		timeout := int64(5)
		c.OriginRequest.ConnectTimeout = &timeout
	}, []string{
		"rule 1 (a.example.com): service is http://evil:80, not http://a.team.svc.cluster.local:80",
		"rule 3 (*.example.com) was added",
		"the rule for shop.example.com ^/api was removed",
		"the order of the rules was changed",
		"originRequest: connectTimeout is 5, not unset",
	}},
	"the defaults": {func(c *Configuration) {
		timeout, yes := int64(5), true
		c.OriginRequest = OriginRequest{ConnectTimeout: &timeout, NoTLSVerify: &yes, HTTPHostHeader: "internal"}
	}, []string{
		"originRequest: connectTimeout is 5, not unset",
		"originRequest: httpHostHeader is internal, not unset",
		"originRequest: noTLSVerify is true, not unset",
	}},
	"the originRequest of a rule": {func(c *Configuration) {
		yes := true
		c.Ingress[2].OriginRequest.ConnectTimeout = nil
		c.Ingress[2].OriginRequest.NoTLSVerify = &yes
	}, []string{
		"rule 3 (shop.example.com ^/api): originRequest: connectTimeout is unset, not 30",
		"rule 3 (shop.example.com ^/api): originRequest: noTLSVerify is true, not false",
	}},
	"a default made explicit": {func(c *Configuration) {
		no := false
		c.Ingress[0].OriginRequest.NoTLSVerify = &no
	}, []string{"rule 1 (a.example.com): originRequest: noTLSVerify is false, not unset"}},
	"access weakened": {func(c *Configuration) {
		c.Ingress[2].OriginRequest.Access = &AccessSettings{TeamName: "team", AUDTag: []string{"one", "two"}}
	}, []string{
		`rule 3 (shop.example.com ^/api): originRequest: access.audTag is ["one","two"], not ["one"]`,
		"rule 3 (shop.example.com ^/api): originRequest: access.required is unset, not true",
	}},
	"access removed": {func(c *Configuration) { c.Ingress[2].OriginRequest.Access = nil }, []string{
		`rule 3 (shop.example.com ^/api): originRequest: access is unset, not {"audTag":["one"],"required":true,"teamName":"team"}`,
	}},
	"empty access": {func(c *Configuration) { c.Ingress[0].OriginRequest.Access = &AccessSettings{} }, []string{
		"rule 1 (a.example.com): originRequest: access is {}, not unset",
	}},
	"line breaks": {func(c *Configuration) { c.Ingress[0].Service = "http://a\nrule 2 was removed" }, []string{
		`rule 1 (a.example.com): service is "http://a\nrule 2 was removed", not http://a.team.svc.cluster.local:80`,
	}},
	"long texts": {func(c *Configuration) {
		c.Ingress[0].Service = "http://" + strings.Repeat("ä", 1000) + ":80"
	}, []string{
		"rule 1 (a.example.com): service is http://" + strings.Repeat("ä", 73) + "…" + strings.Repeat("ä", 37) +
			":80, not http://a.team.svc.cluster.local:80",
	}},
}

func TestDifferencesDescribesExternalChanges(t *testing.T) {
	for name, test := range externalChanges {
		t.Run(name, func(t *testing.T) {
			have := wantConfiguration()
			test.apply(&have)
			if diff := cmp.Diff(test.want, Differences(have, wantConfiguration())); diff != "" {
				t.Errorf("lines differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDifferencesAgreeWithHash(t *testing.T) {
	// Differences returns lines exactly when connectors would behave differently.
	for haveName, haveChange := range externalChanges {
		for wantName, wantChange := range externalChanges {
			have, want := wantConfiguration(), wantConfiguration()
			haveChange.apply(&have)
			wantChange.apply(&want)
			lines := Differences(have, want)
			if (len(lines) == 0) != (have.Hash() == want.Hash()) {
				t.Errorf("%q to %q: same hash: %t, lines: %q", wantName, haveName, have.Hash() == want.Hash(), lines)
			}
			haveAgain, wantAgain := wantConfiguration(), wantConfiguration()
			haveChange.apply(&haveAgain)
			wantChange.apply(&wantAgain)
			if !cmp.Equal(have, haveAgain, cmpopts.EquateEmpty()) || !cmp.Equal(want, wantAgain, cmpopts.EquateEmpty()) {
				t.Errorf("%q to %q: Differences modified a configuration", wantName, haveName)
			}
		}
	}
}

func TestDifferencesEscapesUntrustedText(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("x", 100000), strings.Repeat("\x00", 100000), "\xff\xfe", "a\tb", " ", "\u202egnp.exe",
	} {
		have := wantConfiguration()
		have.Ingress[0] = IngressRule{Hostname: text, Path: text, Service: text}
		have.OriginRequest.HTTPHostHeader = text
		for _, line := range Differences(have, wantConfiguration()) {
			if len(line) > 3000 || !utf8.ValidString(line) || strings.ContainsAny(line, "\n\t\x00\u202e") {
				t.Errorf("unsafe line of %d bytes: %.100q", len(line), line)
			}
		}
	}
}
