package ingress_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// parseRules returns a configuration with a rule for each line: the hostname or "*", the
// path or "-", the service, and the Access audience if there is one.
func parseRules(lines string) provider.Configuration {
	c := provider.Configuration{}
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		rule := provider.IngressRule{Hostname: strings.TrimSuffix(fields[0], "@"), Path: strings.TrimPrefix(fields[1], "-"), Service: fields[2]}
		if rule.Hostname == "*" {
			rule.Hostname = ""
		}
		if !strings.Contains(rule.Service, ":") {
			rule.Service = "http://" + rule.Service + ":80"
		}
		if len(fields) > 3 {
			rule.OriginRequest.Access = &provider.AccessSettings{Required: true, TeamName: "team", AUDTag: strings.Split(fields[3], ",")}
		}
		c.Ingress = append(c.Ingress, rule)
	}
	return c
}

// printRules is the reverse of parseRules.
func printRules(c provider.Configuration) string {
	var lines strings.Builder
	for _, rule := range c.Ingress {
		hostname, path, access := rule.Hostname, rule.Path, ""
		if hostname == "" {
			hostname = "*"
		}
		if path == "" {
			path = "-"
		}
		if a := rule.OriginRequest.Access; a != nil {
			access = " " + strings.Join(a.AUDTag, ",")
		}
		service := strings.TrimSuffix(strings.TrimPrefix(rule.Service, "http://"), ":80")
		fmt.Fprintf(&lines, "%s %s %s%s\n", hostname, path, service, access)
	}
	return lines.String()
}

const notFound = "\n* - http_status:404"

func TestRestrictedConfigurations(t *testing.T) {
	tests := map[string]struct {
		last, desired, want string
		revokes             bool
	}{
		"no change":        {"a.test - one", "a.test - one", "a.test - one", false},
		"a new hostname":   {"a.test - one", "a.test - one \n b.test - two", "a.test - one", false},
		"a removed rule":   {"a.test - one \n b.test - two", "b.test - two", "b.test - two", true},
		"a removed status": {"a.test ^/a$ http_status:500 \n a.test - one", "a.test - one", "a.test ^/a$ http_status:500 \n a.test - one", false},
		"a rule that becomes a status": {
			"a.test ^/a$ one \n a.test - two", "a.test ^/a$ http_status:500 \n a.test - two", "a.test ^/a$ http_status:500 \n a.test - two", true,
		},
		"a hostname that becomes a status": {"a.test - one", "a.test - http_status:500", "a.test - http_status:500", true},
		"a new status before a wider rule": {
			"*.test - one", "a.test - http_status:404 \n *.test - one", "a.test - http_status:404 \n *.test - one", true,
		},
		"a removed rule before a wider rule": {
			"a.test - one \n *.test - two", "*.test - two", "a.test - http_status:503 \n *.test - two", true,
		},
		"a removed rule before a wider rule with the same backend": {
			"a.test - one \n *.test - one", "*.test - one", "a.test - one \n *.test - one", false,
		},
		"another backend":                 {"a.test - one", "a.test - two", "", true},
		"another backend for a part":      {"a.test - one", "a.test ^/a$ two \n a.test - one", "a.test ^/a$ http_status:503 \n a.test - one", false},
		"the same backend for a part":     {"a.test - one", "a.test ^/a$ one \n a.test - one", "a.test - one", false},
		"additions beside a revocation":   {"a.test - one \n b.test - two", "a.test - one \n c.test - three", "a.test - one", true},
		"Access is added":                 {"a.test - one", "a.test - one staff", "a.test - one staff", true},
		"Access is removed":               {"a.test - one staff", "a.test - one", "a.test - one staff", false},
		"an audience is removed":          {"a.test - one staff,ops", "a.test - one ops", "a.test - one ops", true},
		"an audience is added":            {"a.test - one staff", "a.test - one ops,staff", "a.test - one staff", false},
		"another audience":                {"a.test - one staff", "a.test - one ops", "", true},
		"Access for a part of a wildcard": {"*.test - one", "a.test - one staff \n *.test - one", "a.test - one staff \n *.test - one", true},
		"Access and another backend for a part of a wildcard": {
			"*.test - one", "a.test - two staff \n *.test - one", "a.test - http_status:503 \n *.test - one", true,
		},
		"Access for a part of a wildcard is removed": {
			"a.test - one staff \n *.test - one", "*.test - one", "a.test - one staff \n *.test - one", false,
		},
		"a protected addition": {"*.test - one staff", "a.test - two staff \n *.test - one staff", "a.test - http_status:503 \n *.test - one staff", false},
		"other rules for paths in another order": {
			"a.test ^/a$ one \n a.test ^/b$ two \n c.test - three", "a.test ^/b$ two \n a.test ^/a$ one", "a.test ^/b$ http_status:503 \n a.test ^/a$ one", true,
		},
		"overlapping rules in another order": {
			"a.test ^/a.*$ one \n a.test ^/.b$ two", "a.test ^/.b$ two \n a.test ^/a.*$ one", "a.test ^/.b$ http_status:503 \n a.test ^/a.*$ one", true,
		},
		"the last rule": {"* - one", "* - two", "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			end := notFound
			if name == "the last rule" {
				end = ""
			}
			restricted, revokes := ingress.Restrict(parseRules(test.last+end), parseRules(test.desired+end))
			want := printRules(parseRules(test.want + end))
			if end == "" {
				want = "* - http_status:503\n"
			}
			if diff := cmp.Diff(want, printRules(restricted)); diff != "" || revokes != test.revokes {
				t.Errorf("revokes = %t, want %t (-want +got):\n%s", revokes, test.revokes, diff)
			}
		})
	}
}

func TestRestrictedConfigurationOfEnvoyContainsNewAccess(t *testing.T) {
	// A hostname that becomes protected gets a rule before the last one. It leads to the
	// same Envoy.
	open, protected := "\n* - http://127.0.0.1:10080", "admin.test - http://127.0.0.1:10081 staff"
	restricted, revokes := ingress.Restrict(parseRules(open), parseRules(protected+open))
	if want := printRules(parseRules(protected + open)); !revokes || printRules(restricted) != want {
		t.Errorf("revokes = %t, restricted configuration:\n%s", revokes, printRules(restricted))
	}
	restricted, revokes = ingress.Restrict(parseRules(protected+open), parseRules(open))
	if want := printRules(parseRules(protected + open)); revokes || printRules(restricted) != want {
		t.Errorf("the end of Access: revokes = %t, restricted configuration:\n%s", revokes, printRules(restricted))
	}
	restricted, revokes = ingress.Restrict(parseRules("admin.test - http://127.0.0.1:10080"+open), parseRules(protected+open))
	if want := printRules(parseRules(protected + open)); !revokes || printRules(restricted) != want {
		t.Errorf("Access of a rule: revokes = %t, restricted configuration:\n%s", revokes, printRules(restricted))
	}
}

func TestChangeOfDataPlaneRevokesNothing(t *testing.T) {
	rules, envoy := parseRules("a.test - one"+notFound), parseRules("* - http://127.0.0.1:10080")
	for _, pair := range [][2]provider.Configuration{{rules, envoy}, {envoy, rules}} {
		if _, revokes := ingress.Restrict(pair[0], pair[1]); revokes {
			t.Errorf("%s is revoked by\n%s", printRules(pair[0]), printRules(pair[1]))
		}
	}
}

func TestStricterDefaultsTightenEveryRule(t *testing.T) {
	last, desired := parseRules("a.test - https://one:443 \n b.test - two"+notFound), parseRules("a.test - https://one:443 \n b.test - two"+notFound)
	last.OriginRequest.NoTLSVerify, desired.OriginRequest.ConnectTimeout = ptr.To(true), ptr.To[int64](5)
	restricted, revokes := ingress.Restrict(last, desired)
	verified := restricted.Ingress[0].OriginRequest.NoTLSVerify
	if !revokes || verified == nil || *verified || restricted.OriginRequest.ConnectTimeout != nil || restricted.Ingress[1].Service != "http://two:80" {
		t.Errorf("revokes = %t, restricted configuration: %+v", revokes, restricted)
	}
	if _, revokes := ingress.Restrict(desired, last); revokes {
		t.Error("a weaker verification is a revocation")
	}
}

func BenchmarkRestrict(b *testing.B) {
	var rules strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&rules, "h%d.test ^/a(/|$) one \n h%d.test - two\n", i/10, i/10)
	}
	last := parseRules(strings.ReplaceAll(rules.String(), "h50.test ^/a", "h50.test ^/b") + notFound)
	desired := parseRules(rules.String() + notFound)
	b.ReportAllocs()
	for b.Loop() {
		ingress.Restrict(last, desired)
	}
}
