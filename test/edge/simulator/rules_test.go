package simulator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func TestMatchReturnsTheFirstMatchingRule(t *testing.T) {
	rules, err := simulator.Compile(json.RawMessage(`{"ingress":[
		{"hostname":"exact.example.com","path":"^/api(/|$)","service":"http://api:80"},
		{"hostname":"exact.example.com","service":"http://exact:80"},
		{"hostname":"*.example.com","path":"\\.png$","service":"http://images:80"},
		{"hostname":"*.example.com","service":"http://wildcard:80"},
		{"hostname":"*foo.com","service":"http://odd:80"},
		{"hostname":"Upper.test","service":"http://upper:80"},
		{"hostname":"dot.test.","service":"http://dot:80"},
		{"hostname":"*","path":"^/health$","service":"http_status:204"},
		{"path":"a b","service":"http://space:80"},
		{"service":"http_status:404"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		host, path string
		index      int
		service    string
	}{
		{"exact.example.com", "/api", 0, "http://api:80"},
		{"exact.example.com", "/api/v1", 0, "http://api:80"},
		{"exact.example.com", "/apis", 1, "http://exact:80"},
		{"exact.example.com:8080", "/", 1, "http://exact:80"},
		{"exact.example.com:", "/", 1, "http://exact:80"},
		{"EXACT.example.com", "/", 3, "http://wildcard:80"},
		{"EXACT.example.com:443", "/", 3, "http://wildcard:80"},
		{"exact.example.com.", "/", 9, "http_status:404"},
		{"exact.example.com.:443", "/", 9, "http_status:404"},
		{"exact.Example.com", "/", 9, "http_status:404"},
		{"a.example.com", "/x/y.png", 2, "http://images:80"},
		{"a.example.com", "/x/y.png/z", 3, "http://wildcard:80"},
		{"a.b.example.com", "/", 3, "http://wildcard:80"},
		{"a.example.com:443", "/", 3, "http://wildcard:80"},
		{"a.EXAMPLE.com", "/", 9, "http_status:404"},
		{".example.com", "/", 3, "http://wildcard:80"},
		{"example.com", "/", 9, "http_status:404"},
		{"barexample.com", "/", 9, "http_status:404"},
		{"*foo.com", "/", 4, "http://odd:80"},
		{"barfoo.com", "/", 9, "http_status:404"},
		{"upper.test", "/", 9, "http_status:404"},
		{"Upper.test", "/", 5, "http://upper:80"},
		{"dot.test.", "/", 6, "http://dot:80"},
		{"dot.test.:80", "/", 6, "http://dot:80"},
		{"dot.test", "/", 9, "http_status:404"},
		{"elsewhere", "/health", 7, "http_status:204"},
		{"elsewhere", "/a b/c", 8, "http://space:80"},
		{"", "/", 9, "http_status:404"},
	} {
		index, service, ok := rules.Match(test.host, test.path)
		if index != test.index || service != test.service || !ok {
			t.Errorf("Match(%q, %q) = %d, %q, %t, want %d, %q",
				test.host, test.path, index, service, ok, test.index, test.service)
		}
	}
}

func TestConfigurationWithoutRulesMatchesNothing(t *testing.T) {
	for _, configuration := range []string{`{}`, `{"ingress":null}`, `{"ingress":[]}`} {
		rules, err := simulator.Compile(json.RawMessage(configuration))
		if err != nil {
			t.Fatalf("%s: %v", configuration, err)
		}
		if _, _, ok := rules.Match("a", "/"); ok {
			t.Errorf("%s matches a request", configuration)
		}
	}
}

// ingress returns a configuration with the rule and a catch-all rule.
func ingress(rule string) string {
	return `{"ingress":[` + rule + `,{"service":"http_status:404"}]}`
}

func TestCompileRejectsInvalidConfigurations(t *testing.T) {
	for name, test := range map[string]struct{ configuration, want string }{
		"not JSON":                   {`{`, "parse the configuration"},
		"not an object":              {`[]`, "parse the configuration"},
		"wildcard inside":            {ingress(`{"hostname":"a.*.com","service":"http://a"}`), "wildcard"},
		"wildcard at the end":        {ingress(`{"hostname":"a.*","service":"http://a"}`), "wildcard"},
		"two wildcards":              {ingress(`{"hostname":"*.*.com","service":"http://a"}`), "wildcard"},
		"hostname with a port":       {ingress(`{"hostname":"a.com:80","service":"http://a"}`), "has a port"},
		"last rule with a hostname":  {`{"ingress":[{"hostname":"a.com","service":"http://a"}]}`, "the last rule"},
		"last rule with a path":      {`{"ingress":[{"path":"/a","service":"http://a"}]}`, "the last rule"},
		"early catch-all, empty":     {ingress(`{"service":"http://a"}`), "must be the last rule"},
		"early catch-all, asterisk":  {ingress(`{"hostname":"*","service":"http://a"}`), "must be the last rule"},
		"invalid expression":         {ingress(`{"path":"(","service":"http://a"}`), "path"},
		"expression that is not RE2": {ingress(`{"path":"(?!a)","service":"http://a"}`), "path"},
		"service with a path":        {ingress(`{"hostname":"a","service":"http://a/b"}`), "must not have a path"},
		"service with a slash":       {ingress(`{"hostname":"a","service":"http://a:80/"}`), "must not have a path"},
		"service without a scheme":   {ingress(`{"hostname":"a","service":"a:80"}`), "scheme and a host"},
		"service without a host":     {ingress(`{"hostname":"a","service":"http://:80"}`), "scheme and a host"},
		"no service":                 {ingress(`{"hostname":"a"}`), "scheme and a host"},
		"service that is not a URL":  {ingress(`{"hostname":"a","service":"http://%"}`), "service"},
		"status too low":             {ingress(`{"hostname":"a","service":"http_status:99"}`), "between 100 and 999"},
		"status too high":            {ingress(`{"hostname":"a","service":"http_status:1000"}`), "between 100 and 999"},
		"status is not a number":     {ingress(`{"hostname":"a","service":"http_status:ok"}`), "between 100 and 999"},
		"duration as text": {
			ingress(`{"hostname":"a","service":"http://a","originRequest":{"connectTimeout":"30s"}}`), "originRequest"},
		"fractional duration": {
			ingress(`{"hostname":"a","service":"http://a","originRequest":{"tcpKeepAlive":1.5}}`), "originRequest"},
		"global fractional duration": {
			`{"originRequest":{"tlsTimeout":1.5},"ingress":[{"service":"http_status:404"}]}`, "parse the configuration"},
		"audience without a team": {
			ingress(`{"hostname":"a","service":"http://a","originRequest":{"access":{"required":true,"audTag":["x"]}}}`),
			"teamName"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := simulator.Compile(json.RawMessage(test.configuration))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want an error that contains %q", err, test.want)
			}
		})
	}
}

func TestCompileNamesTheRule(t *testing.T) {
	_, err := simulator.Compile(json.RawMessage(
		`{"ingress":[{"hostname":"a","service":"http://a"},{"hostname":"b","service":"b"},{"service":"http_status:404"}]}`))
	if err == nil || !strings.HasPrefix(err.Error(), "ingress[1]: ") {
		t.Errorf("error %v, want an error that names ingress[1]", err)
	}
}

func TestCompileAcceptsWhatTheConnectorAccepts(t *testing.T) {
	for name, configuration := range map[string]string{
		"wildcard without a dot": ingress(`{"hostname":"*foo.com","service":"http://a"}`),
		"upper case":             ingress(`{"hostname":"A.com","service":"http://a"}`),
		"trailing dot":           ingress(`{"hostname":"a.com.","service":"http://a"}`),
		"duplicates":             `{"ingress":[{"hostname":"a","service":"http://a"},{"hostname":"a","service":"http://b"},{"service":"http_status:404"}]}`,
		"unknown scheme":         ingress(`{"hostname":"a","service":"gopher://a:70"}`),
		"unknown fields":         `{"x":1,"ingress":[{"y":2,"service":"http_status:404","originRequest":{"z":3}}]}`,
		"negative duration":      ingress(`{"hostname":"a","service":"http://a","originRequest":{"connectTimeout":-1}}`),
		"query and user":         ingress(`{"hostname":"a","service":"http://u:p@a?q=1"}`),
		"built-in services":      ingress(`{"hostname":"a","service":"hello_world"}`),
		"unix socket":            ingress(`{"hostname":"a","service":"unix:/run/a.sock"}`),
		"asterisk catch-all":     `{"ingress":[{"hostname":"*","service":"http_status:404"}]}`,
		"highest status":         `{"ingress":[{"service":"http_status:999"}]}`,
		"null originRequest":     ingress(`{"hostname":"a","service":"http://a","originRequest":null}`),
		"access without an audience": ingress(
			`{"hostname":"a","service":"http://a","originRequest":{"access":{"required":true}}}`),
		"audience that is not required": ingress(
			`{"hostname":"a","service":"http://a","originRequest":{"access":{"audTag":["x"]}}}`),
		"global audience without a team": `{"originRequest":{"access":{"required":true,"audTag":["x"]}},
			"ingress":[{"service":"http_status:404"}]}`,
	} {
		if _, err := simulator.Compile(json.RawMessage(configuration)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(ingress(`{"hostname":"*.a","path":"/x","service":"http://a"}`), "b.a:80", "/x")
	f.Fuzz(func(t *testing.T, configuration, host, path string) {
		rules, err := simulator.Compile(json.RawMessage(configuration))
		if err != nil {
			return
		}
		_, _, catchAll := rules.Match("", "")
		if _, _, ok := rules.Match(host, path); ok != catchAll {
			t.Errorf("Match(%q, %q) = %t, want %t: the last rule matches every request", host, path, ok, catchAll)
		}
	})
}
